// SPDX-License-Identifier: Apache-2.0
#include "block/decode/product_tables.hpp"

#include <algorithm>
#include <cmath>

#include "block/convert_numbers.hpp"
#include "dtype/dtype_table.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t half_codes = 16, nibble_codes = 16;
constexpr std::size_t tables_of_step = kernels::run_step / nibble_codes;

}  // namespace

Float8Products::Float8Products(const kernels::Ops& ops, DType element, std::size_t scales) : ops_(&ops) {
  const bool has_tables = element == DType::float8_e4m3fn || element == DType::float8_e5m2;
  if (!has_tables || ops.look_up_split == nullptr) return;
  const FloatFormat& format = row(element).format;
  // The least number and the largest one, and a binade for rounding, stay normal.
  least_ = std::ldexp(1.0F, -126 - (format.min_exponent() - format.mantissa_bits));
  most_ = std::ldexp(1.0F, 126 - format.max_exponent());
  step_ = 8u >> format.mantissa_bits;
  std::array<std::byte, 2 * half_codes> codes;
  for (std::size_t i = 0; i < half_codes; ++i) {
    codes[i] = static_cast<std::byte>(i < 8 ? i : i + 112);
    codes[i + half_codes] = static_cast<std::byte>(i + half_codes);
  }
  convert_numbers(element, codes.data(), DType::float32, reinterpret_cast<std::byte*>(numbers_.data()), codes.size());
  kept_.resize(std::clamp<std::size_t>(scales, 1, most_kept));
}

const kernels::byte_table::SplitTable* Float8Products::find(std::size_t at, float scale) noexcept {
  if (!(scale >= least_ && scale <= most_)) return nullptr;
  Kept& kept = kept_[at % kept_.size()];
  if (kept.scale != scale) {
    kept.scale = scale;
    fill(kept);
  }
  return &kept.table;
}

void Float8Products::fill(Kept& kept) const noexcept {
  std::array<std::uint16_t, kernels::run_step> products;
  ops_->find_scale_runs(DType::float32, DType::bfloat16, kernels::run_of_all)(
      reinterpret_cast<const std::byte*>(numbers_.data()), reinterpret_cast<std::byte*>(products.data()),
      products.size(), {.scales = &kept.scale});
  kernels::byte_table::SplitTable& table = kept.table;
  const unsigned first = products[half_codes] >> 8u;  // of code 16
  for (std::size_t i = 0; i < half_codes; ++i) {
    const unsigned rare = products[i], regular = products[i + half_codes];
    table.rare_low[i] = static_cast<std::uint8_t>(rare);
    table.rare_high[i] = static_cast<std::uint8_t>(rare >> 8u);
    table.low_of_low[i] = static_cast<std::uint8_t>(regular);
    table.high_of_low[i] = static_cast<std::uint8_t>((regular >> 8u) - first);
    const auto half = static_cast<unsigned>(i);
    table.high_of_high[i] = static_cast<std::uint8_t>(first + (half % 8 - 1) * step_ + half / 8 * 128);
  }
}

NibbleProducts::NibbleProducts(const kernels::Ops& ops, std::span<const float> numbers)
    : ops_(ops.look_up_nibbles == nullptr ? nullptr : &ops) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = numbers[i % nibble_codes];
}

const std::uint16_t* NibbleProducts::make(DType to, const kernels::RunParameters& runs, std::size_t count) {
  const std::size_t made = (count + tables_of_step - 1) / tables_of_step * tables_of_step;
  if (tables_.size() < made * nibble_codes) tables_.resize(made * nibble_codes);
  const kernels::ScaleRunsFn scale = ops_->find_scale_runs(DType::float32, to, nibble_codes);
  const auto* const numbers = reinterpret_cast<const std::byte*>(numbers_.data());
  for (std::size_t done = 0; done < made; done += at_once) {
    const auto from = [done](const float* all) { return all == nullptr ? nullptr : all + done; };
    const kernels::RunParameters by{from(runs.scales), from(runs.zeros), from(runs.biases)};
    scale(numbers, reinterpret_cast<std::byte*>(&tables_[done * nibble_codes]),
          std::min(at_once, made - done) * nibble_codes, by);
  }
  return tables_.data();
}

}  // namespace tensorcast::block
