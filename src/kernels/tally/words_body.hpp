// The loops of words.hpp for the target that the source is compiled for.
//
// Eight squares a chain are summed up in float32, and only these sums widened to float64, which costs as much as all
// the rest. So sums are off by 2^-22 of the whole at the very worst, and by 2^-30 as a rule, as errors of rounding
// cancel each other. Squares of 16-bit floats are exact in float32, and those of most errors, which have at most 12
// digits, too; others are rounded before they are added, as not all targets can add them unrounded. Where float32 is
// too narrow, sums are not finite or very small: who asks for them looks, and sums otherwise.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/float_lanes.hpp"
#include "kernels/tally/words.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr std::size_t word_lanes = sizeof(U16) / sizeof(std::uint16_t);
inline constexpr int word_registers = static_cast<int>(word_group / word_lanes);
inline constexpr std::size_t square_group = 2 * tally_chains;
inline constexpr std::size_t square_groups = 4;  // whose squares are summed up in float32
inline constexpr std::uint16_t word_magnitude = 0x7fff;

// Counts in lanes, of no more than 2^16 - 1 groups.
class WordCount {
 public:
#if TENSORCAST_TARGET_LEVEL >= 2
  SIMD_INLINE void add(__mmask32 mask) {
    lanes_ = (U16)_mm512_mask_sub_epi16((__m512i)lanes_, mask, (__m512i)lanes_, _mm512_set1_epi16(-1));
  }
#else
  SIMD_INLINE void add(U16 mask) { lanes_ -= mask; }
#endif
  [[nodiscard]] std::uint64_t total() const {
    std::uint16_t lanes[word_lanes];
    store(reinterpret_cast<std::byte*>(lanes), lanes_);
    std::uint64_t sum = 0;
    for (const std::uint16_t lane : lanes) sum += lane;
    return sum;
  }

 private:
  U16 lanes_ = {};
};

SIMD_INLINE U16 load_words(const std::byte* words, std::size_t first) {
  return load<U16>(words + first * sizeof(std::uint16_t));
}

template <bool has_zeros, bool has_above>
std::size_t count_usual_words(const std::byte* source, const std::byte* result, std::size_t count,
                              const WordCounts& counts, Tally& tally) {
  const U16 low = splat(counts.low), span = splat(counts.span), magnitude = splat(word_magnitude);
  const I16 last_rounded = splat(static_cast<std::int16_t>(counts.first_above - 1));
  WordCount counted;  // the inexact ones; without AVX-512, which has masks of inequality, the exact ones
  WordCount zeros, above;
  std::size_t first = 0;
  for (; first < count; first += word_group) {
#if TENSORCAST_TARGET_LEVEL >= 2
    U16 x[word_registers], y[word_registers];
    __mmask32 inexact[word_registers], unusual[word_registers];
#pragma GCC unroll 4
    for (int r = 0; r < word_registers; ++r) {
      const std::size_t at = first + static_cast<std::size_t>(r) * word_lanes;
      x[r] = load_words(source, at);
      y[r] = load_words(result, at);
      inexact[r] = _mm512_test_epi16_mask((__m512i)(x[r] ^ y[r]), (__m512i)magnitude);
      x[r] &= magnitude;
      unusual[r] = _mm512_mask_cmpgt_epu16_mask(inexact[r], (__m512i)(x[r] - low), (__m512i)span);
    }
    static_assert(word_registers == 2);
    if (_kortestz_mask32_u8(unusual[0], unusual[1]) == 0) [[unlikely]]
      break;
#pragma GCC unroll 4
    for (int r = 0; r < word_registers; ++r) {
      counted.add(inexact[r]);
      if constexpr (has_zeros) zeros.add(_mm512_mask_testn_epi16_mask(inexact[r], (__m512i)y[r], (__m512i)magnitude));
      if constexpr (has_above)
        above.add(_mm512_mask_cmpgt_epi16_mask(inexact[r], (__m512i)x[r], (__m512i)last_rounded));
    }
#else
    U16 exact[word_registers], x[word_registers], y[word_registers], unusual = {};
#pragma GCC unroll 8
    for (int r = 0; r < word_registers; ++r) {
      const std::size_t at = first + static_cast<std::size_t>(r) * word_lanes;
      x[r] = load_words(source, at);
      y[r] = load_words(result, at);
      exact[r] = as<U16>(((x[r] ^ y[r]) & magnitude) == 0);
      x[r] &= magnitude;
      unusual |= subtract_to_zero(x[r] - low, span) & ~exact[r];
    }
    if (any_greater(I16{}, as<I16>(unusual != 0))) [[unlikely]]
      break;
#pragma GCC unroll 8
    for (int r = 0; r < word_registers; ++r) {
      counted.add(exact[r]);
      if constexpr (has_zeros) zeros.add(as<U16>((y[r] & magnitude) == 0) & ~exact[r]);
      if constexpr (has_above) above.add(as<U16>(as<I16>(x[r]) > last_rounded) & ~exact[r]);
    }
#endif
  }
  tally.inexact += TENSORCAST_TARGET_LEVEL >= 2 ? counted.total() : first - counted.total();
  if constexpr (has_zeros) tally.underflowed += zeros.total();
  if constexpr (has_above) tally.beyond += above.total();
  return first;
}

