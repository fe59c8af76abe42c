// The loops of words.hpp for the target that the source is compiled for.
//
// Squares are summed up in float32, which holds each of them: widening them to float64 costs as much as all the rest.
// What a sum lacks is summed up beside it:
// 1. A sum begins with an offset of at least the largest square to come, a power of two. As no square is larger than
//    the sum then, the difference of two sums in a row is exact, and so is what the square is more than that.
// 2. That rest is at most half a last place of the sum. The sum of the rests is rounded, but in a block of 64 squares
//    a chain it is off by 2^-35 of the whole at the very worst, and 2^-42 as a rule.
// 3. Each block ends with the offset taken off and both added to a float64. So the sums depend on where blocks begin,
//    and not on the target.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/tally_masks.hpp"
#include "kernels/tally/words.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

inline constexpr std::size_t word_lanes = sizeof(U16) / sizeof(std::uint16_t);
inline constexpr int word_registers = static_cast<int>(word_group / word_lanes);
inline constexpr std::size_t square_group = 2 * tally_chains;
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

// Squares of 32 elements side by side, in two groups of chains. `are_short`: float32 has the squares, so that it is all
// the same whether they are rounded.
template <bool are_short>
class SquareChains {
 public:
  explicit SquareChains(float offset) : offset_(splat(offset)) {
    for (int half = 0; half < 2; ++half) {
      for (int r = 0; r < Floats::registers; ++r) sum_[half].at[r] = offset_;
    }
  }
  SIMD_INLINE void add(int half, int r, F32 x) {
    const F32 last = sum_[half].at[r];
    sum_[half].at[r] = sum_with_square(x, last);
    rest_[half].at[r] += square_without(x, sum_[half].at[r] - last);
  }
  void add_to(double* chains) const {
    Doubles total = load_group<F64>(chains);
    for (int half = 0; half < 2; ++half) {
      Floats sum = sum_[half];
      for (int r = 0; r < Floats::registers; ++r) sum.at[r] -= offset_;
      const Doubles wide = widen(sum), rest = widen(rest_[half]);
      for (int r = 0; r < Doubles::registers; ++r) total.at[r] += wide.at[r] + rest.at[r];
    }
    store_group(chains, total);
  }

 private:
  SIMD_INLINE static F32 sum_with_square(F32 x, F32 sum) {
#if TENSORCAST_TARGET_LEVEL == 0
    if constexpr (are_short) return sum + x * x;
    // Float64 has the square. The sum is rounded there to odd, and so rounded only once to float32.
    const auto odd_sum = [](F64 square, F64 other) {
      const F64 rounded = square + other;
      const F64 part = rounded - square;
      const F64 lost = (square - (rounded - part)) + (other - part);
      const I64 bits = as<I64>(rounded);
      const I64 to_odd = ((as<I64>(lost > F64{}) & 2) - 1) & as<I64>(lost != F64{}) & ((bits & 1) - 1);
      return as<F64>(bits + to_odd);
    };
    const F64x2 wide = widen(x), other = widen(sum);
    return narrow({odd_sum(wide.lo * wide.lo, other.lo), odd_sum(wide.hi * wide.hi, other.hi)});
#else
    return multiply_add(x, x, sum);
#endif
  }
  SIMD_INLINE static F32 square_without(F32 x, F32 part) {
    if constexpr (are_short && TENSORCAST_TARGET_LEVEL == 0) return x * x - part;
    return multiply_subtract(x, x, part);
  }

  F32 offset_;
  Floats sum_[2], rest_[2] = {};
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

// The largest relative error so far, to multiply numbers with. With a power of two the product is exact; else it is
// made a little less, as the product is rounded.
inline float share_to_compare(const Tally& tally) {
  const double share = tally.max_rel;
  const bool is_power = share > 0.0 && (std::bit_cast<std::uint64_t>(share) & 0xfffffffffffff) == 0;
  return static_cast<float>(is_power ? share : share * (1.0 - 0x1p-21));
}

template <bool is_bfloat16>
[[gnu::noinline]] void grow_share(const std::byte* source, const std::byte* result, std::size_t first, Tally& tally) {
  for (int half = 0; half < 2; ++half) {
    Floats x, y;
    for (int r = 0; r < Floats::registers; ++r) {
      x.at[r] = load_half<is_bfloat16>(source, first, half, r);
      y.at[r] = load_half<is_bfloat16>(result, first, half, r);
    }
    float numbers[tally_chains], results[tally_chains];
    __builtin_memcpy(numbers, &x, sizeof numbers);
    __builtin_memcpy(results, &y, sizeof results);
    for (std::size_t i = 0; i < tally_chains; ++i) {
      const auto number = static_cast<double>(numbers[i]);
      const double share = std::fabs(number - static_cast<double>(results[i])) / std::fabs(number);
      if (number != 0.0 && share > tally.max_rel) tally.max_rel = share;
    }
  }
  tally.is_max_rel_short = false;
}

// `is_integer`: also the largest errors. A share is looked at more closely where a product with the largest one says
// that it may be larger.
template <bool is_bfloat16, bool has_signal, bool has_noise, bool is_integer = false>
void add_squares(const std::byte* source, const std::byte* result, std::size_t count, float signal_offset,
                 float noise_offset, Tally& tally) {
  SquareChains<true> signal(signal_offset);
  SquareChains<!is_integer> noise(noise_offset);
  F32 largest = {};
  std::size_t first = 0;
  // The next block is asked for meanwhile: all of this one comes at once, and then memory would wait for the sums.
  const auto next = reinterpret_cast<std::uintptr_t>(source) + count * sizeof(std::uint16_t);
  while (first < count) {
    const F32 share = splat(share_to_compare(tally));
    Mask32 may_grow = {};
    do {  // in registers until a share may have grown
      __builtin_prefetch(reinterpret_cast<const void*>(next + first * sizeof(std::uint16_t)), 0, 3);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 4
        for (int r = 0; r < Floats::registers; ++r) {
          const F32 x = load_half<is_bfloat16>(source, first, half, r);
          if constexpr (has_signal) signal.add(half, r, x);
          if constexpr (!has_noise) continue;
          const F32 error = x - load_half<is_bfloat16>(result, first, half, r);
          noise.add(half, r, error);
          if constexpr (!is_integer) continue;
          largest = greater_magnitude(largest, magnitude_of(error));
          may_grow = united(may_grow, less(magnitude_of(x) * share, magnitude_of(error)));
        }
      }
      first += square_group;
    } while (first < count && !(is_integer && some(may_grow)));
    if (is_integer && some(may_grow)) grow_share<is_bfloat16>(source, result, first - square_group, tally);
  }
  if constexpr (has_signal) signal.add_to(tally.signal);
  if constexpr (has_noise) noise.add_to(tally.noise);
  if constexpr (is_integer) {
    const auto error = static_cast<double>(greatest_lane(largest));
    if (error > tally.max_abs) tally.max_abs = error;
  }
}

