// SPDX-License-Identifier: Apache-2.0
// Codes times scales, by a table for each scale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.hpp"

namespace tensorcast::block {

// Float8 codes times scales. bfloat16(float32(number * scale)) depends on the exponents of both by an addition only,
// where all results are normal: so it is a split table, of which 32 products are computed.
class Float8Products {
 public:
  Float8Products() = default;
  // Has no tables if the type or the instruction set has none. `scales`: how many a row has; so many tables are kept.
  Float8Products(const kernels::Ops& ops, DType element, std::size_t scales);

  [[nodiscard]] bool empty() const noexcept { return kept_.empty(); }
  // The table of `scale`, which is number `at` of its row; null if it is no split table. Precondition: !empty().
  [[nodiscard]] const kernels::byte_table::SplitTable* find(std::size_t at, float scale) noexcept;

 private:
  static constexpr std::size_t most_kept = 256;

  struct Kept {
    float scale = 0.0F;  // those that have tables are positive
    kernels::byte_table::SplitTable table;
  };
  void fill(Kept& kept) const noexcept;

  const kernels::Ops* ops_ = nullptr;
  float least_ = 0.0F, most_ = 0.0F;  // scales that have tables
  unsigned step_ = 0;                 // from one upper half of a code to the next, in the upper byte of the product
  std::vector<Kept> kept_;
  alignas(64) std::array<float, kernels::run_step> numbers_ = {};  // of codes 0 to 7, 120 to 127, and 16 to 31
};

// Codes of four bits times scales: tables of 16 results.
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
