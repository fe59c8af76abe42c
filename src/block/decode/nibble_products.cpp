// SPDX-License-Identifier: Apache-2.0
#include "block/decode/nibble_products.hpp"

#include <algorithm>

namespace tensorcast::block {
namespace {

constexpr std::size_t codes = 16;
constexpr std::size_t tables_of_step = kernels::run_step / codes;

}  // namespace

NibbleProducts::NibbleProducts(const kernels::Ops& ops, std::span<const float> numbers)
    : ops_(ops.look_up_nibbles == nullptr ? nullptr : &ops) {
  for (std::size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = numbers[i % codes];
}

const std::uint16_t* NibbleProducts::make(DType to, const kernels::RunParameters& runs, std::size_t count) {
  const std::size_t made = (count + tables_of_step - 1) / tables_of_step * tables_of_step;
  if (tables_.size() < made * codes) tables_.resize(made * codes);
  const kernels::ScaleRunsFn scale = ops_->find_scale_runs(DType::float32, to, codes);
  const auto* const numbers = reinterpret_cast<const std::byte*>(numbers_.data());
  for (std::size_t done = 0; done < made; done += at_once) {
    const auto from = [done](const float* all) { return all == nullptr ? nullptr : all + done; };
    const kernels::RunParameters by{from(runs.scales), from(runs.zeros), from(runs.biases)};
    scale(numbers, reinterpret_cast<std::byte*>(&tables_[done * codes]), std::min(at_once, made - done) * codes, by);
  }
  return tables_.data();
}

}  // namespace tensorcast::block
