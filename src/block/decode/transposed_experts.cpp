// SPDX-License-Identifier: Apache-2.0
#include "block/decode/transposed_experts.hpp"

#include <algorithm>

#include "block/convert_numbers.hpp"
#include "cast/transpose.hpp"

namespace tensorcast::block {
namespace {

constexpr int scale_bias = 127;                        // of E8M0
constexpr int least_exponent = -1, most_exponent = 2;  // of E2M1's numbers but 0

}  // namespace

bool TransposedExperts::can_transpose(const Checked& checked, DType to) noexcept {
  const BlockCoding& coding = checked.coding();
  const bool has_powers = coding.scale == DType::float8_e8m0fnu && checked.scales.place_of_code(0, 0, 0) != nullptr;
  const bool are_plain = coding.factor == 1.0F && coding.offset == 0 && !coding.positive_zero &&
                         coding.global == GlobalScale::none && checked.zeros.empty() && checked.biases.empty() &&
                         checked.group_of_row.empty();
  return coding.transposed && coding.packing == BlockPacking::stream && coding.element == DType::float4_e2m1fn &&
         checked.block_rows == 1 && checked.block_columns == row_unit && has_powers && are_plain &&
         bit_width(to) == 16 && kernels::ops_of(active_target()).look_up_powers != nullptr;
}

TransposedExperts::TransposedExperts(const Checked& checked, DType to)
    : from_(checked),
      mantissa_bits_(to == DType::bfloat16 ? 7 : 10),
      codes_(rows / 2 * stride),
      scales_(blocks * stride),
      powers_(blocks * stride) {
  const int bias = (1 << (14 - mantissa_bits_)) - 1;
  least_ = static_cast<std::uint8_t>(scale_bias - bias + 1 - least_exponent);
  most_ = static_cast<std::uint8_t>(scale_bias + bias - most_exponent);
  const std::array<float, 16> numbers = checked.codes.numbers_of_nibbles();
  convert_numbers(DType::float32, reinterpret_cast<const std::byte*>(numbers.data()), to,
                  reinterpret_cast<std::byte*>(results_.data()), numbers.size());
}

std::size_t TransposedExperts::load(std::size_t matrix, std::size_t row, std::size_t count, std::size_t column) {
  depth_ = std::min(most_depth, from_.codes.rows - column);
  const std::size_t first = row / row_unit, blocks_of_rows = (count - 1) / row_unit + 1;
  const std::size_t all_blocks = (from_.codes.columns - 1) / row_unit + 1;
  Transposer<std::uint8_t>::run(from_.scales.place_of_code(matrix, column, first), all_blocks, depth_, blocks_of_rows,
                                scales_.data(), stride);
  std::uint8_t least = 255, most = 0;
  for (std::size_t i = 0; i < blocks_of_rows; ++i) {
    for (std::size_t j = i * stride; j < i * stride + depth_; ++j) {
      const auto scale = std::to_integer<std::uint8_t>(scales_[j]);
      least = std::min(least, scale);
      most = std::max(most, scale);
      powers_[j] = static_cast<std::uint16_t>(static_cast<unsigned>(scale - scale_bias) << mantissa_bits_);
    }
  }
  if (least < least_ || most > most_) return 0;
  Transposer<std::uint8_t>::run(from_.codes.stream(matrix, column, row), from_.codes.row_bytes, depth_, (count + 1) / 2,
                                codes_.data(), stride);
  return depth_;
}

void TransposedExperts::read(std::size_t row, std::byte* out, bool bypasses_cache) const {
  const kernels::NibblePowers by{.results = results_.data(),
                                 .powers = &powers_[row / row_unit * stride],
                                 .are_upper = row % 2 != 0,
                                 .bypasses_cache = bypasses_cache};
  ops_.look_up_powers(&codes_[row / 2 * stride], out, depth_, by);
}

}  // namespace tensorcast::block
