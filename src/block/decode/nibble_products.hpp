// SPDX-License-Identifier: Apache-2.0
// Codes of four bits times scales, by a table of 16 results for each scale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::block {

class NibbleProducts {
 public:
  NibbleProducts() = default;
  // `numbers`: of the 16 codes.
  NibbleProducts(const kernels::Ops& ops, std::span<const float> numbers);

  [[nodiscard]] bool empty() const noexcept { return ops_ == nullptr; }
  // Makes the tables of `count` runs with these parameters, as kernels::ScaleRunsFn has them, of float16 or bfloat16.
  [[nodiscard]] const std::uint16_t* make(DType to, const kernels::RunParameters& runs, std::size_t count);

 private:
  static constexpr std::size_t at_once = 16;  // tables

  const kernels::Ops* ops_ = nullptr;
  std::vector<std::uint16_t> tables_;
  alignas(64) std::array<float, 16 * at_once> numbers_ = {};  // again and again
};

}  // namespace tensorcast::block
