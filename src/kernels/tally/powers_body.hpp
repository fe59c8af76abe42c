// The loops of powers.hpp for the target that the source is compiled for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/float_lanes.hpp"
#include "kernels/tally/fractions.hpp"
#include "kernels/tally/powers.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr std::int32_t mantissa_of_float32 = 0x7fffff;

// Of numbers above zero.
SIMD_INLINE F32 rounded_to_power(F32 x, U32 addend) {
  return as<F32>(as<I32>(as<U32>(x) + addend) & ~splat(mantissa_of_float32));
}

class PowerBlock {
 public:
  SIMD_INLINE void add(const std::byte* source, std::size_t count, std::uint32_t addend, PowerSums& sums) {
    addend_ = U32{} + addend;
    signal_ = load_group<F64>(sums.signal);
    noise_ = load_group<F64>(sums.noise);
    const auto next = reinterpret_cast<std::uintptr_t>(source) + count * sizeof(float);
    for (std::size_t first = 0; first < count; first += fraction_group) {
      for (int r = 0; r < Floats::registers; ++r) {
        const std::size_t at = first + static_cast<std::size_t>(r) * Floats::lanes;
#pragma GCC unroll groups_at_once
        for (std::size_t i = 0; i < fraction_group; i += tally_chains) {
          if (r == 0) fetch_groups<sizeof(float)>(next + (first + i) * sizeof(float));
          add_number(Float32Numbers::load(source + (at + i) * sizeof(float)), r);
        }
      }
    }
    store_group(sums.signal, signal_);
    store_group(sums.noise, noise_);
    sums.inexact = inexact_.total();
    sums.beyond = beyond_.total();
    sums.largest_error = greatest_lane(largest_error_);
    sums.largest_code = greatest_of_lanes(largest_code_);
    sums.largest_number = greatest_of_lanes(largest_number_);
    sums.least = least_of_lanes(least_);
  }

 private:
  SIMD_INLINE void add_number(F32 x, int r) {
    const Mask32 is_positive = less(F32{}, x);
    const F32 error = magnitude_of(x - kept_where(is_positive, rounded_to_power(x, addend_)));
    const Mask32 is_beyond = greater_equal(F32{}, x);
    beyond_.add(is_beyond);
    inexact_.add(united(nonzero(as<I32>(x) & mantissa_of_float32), is_beyond));
    largest_error_ = greater_magnitude(largest_error_, error);
    largest_code_ = max(largest_code_, as<U32>(x));
    largest_number_ = max(largest_number_, as<I32>(x));
    least_ = min(least_, as<U32>(magnitude_of(x)) - 1);
    add_wide_square(signal_, x, r);
    add_wide_square(noise_, error, r);
  }

  U32 addend_;
  Doubles signal_, noise_;
  LaneCount<Mask32> inexact_, beyond_;
  F32 largest_error_ = {};
  U32 largest_code_ = {}, least_ = ~U32{};
  I32 largest_number_ = {};
};

inline void grow_share_of_powers(const std::byte* source, std::size_t count, std::uint32_t addend, Tally& tally) {
  ShareSearch search(tally);
  for (std::size_t i = 0; i < count; i += Floats::lanes) {
    const F32 x = Float32Numbers::load(source + i * sizeof(float));
    search.add(x, rounded_to_power(x, U32{} + addend));
  }
}

inline constexpr PowerLoops power_loops = {
    .add = [](const std::byte* source, std::size_t count, std::uint32_t addend,
              PowerSums& sums) { in_default_environment([&] { PowerBlock().add(source, count, addend, sums); }); },
    .grow_share =
        [](const std::byte* source, std::size_t count, std::uint32_t addend, Tally& tally) {
          in_default_environment([&] { grow_share_of_powers(source, count, addend, tally); });
        },
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