// The chains' sums, in registers.
class SquareSums {
 public:
  SIMD_INLINE void add(const Floats& part) {
    const Doubles wide = widen(part);
#pragma GCC unroll 8
    for (int r = 0; r < Doubles::registers; ++r) total_.at[r] += wide.at[r];
  }
  void add_to(double* chains) const {
    Doubles sum = load_group<F64>(chains);
    for (int r = 0; r < Doubles::registers; ++r) sum.at[r] += total_.at[r];
    store_group(chains, sum);
  }

 private:
  Doubles total_ = {};
};

// Of each 32 elements the first and the second half; of bfloat16, whose code is the upper half of a float32's, the even
// and the odd ones.
template <bool is_bfloat16>
SIMD_INLINE F32 load_half(const std::byte* words, std::size_t first, int half, int r) {
  const std::byte* const group = words + first * sizeof(std::uint16_t);
  if constexpr (is_bfloat16) {
    const I32 pairs = load<I32>(group + r * kRegisterBytes);
    return as<F32>(half == 0 ? pairs << 16 : pairs & static_cast<std::int32_t>(0xffff0000));
  } else {
    return load_float16(group + (half * Floats::registers + r) * (kRegisterBytes / 2));
  }
}

// Adds squares of all numbers and errors: add_group(first, signal, noise) those of 32 elements, four times in a row.
template <bool has_errors, class AddGroup>
SIMD_INLINE void sum_in_parts(const std::byte* source, std::size_t count, WordSums& sums, AddGroup add_group) {
  constexpr std::size_t part = square_groups * square_group;
  const auto next = reinterpret_cast<std::uintptr_t>(source) + count * sizeof(std::uint16_t);
  SquareSums signal, noise;
  const auto add = [&](std::size_t first, Floats& signal_part, Floats& noise_part) SIMD_INLINE_LAMBDA {
    fetch_groups<2 * sizeof(std::uint16_t)>(next + first * sizeof(std::uint16_t));
    add_group(first, signal_part, noise_part);
  };
  for (std::size_t first = 0; first < count; first += part) {
    Floats signal_part = {}, noise_part = {};
    if (count - first >= part) [[likely]] {
#pragma GCC unroll groups_at_once
      for (std::size_t i = 0; i < part; i += square_group) add(first + i, signal_part, noise_part);
    } else {
      for (std::size_t at = first; at < count; at += square_group) add(at, signal_part, noise_part);
    }
    signal.add(signal_part);
    if constexpr (has_errors) noise.add(noise_part);
  }
  signal.add_to(sums.signal);
  if constexpr (has_errors) noise.add_to(sums.noise);
}

// Without fused additions, there is but one way.
inline constexpr bool tells_short_errors = TENSORCAST_TARGET_LEVEL != 0;

template <bool are_short>
SIMD_INLINE F32 plus_square_of_error(F32 sum, F32 error) {
  return are_short ? plus_exact_square(sum, error) : sum + error * error;
}

// Adds the squares of a group's numbers, and of errors: error_of(x, first, half, register) where there are any.
template <bool is_bfloat16, bool has_errors, bool are_short, class ErrorOf>
SIMD_INLINE void add_group_of_squares(const std::byte* source, std::size_t first, Floats& signal, Floats& noise,
                                      ErrorOf error_of) {
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 4
    for (int r = 0; r < Floats::registers; ++r) {
      const F32 x = load_half<is_bfloat16>(source, first, half, r);
      signal.at[r] = plus_exact_square(signal.at[r], x);
      if constexpr (has_errors) noise.at[r] = plus_square_of_error<are_short>(noise.at[r], error_of(x, first, half, r));
    }
  }
}

template <bool is_bfloat16, WordErrors errors>
void add_squares(const std::byte* source, const std::byte* result, std::size_t count, WordSums& sums) {
  constexpr bool has_errors = errors != WordErrors::none, are_short = errors == WordErrors::short_ones;
  sum_in_parts<has_errors>(
      source, count, sums, [&](std::size_t first, Floats& signal, Floats& noise) SIMD_INLINE_LAMBDA {
        add_group_of_squares<is_bfloat16, has_errors, are_short>(
            source, first, signal, noise, [&](F32 x, std::size_t at, int half, int r) SIMD_INLINE_LAMBDA {
              return x - load_half<is_bfloat16>(result, at, half, r);
            });
      });
}

