// The loops of fractions.hpp for the target that the source is compiled for.
//
// Widening costs as much as all the rest, so that up to eight squares of a chain are summed up in float32 before that:
// 1. All of 16-bit sources, whose squares float32 has. Half of them and the other half: so it is rounded four times.
// 2. Of float32 only the squares of fractions, and only beside numbers beyond, whose errors are so much larger.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/float_lanes.hpp"
#include "kernels/tally/fractions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// --- The first look

// Plus one where none of these bits of x is set.
#if TENSORCAST_TARGET_LEVEL >= 2
SIMD_INLINE U16 count_without(U16 sum, U16 x, U16 bits) {
  const __mmask32 mask = _mm512_testn_epi16_mask((__m512i)x, (__m512i)bits);
  return (U16)_mm512_mask_sub_epi16((__m512i)sum, mask, (__m512i)sum, _mm512_set1_epi16(-1));
}
SIMD_INLINE U32 count_without(U32 sum, U32 x, U32 bits) {
  const __mmask16 mask = _mm512_testn_epi32_mask((__m512i)x, (__m512i)bits);
  return (U32)_mm512_mask_sub_epi32((__m512i)sum, mask, (__m512i)sum, _mm512_set1_epi32(-1));
}
#else
SIMD_INLINE U16 count_without(U16 sum, U16 x, U16 bits) { return sum - as<U16>((x & bits) == 0); }
SIMD_INLINE U32 count_without(U32 sum, U32 x, U32 bits) { return sum - as<U32>((x & bits) == 0); }
#endif

// The finite codes from that of -1 on are as many as have two bits less: any other, less the code of -1, has one of the
// first two bits.
template <class Source, bool is_signed>
void survey_fractions(const std::byte* source, std::size_t count, FractionSurvey& survey) {
  using Codes = typename Source::Codes;
  using Code = typename Source::Code;
  constexpr std::size_t lanes = sizeof(Codes) / sizeof(Code);
  constexpr auto sign = static_cast<Code>(Code{1} << (8 * sizeof(Code) - 1));
  const Codes magnitude = Codes{} + static_cast<Code>(sign - 1), minus_one = Codes{} + Source::minus_one;
  const Codes first_two = Codes{} + static_cast<Code>(sign | sign >> 1);
  Codes largest = {}, beyond = {}, nearest = first_two;
  for (std::size_t i = 0; i < count; i += lanes) {
    const Codes x = load<Codes>(source + i * sizeof(Code));
    largest = max(largest, x & magnitude);
    if constexpr (is_signed) continue;
    const Codes from_minus_one = x - minus_one;
    nearest = min(nearest, from_minus_one);
    beyond = count_without(beyond, from_minus_one, first_two);
  }
  survey.largest = greatest_of_lanes(largest);
  survey.nearest = least_of_lanes(nearest);
  survey.beyond = over_lanes(beyond, [](Code a, Code b) { return static_cast<Code>(a + b); });
}

// --- The sums

