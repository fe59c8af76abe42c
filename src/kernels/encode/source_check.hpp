// SPDX-License-Identifier: Apache-2.0
// A look at float32 or float64 numbers while they are converted: whether all are in an interval.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/compare.hpp"
#include "kernels/encode/blocks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// Compares magnitudes by their first 32 bits, two instructions a register. So numbers next to the interval's nearer end
// may be taken for outside; if it holds hardly any negative numbers, all of those are.
template <DType from>
class SourceCheck {
  static constexpr bool is_long = from == DType::float64;

 public:
  explicit SourceCheck(const Interval& accepted) {
    const bool drops_signs = accepted.low <= -1.0;
    const double end = std::max(drops_signs ? std::min(-accepted.low, accepted.high) : accepted.high, 0.0);
    const std::uint32_t bits = drops_signs ? 0x7fffffff : 0xffffffff;
    if constexpr (is_long) {
      kept_ = as<U32>(U64{} + (std::uint64_t{bits} << 32));
      first_outside_ = static_cast<std::uint32_t>((std::bit_cast<std::uint64_t>(end) + 1) >> 32);
    } else {
      kept_ = U32{} + bits;
      first_outside_ = std::bit_cast<std::uint32_t>(static_cast<float>(end)) + 1;
    }
  }

  template <class Unit>
  SIMD_INLINE void add(const Block<Unit>& x) {
    const auto each = map(x, [this](Unit unit) SIMD_INLINE_LAMBDA { return kept(unit); });
    largest_ = max(largest_, max(max(each.a, each.b), max(each.c, each.d)));
  }

  // False: all numbers are inside.
  [[nodiscard]] bool finds_outside() const { return reduce_max(largest_) >= first_outside_; }

 private:
  SIMD_INLINE U32 kept(F32 x) const { return as<U32>(x) & kept_; }
  SIMD_INLINE U32 kept(F64x2 x) const { return max(as<U32>(x.lo) & kept_, as<U32>(x.hi) & kept_); }

  U32 kept_, largest_ = {};
  std::uint32_t first_outside_ = 0;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