// What numbers become. As bool, it is seen from them.
template <bool is_bfloat16, DistantKind kind>
SIMD_INLINE F32 load_result(F32 x, const std::byte* result, std::size_t first, int half, int r) {
  if constexpr (kind != DistantKind::boolean) return load_half<is_bfloat16>(result, first, half, r);
  return kept_where(nonzero(as<I32>(magnitude_of(x))), splat(1.0F));
}

// The largest magnitude, and the smallest one that is not zero.
class WordExtremes {
 public:
  SIMD_INLINE void add_largest(U16 magnitudes) { largest_ = max(largest_, as<I16>(magnitudes)); }
  SIMD_INLINE void add_smallest(U16 magnitudes) {
    lacking_ = max(lacking_, as<I16>((magnitudes - 1) ^ splat(word_magnitude)));  // zero: negative
  }
  [[nodiscard]] WordRange range() const {
    const std::int16_t lacking = greatest_of_lanes(lacking_);
    return {.largest = static_cast<std::uint16_t>(greatest_of_lanes(largest_)),
            .smallest = static_cast<std::uint16_t>(lacking <= 0 ? 0 : word_magnitude - lacking + 1)};
  }

 private:
  I16 largest_ = {}, lacking_ = splat(std::int16_t{-1});  // of the smallest, what it lacks to the largest code
};

inline WordRange range_of_words(const std::byte* words, std::size_t count) {
  WordExtremes extremes;
  for (std::size_t first = 0; first < count; first += word_lanes) {
    const U16 magnitudes = load_words(words, first) & splat(word_magnitude);
    extremes.add_largest(magnitudes);
    extremes.add_smallest(magnitudes);
  }
  return extremes.range();
}

// What is counted in codes of distant results.
template <DistantKind kind>
class DistantCounts {
 public:
  explicit DistantCounts(const DistantWords& what)
      : code_(splat(what.code)),
        positive_(splat(what.bounds.positive)),
        positives_(splat(static_cast<std::uint16_t>(word_magnitude - what.bounds.positive))),
        negative_(splat(static_cast<std::uint16_t>(what.bounds.negative | 0x8000))) {}

  SIMD_INLINE void add(const std::byte* source, const std::byte* result, std::size_t first) {
    const U16 magnitude = splat(word_magnitude);
    const U16 x = load_words(source, first);
    const U16 y = kind == DistantKind::boolean ? code_ : load_words(result, first);
    const U16 x_magnitude = x & magnitude;
    extremes_.add_largest(x_magnitude);
    if constexpr (!is_integer(kind)) extremes_.add_smallest(x_magnitude);
#if TENSORCAST_TARGET_LEVEL >= 2
    const __mmask32 is_some = _mm512_test_epi16_mask((__m512i)x_magnitude, (__m512i)x_magnitude);
    __mmask32 is_inexact = _mm512_mask_cmpneq_epi16_mask(is_some, (__m512i)x, (__m512i)y);
    if constexpr (kind == DistantKind::scale) {
      const __mmask32 is_less = _mm512_cmplt_epi16_mask((__m512i)x, (__m512i)code_);
      is_inexact |= is_less;
      beyond_.add(is_less);
    } else if constexpr (is_integer(kind)) {
      beyond_.add(_mm512_cmple_epu16_mask((__m512i)(x - positive_), (__m512i)positives_));
      beyond_.add(_mm512_cmpge_epu16_mask((__m512i)x, (__m512i)negative_));
    }
#else
    U16 is_inexact = as<U16>(x_magnitude != 0) & as<U16>(x != y);
    if constexpr (kind == DistantKind::scale) {
      const U16 is_less = as<U16>(as<I16>(x) < as<I16>(code_));
      is_inexact |= is_less;
      beyond_.add(is_less);
    } else if constexpr (is_integer(kind)) {
      beyond_.add(as<U16>(subtract_to_zero(x - positive_, positives_) == 0));
      beyond_.add(as<U16>(subtract_to_zero(negative_, x) == 0));
    }
#endif
    inexact_.add(is_inexact);
  }

  [[nodiscard]] WordRange finish(Tally& tally) const {
    tally.inexact += inexact_.total();
    tally.beyond += beyond_.total();
    return extremes_.range();
  }

 private:
  U16 code_, positive_, positives_, negative_;
  WordCount inexact_, beyond_;
  WordExtremes extremes_;
};