// Of numbers that are finite, with their sign.
SIMD_INLINE F32 fraction_of(F32 x) {
#if TENSORCAST_TARGET_LEVEL >= 2
  return x - (F32)_mm512_roundscale_ps((__m512)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif TENSORCAST_TARGET_LEVEL == 1
  return x - (F32)_mm256_round_ps((__m256)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  const F32 with_fraction = kept_where(less(magnitude_of(x), splat(0x1p24F)), x);
  return (with_fraction - to_f32<true>(truncate(with_fraction))) + F32{};  // zeros without sign, too
#endif
}

#if TENSORCAST_TARGET_LEVEL >= 2
SIMD_INLINE F32 sum_where(Mask32 mask, F32 sum, F32 x) {
  return (F32)_mm512_mask_add_ps((__m512)sum, mask, (__m512)sum, (__m512)x);
}
SIMD_INLINE U32 max_where(Mask32 mask, U32 largest, U32 x) {
  return (U32)_mm512_mask_max_epu32((__m512i)largest, mask, (__m512i)largest, (__m512i)x);
}
#else
SIMD_INLINE F32 sum_where(Mask32 mask, F32 sum, F32 x) { return sum + kept_where(mask, x); }
SIMD_INLINE U32 max_where(Mask32 mask, U32 largest, U32 x) { return max(largest, x & as<U32>(mask)); }
#endif

SIMD_INLINE void add_widened(Doubles& sum, F32 x, int r) {
  const F64x2 wide = widen(x);
  sum.at[2 * r] += wide.lo;
  sum.at[2 * r + 1] += wide.hi;
}

// All of it is inlined, so that its state stays in registers.
template <class Source, bool has_beyond>
class FractionBlock {
 public:
  explicit FractionBlock(double span) : beyond_factor_(splat(-2.0 * span)) {}

  SIMD_INLINE void add(const std::byte* source, std::size_t count, FractionSums& sums) {
    signal_ = load_group<F64>(sums.signal);
    noise_ = load_group<F64>(sums.noise);
    const auto next = reinterpret_cast<std::uintptr_t>(source) + count * code_bytes;
    for (std::size_t first = 0; first < count; first += fraction_group) {
      for (int r = 0; r < Floats::registers; ++r) {
        const std::size_t at = first + static_cast<std::size_t>(r) * Floats::lanes;
        Squares part, other;
#pragma GCC unroll groups_at_once
        for (std::size_t i = 0; i < fraction_group / 2; i += tally_chains) {
          if (r == 0) fetch_groups<2 * code_bytes>(next + (first + 2 * i) * code_bytes);
          add_number(Source::load(source + (at + i) * code_bytes), part, r);
          add_number(Source::load(source + (at + i + fraction_group / 2) * code_bytes), other, r);
        }
        part = {part.signal + other.signal, part.noise + other.noise, part.beyond + other.beyond};
        if constexpr (has_float_signal) add_widened(signal_, part.signal, r);
        if constexpr (has_float_noise) add_widened(noise_, part.noise, r);
        if constexpr (has_beyond) {
          const F64x2 wide = widen(part.beyond);
          noise_.at[2 * r] += beyond_factor_ * wide.lo;
          noise_.at[2 * r + 1] += beyond_factor_ * wide.hi;
        }
      }
    }
    store_group(sums.signal, signal_);
    store_group(sums.noise, noise_);
    sums.inexact = inexact_.total();
    sums.largest = greatest_lane(magnitude_of(as<F32>(largest_)));
  }

 private:
  static constexpr std::size_t code_bytes = sizeof(typename Source::Code);
  static constexpr bool has_float_signal = code_bytes == 2;
  static constexpr bool has_float_noise = code_bytes == 2 || has_beyond;

  // Sums in float32: of the squares, of the fractions' squares, and of the fractions of numbers beyond, which have none
  // but negative ones.
  struct Squares {
    F32 signal = {}, noise = {}, beyond = {};
  };

  SIMD_INLINE void add_number(F32 x, Squares& sums, int r) {
    const F32 fraction = fraction_of(x);
    Mask32 is_inexact = nonzero(as<I32>(fraction));
    if constexpr (has_beyond) {
      const Mask32 is_beyond = greater_equal(splat(-1.0F), x);
      sums.beyond = sum_where(is_beyond, sums.beyond, fraction);
      largest_ = max_where(is_beyond, largest_, as<U32>(fraction));
      is_inexact = united(is_inexact, is_beyond);
    } else {
      largest_ = max(largest_, as<U32>(magnitude_of(fraction)));
    }
    inexact_.add(is_inexact);
    if constexpr (has_float_signal) {
      sums.signal = plus_exact_square(sums.signal, x);
    } else {
      add_wide_square(signal_, x, r);
    }
    if constexpr (has_float_noise) {
      sums.noise = code_bytes == 2 ? plus_exact_square(sums.noise, fraction) : sums.noise + fraction * fraction;
    } else {
      add_wide_square(noise_, fraction, r);
    }
  }

  F64 beyond_factor_;
  Doubles signal_, noise_;
  LaneCount<Mask32> inexact_;
  U32 largest_ = {};
};

// --- The largest relative error

// Products with small numbers may have too few digits, so that numbers below 1 are looked at: they end the search.
template <class Source>
void grow_share_of_fractions(const std::byte* source, std::size_t count, Tally& tally) {
  ShareSearch search(tally);
  for (std::size_t i = 0; i < count && tally.max_rel < 1.0; i += Floats::lanes) {
    const F32 x = magnitude_of(Source::load(source + i * sizeof(typename Source::Code)));
    search.add(x, x - fraction_of(x), not_equal_of(less(x, splat(1.0F)), x, F32{}));
  }
}

template <class Source>
[[gnu::noinline]] void add_fractions(const std::byte* source, std::size_t count, double span, FractionSums& sums) {
  if (span != 0.0) {
    FractionBlock<Source, true>(span).add(source, count, sums);
  } else {
    FractionBlock<Source, false>(span).add(source, count, sums);
  }
}

// Calls function(source) with the kind of source.
template <class Function>
SIMD_INLINE void with_numbers(FractionSource from, Function function) {
  in_default_environment([&] {
    switch (from) {
      case FractionSource::float16:
        return function(Float16Numbers{});
      case FractionSource::bfloat16:
        return function(Bfloat16Numbers{});
      case FractionSource::float32:
        return function(Float32Numbers{});
    }
  });
}

inline constexpr FractionLoops fraction_loops = {
    .survey =
        [](FractionSource from, const std::byte* source, std::size_t count, bool is_signed, FractionSurvey& survey) {
          with_numbers(from, [&]<class Source>(Source) {
            is_signed ? survey_fractions<Source, true>(source, count, survey)
                      : survey_fractions<Source, false>(source, count, survey);
          });
        },
    .add =
        [](FractionSource from, const std::byte* source, std::size_t count, double span, FractionSums& sums) {
          with_numbers(from, [&]<class Source>(Source) { add_fractions<Source>(source, count, span, sums); });
        },
    .grow_share =
        [](FractionSource from, const std::byte* source, std::size_t count, Tally& tally) {
          with_numbers(from, [&]<class Source>(Source) { grow_share_of_fractions<Source>(source, count, tally); });
        },
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
