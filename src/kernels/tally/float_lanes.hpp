// What the tallies that see floats by their codes share: the kinds of source, asking for what comes next, and the
// search for the largest relative error.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/tally/tally_masks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr int groups_at_once = TENSORCAST_TARGET_LEVEL == 0 ? 1 : 4;  // portable code is to be small

// --- Sources

struct Float16Numbers {
  using Codes = U16;
  using Code = std::uint16_t;
  static constexpr Code minus_one = 0xbc00;
  SIMD_INLINE static F32 load(const std::byte* at) { return load_float16(at); }
};
struct Bfloat16Numbers {
  using Codes = U16;
  using Code = std::uint16_t;
  static constexpr Code minus_one = 0xbf80;
  SIMD_INLINE static F32 load(const std::byte* at) { return as<F32>(load_uint16(at) << 16); }
};
struct Float32Numbers {
  using Codes = U32;
  using Code = std::uint32_t;
  static constexpr Code minus_one = 0xbf800000;
  SIMD_INLINE static F32 load(const std::byte* at) { return TENSORCAST_TARGET::load<F32>(at); }
};

// --- Sums

// Register r of the chains.
SIMD_INLINE void add_wide_square(Doubles& sum, F32 x, int r) {
  const F64x2 wide = widen(x);
  sum.at[2 * r] = add_square<F32>(sum.at[2 * r], wide.lo);
  sum.at[2 * r + 1] = add_square<F32>(sum.at[2 * r + 1], wide.hi);
}

// --- What comes next

// Asks for so many bytes of each chain. Loops ask for the block after theirs: all of this one came at once, and then
// memory would wait for the sums.
template <std::size_t bytes>
SIMD_INLINE void fetch_groups(std::uintptr_t at) {
  for (std::size_t i = 0; i < bytes * tally_chains; i += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(at + i), 0, 3);
  }
}

// --- The largest relative error

// The largest one so far, to multiply numbers with: where the product is less than the error, it may grow. With a power
// of two the product is exact; else it is made a little less, as the product is rounded.
inline float share_to_compare(const Tally& tally) {
  const double share = std::fmin(tally.max_rel, static_cast<double>(std::numeric_limits<float>::max()));
  const bool is_power = share > 0.0 && (std::bit_cast<std::uint64_t>(share) & 0xfffffffffffff) == 0;
  return static_cast<float>(is_power ? share : share * (1.0 - 0x1p-21));
}

// Of numbers and their results.
[[gnu::noinline]] inline void grow_share_of_lanes(F32 x, F32 y, Tally& tally) {
  float numbers[Floats::lanes], results[Floats::lanes];
  store(reinterpret_cast<std::byte*>(numbers), x);
  store(reinterpret_cast<std::byte*>(results), y);
  for (int lane = 0; lane < Floats::lanes; ++lane) {
    const auto number = static_cast<double>(numbers[lane]);
    if (number == 0.0) continue;
    const double share = std::fabs((number - static_cast<double>(results[lane])) / number);
    if (share <= tally.max_rel) continue;
    tally.max_rel = share;
    tally.is_max_rel_short = false;
  }
}

// Looks for it: add(x, y, may_grow) with the lanes where it may have grown.
class ShareSearch {
 public:
  explicit ShareSearch(Tally& tally) : tally_(tally), share_(splat(share_to_compare(tally))) {}

  SIMD_INLINE void add(F32 x, F32 y) { add(x, y, Mask32{}); }
  // Lanes of `surely` are looked at in any case.
  SIMD_INLINE void add(F32 x, F32 y, Mask32 surely) {
    const Mask32 may_grow = less(magnitude_of(x) * share_, magnitude_of(x - y));
    if (!some(united(surely, may_grow))) [[likely]]
      return;
    grow_share_of_lanes(x, y, tally_);
    share_ = splat(share_to_compare(tally_));
  }

 private:
  Tally& tally_;
  F32 share_;
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