// Counts and sums in one pass: one is done in other units of the processor than the other.
template <bool is_bfloat16, DistantKind kind>
WordRange add_distant(const std::byte* source, const std::byte* result, std::size_t count, const DistantWords& what,
                      WordSums& sums, Tally& tally) {
  DistantCounts<kind> counts(what);
  F32 largest = {};
  sum_in_parts<true>(source, count, sums, [&](std::size_t first, Floats& signal, Floats& noise) SIMD_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < square_group; i += word_lanes) counts.add(source, result, first + i);
    add_group_of_squares<is_bfloat16, true, has_short_errors(kind)>(
        source, first, signal, noise, [&](F32 x, std::size_t at, int half, int r) SIMD_INLINE_LAMBDA {
          const F32 error = x - load_result<is_bfloat16, kind>(x, result, at, half, r);
          largest = with_magnitude_of(largest, error);
          return error;
        });
  });
  sums.largest_error = static_cast<double>(greatest_lane(largest));
  return counts.finish(tally);
}

template <bool is_bfloat16, DistantKind kind>
void grow_share(const std::byte* source, const std::byte* result, std::size_t count, Tally& tally) {
  ShareSearch search(tally);
  for (std::size_t first = 0; first < count; first += square_group) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      for (int r = 0; r < Floats::registers; ++r) {
        const F32 x = load_half<is_bfloat16>(source, first, half, r);
        search.add(x, load_result<is_bfloat16, kind>(x, result, first, half, r));
      }
    }
  }
}

// Calls function.template operator()<is_bfloat16, kind>().
template <class Function>
SIMD_INLINE auto with_distant_kind(bool is_bfloat16, DistantKind kind, Function function) {
  const auto of_kind = [&]<bool is_brain>(std::bool_constant<is_brain>) {
    switch (kind) {
      case DistantKind::scale:
        return function.template operator()<is_brain, DistantKind::scale>();
      case DistantKind::boolean:
        return function.template operator()<is_brain, DistantKind::boolean>();
      case DistantKind::far_integer:
        if constexpr (!tells_short_errors) break;
        return function.template operator()<is_brain, DistantKind::far_integer>();
      case DistantKind::integer:
        break;
    }
    return function.template operator()<is_brain, DistantKind::integer>();
  };
  return in_default_environment([&] { return is_bfloat16 ? of_kind(std::true_type{}) : of_kind(std::false_type{}); });
}

inline std::uint16_t largest_magnitude(const std::byte* words, std::size_t count) {
  I16 even = {}, odd = {};
  const U16 magnitude = splat(word_magnitude);
  for (std::size_t first = 0; first < count; first += 2 * word_lanes) {
    even = max(even, as<I16>(load_words(words, first) & magnitude));
    odd = max(odd, as<I16>(load_words(words, first + word_lanes) & magnitude));
  }
  return static_cast<std::uint16_t>(greatest_of_lanes(max(even, odd)));
}

inline constexpr WordLoops word_loops = {
    .count_usual =
        [](const std::byte* source, const std::byte* result, std::size_t count, const WordCounts& counts,
           Tally& tally) {
          if (counts.first_above != 0) return count_usual_words<true, true>(source, result, count, counts, tally);
          return counts.has_zeros ? count_usual_words<true, false>(source, result, count, counts, tally)
                                  : count_usual_words<false, false>(source, result, count, counts, tally);
        },
    .largest_magnitude = largest_magnitude,
    .range = range_of_words,
    .add_squares =
        [](const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16, WordErrors errors,
           WordSums& sums) {
          const auto add = [&]<WordErrors of>(std::integral_constant<WordErrors, of>) {
            in_default_environment([&] {
              is_bfloat16 ? add_squares<true, of>(source, result, count, sums)
                          : add_squares<false, of>(source, result, count, sums);
            });
          };
          switch (errors) {
            case WordErrors::none:
              return add(std::integral_constant<WordErrors, WordErrors::none>{});
            case WordErrors::any:
              if constexpr (!tells_short_errors) break;
              return add(std::integral_constant<WordErrors, WordErrors::any>{});
            case WordErrors::short_ones:
              break;
          }
          return add(std::integral_constant<WordErrors, WordErrors::short_ones>{});
        },
    .add_distant =
        [](const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
           const DistantWords& what, WordSums& sums, Tally& tally) {
          return with_distant_kind(is_bfloat16, what.kind, [&]<bool is_brain, DistantKind kind>() {
            return add_distant<is_brain, kind>(source, result, count, what, sums, tally);
          });
        },
    .grow_share =
        [](const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16, DistantKind kind,
           Tally& tally) {
          with_distant_kind(is_bfloat16, kind, [&]<bool is_brain, DistantKind of>() {
            grow_share<is_brain, of>(source, result, count, tally);
          });
        },
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