template <bool is_bfloat16, bool is_integer>
void add_squares(const std::byte* source, const std::byte* result, std::size_t count, float signal_offset,
                 float noise_offset, Tally& tally) {
  if (count == 0) return;
  constexpr bool has_many_registers = TENSORCAST_TARGET_LEVEL >= 2;
  if (!is_integer && noise_offset == 0.0F) {
    add_squares<is_bfloat16, true, false>(source, result, count, signal_offset, 0.0F, tally);
  } else if constexpr (has_many_registers) {
    add_squares<is_bfloat16, true, true, is_integer>(source, result, count, signal_offset, noise_offset, tally);
  } else {
    add_squares<is_bfloat16, true, false>(source, result, count, signal_offset, 0.0F, tally);
    add_squares<is_bfloat16, false, true, is_integer>(source, result, count, 0.0F, noise_offset, tally);
  }
}
template <bool is_integer>
void add_squares_of(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                    float signal_offset, float noise_offset, Tally& tally) {
  in_default_environment([&] {
    is_bfloat16 ? add_squares<true, is_integer>(source, result, count, signal_offset, noise_offset, tally)
                : add_squares<false, is_integer>(source, result, count, signal_offset, noise_offset, tally);
  });
}

// Results of integers have no zero with a sign.
template <bool has_beyond>
void count_integer_words(const std::byte* source, const std::byte* result, std::size_t count, WordBounds bounds,
                         Tally& tally) {
  const U16 magnitude = splat(word_magnitude);
  const U16 positive = splat(bounds.positive), negative = splat(static_cast<std::uint16_t>(bounds.negative | 0x8000));
  const U16 positives = splat(static_cast<std::uint16_t>(word_magnitude - bounds.positive));
  WordCount inexact, beyond;
  for (std::size_t first = 0; first < count; first += word_lanes) {
    const U16 x = load_words(source, first), y = load_words(result, first);
#if TENSORCAST_TARGET_LEVEL >= 2
    const __mmask32 is_some = _mm512_test_epi16_mask((__m512i)(x | y), (__m512i)magnitude);
    inexact.add(_mm512_mask_cmpneq_epi16_mask(is_some, (__m512i)x, (__m512i)y));
    if constexpr (has_beyond) {
      beyond.add(_mm512_cmple_epu16_mask((__m512i)(x - positive), (__m512i)positives));
      beyond.add(_mm512_cmpge_epu16_mask((__m512i)x, (__m512i)negative));
    }
#else
    inexact.add(as<U16>(((x | y) & magnitude) != 0) & as<U16>(x != y));
    if constexpr (has_beyond) {
      beyond.add(as<U16>(subtract_to_zero(x - positive, positives) == 0));
      beyond.add(as<U16>(subtract_to_zero(negative, x) == 0));
    }
#endif
  }
  tally.inexact += inexact.total();
  if constexpr (has_beyond) tally.beyond += beyond.total();
}

inline std::uint16_t largest_magnitude(const std::byte* words, std::size_t count) {
  I16 even = {}, odd = {};
  const U16 magnitude = splat(word_magnitude);
  for (std::size_t first = 0; first < count; first += 2 * word_lanes) {
    even = max(even, as<I16>(load_words(words, first) & magnitude));
    odd = max(odd, as<I16>(load_words(words, first + word_lanes) & magnitude));
  }
  std::int16_t lanes[word_lanes];
  store(reinterpret_cast<std::byte*>(lanes), max(even, odd));
  std::int16_t most = 0;
  for (const std::int16_t lane : lanes) most = lane > most ? lane : most;
  return static_cast<std::uint16_t>(most);
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
    .add_squares = add_squares_of<false>,
    .count_integers =
        [](const std::byte* source, const std::byte* result, std::size_t count, WordBounds bounds, Tally& tally) {
          bounds.positive != 0 ? count_integer_words<true>(source, result, count, bounds, tally)
                               : count_integer_words<false>(source, result, count, bounds, tally);
        },
    .add_integer_squares = add_squares_of<true>,
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
