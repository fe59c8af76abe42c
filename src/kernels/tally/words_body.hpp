// The loops of words.hpp for the target that the source is compiled for.
//
// Eight squares a chain are summed up in float32, and only these sums widened to float64, which costs as much as all
// the rest. So sums are off by 2^-22 of the whole at the very worst, and by 2^-30 as a rule, as errors of rounding
// cancel each other. Squares of 16-bit floats are exact in float32; those of errors are rounded before they are added,
// as not all targets can add them unrounded. Where float32 is too narrow, sums are not finite or very small: who asks
// for them looks, and sums otherwise.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/tally_masks.hpp"
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

// The largest relative error so far, to multiply numbers with. With a power of two the product is exact; else it is
// made a little less, as the product is rounded.
inline float share_to_compare(const Tally& tally) {
  const double share = std::fmin(tally.max_rel, static_cast<double>(std::numeric_limits<float>::max()));
  const bool is_power = share > 0.0 && (std::bit_cast<std::uint64_t>(share) & 0xfffffffffffff) == 0;
  return static_cast<float>(is_power ? share : share * (1.0 - 0x1p-21));
}

// What numbers become. As bool, it is seen from them.
template <bool is_bfloat16, bool are_bool>
SIMD_INLINE F32 load_result(F32 x, const std::byte* result, std::size_t first, int half, int r) {
  if constexpr (!are_bool) return load_half<is_bfloat16>(result, first, half, r);
  return kept_where(nonzero(as<I32>(magnitude_of(x))), splat(1.0F));
}

template <bool is_bfloat16, bool are_bool>
[[gnu::noinline]] void grow_share(const std::byte* source, const std::byte* result, std::size_t first, std::size_t end,
                                  Tally& tally) {
  for (; first < end; first += square_group) {
    for (int half = 0; half < 2; ++half) {
      Floats x, y;
      for (int r = 0; r < Floats::registers; ++r) {
        x.at[r] = load_half<is_bfloat16>(source, first, half, r);
        y.at[r] = load_result<is_bfloat16, are_bool>(x.at[r], result, first, half, r);
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
  }
  tally.is_max_rel_short = false;
}

enum class Errors : std::uint8_t {
  none,
  summed,   // only that
  largest,  // and the largest one is looked for
  growing,  // and the largest relative one
};

// A share is looked at more closely where a product with the largest one says that it may be larger.
template <bool is_bfloat16, Errors errors, bool are_bool>
void add_squares(const std::byte* source, const std::byte* result, std::size_t count, WordSums& sums, Tally& tally) {
  constexpr bool is_growing = errors == Errors::growing;
  SquareSums signal, noise;
  F32 largest = {};
  std::size_t first = 0;
  // The next block is asked for meanwhile: all of this one comes at once, and then memory would wait for the sums.
  const auto next = reinterpret_cast<std::uintptr_t>(source) + count * sizeof(std::uint16_t);
  while (first < count) {
    const F32 share = splat(share_to_compare(tally));
    Mask32 may_grow = {};
    Floats signal_part, noise_part;
    const auto add_group = [&](std::size_t at) SIMD_INLINE_LAMBDA {
      __builtin_prefetch(reinterpret_cast<const void*>(next + at * sizeof(std::uint16_t)), 0, 3);
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 4
        for (int r = 0; r < Floats::registers; ++r) {
          const F32 x = load_half<is_bfloat16>(source, at, half, r);
          signal_part.at[r] = plus_exact_square(signal_part.at[r], x);
          if constexpr (errors == Errors::none) continue;
          const F32 error = x - load_result<is_bfloat16, are_bool>(x, result, at, half, r);
          noise_part.at[r] += error * error;
          if constexpr (errors == Errors::summed) continue;
          largest = greater_magnitude(largest, magnitude_of(error));
          if constexpr (is_growing) {
            may_grow = united(may_grow, less(magnitude_of(x) * share, magnitude_of(error)));
          }
        }
      }
    };
    std::size_t begin = first;
    do {  // in registers until a share may have grown
      begin = first;
      signal_part = noise_part = {};
      if (count - first >= square_groups * square_group) [[likely]] {
#pragma GCC unroll 4
        for (std::size_t i = 0; i < square_groups; ++i) add_group(first + i * square_group);
        first += square_groups * square_group;
      } else {
        for (; first < count; first += square_group) add_group(first);
      }
      signal.add(signal_part);
      if constexpr (errors != Errors::none) noise.add(noise_part);
    } while (first < count && !(is_growing && some(may_grow)));
    if (is_growing && some(may_grow)) grow_share<is_bfloat16, are_bool>(source, result, begin, first, tally);
  }
  signal.add_to(sums.signal);
  if constexpr (errors == Errors::none) return;
  noise.add_to(sums.noise);
  if constexpr (errors == Errors::summed) return;
  sums.largest_error = static_cast<double>(greatest_lane(largest));
}

template <Errors errors, bool are_bool = false>
void add_squares_of(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                    WordSums& sums, Tally& tally) {
  if (count == 0) return;
  in_default_environment([&] {
    is_bfloat16 ? add_squares<true, errors, are_bool>(source, result, count, sums, tally)
                : add_squares<false, errors, are_bool>(source, result, count, sums, tally);
  });
}

SIMD_INLINE std::uint16_t greatest_word(I16 words) {
  std::int16_t lanes[word_lanes];
  store(reinterpret_cast<std::byte*>(lanes), words);
  std::int16_t most = 0;
  for (const std::int16_t lane : lanes) most = lane > most ? lane : most;
  return static_cast<std::uint16_t>(most);
}

template <DistantKind kind>
WordRange count_inexact(const std::byte* source, const std::byte* result, std::size_t count, const DistantWords& what,
                        Tally& tally) {
  const U16 magnitude = splat(word_magnitude), one = splat(what.code);
  const U16 positive = splat(what.bounds.positive);
  const U16 positives = splat(static_cast<std::uint16_t>(word_magnitude - what.bounds.positive));
  const U16 negative = splat(static_cast<std::uint16_t>(what.bounds.negative | 0x8000));
  WordCount inexact, beyond;
  I16 largest = {}, smallest = splat(std::int16_t{-1});  // as what they lack to the largest code
  for (std::size_t first = 0; first < count; first += word_lanes) {
    const U16 x = load_words(source, first);
    const U16 y = kind == DistantKind::boolean ? one : load_words(result, first);
    const U16 x_magnitude = x & magnitude;
    largest = max(largest, as<I16>(x_magnitude));
    if constexpr (kind != DistantKind::integer) {
      smallest = max(smallest, as<I16>((x_magnitude - 1) ^ magnitude));  // zero: negative
    }
#if TENSORCAST_TARGET_LEVEL >= 2
    const __mmask32 is_some = _mm512_test_epi16_mask((__m512i)x_magnitude, (__m512i)x_magnitude);
    __mmask32 is_inexact = _mm512_mask_cmpneq_epi16_mask(is_some, (__m512i)x, (__m512i)y);
    if constexpr (kind == DistantKind::scale) {
      const __mmask32 is_less = _mm512_cmplt_epi16_mask((__m512i)x, _mm512_set1_epi16(static_cast<short>(what.code)));
      is_inexact |= is_less;
      beyond.add(is_less);
    } else if constexpr (kind == DistantKind::integer) {
      beyond.add(_mm512_cmple_epu16_mask((__m512i)(x - positive), (__m512i)positives));
      beyond.add(_mm512_cmpge_epu16_mask((__m512i)x, (__m512i)negative));
    }
#else
    U16 is_inexact = as<U16>(x_magnitude != 0) & as<U16>(x != y);
    if constexpr (kind == DistantKind::scale) {
      const U16 is_less = as<U16>(as<I16>(x) < static_cast<std::int16_t>(what.code));
      is_inexact |= is_less;
      beyond.add(is_less);
    } else if constexpr (kind == DistantKind::integer) {
      beyond.add(as<U16>(subtract_to_zero(x - positive, positives) == 0));
      beyond.add(as<U16>(subtract_to_zero(negative, x) == 0));
    }
#endif
    inexact.add(is_inexact);
  }
  tally.inexact += inexact.total();
  tally.beyond += beyond.total();
  const std::uint16_t lacking = greatest_word(smallest);
  return {.largest = greatest_word(largest),
          .smallest = static_cast<std::uint16_t>(lacking == 0 ? 0 : word_magnitude - lacking + 1)};
}

inline std::uint16_t largest_magnitude(const std::byte* words, std::size_t count) {
  I16 even = {}, odd = {};
  const U16 magnitude = splat(word_magnitude);
  for (std::size_t first = 0; first < count; first += 2 * word_lanes) {
    even = max(even, as<I16>(load_words(words, first) & magnitude));
    odd = max(odd, as<I16>(load_words(words, first + word_lanes) & magnitude));
  }
  return greatest_word(max(even, odd));
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
    .add_squares =
        [](const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16, bool is_exact,
           WordSums& sums, Tally& tally) {
          is_exact ? add_squares_of<Errors::none>(source, result, count, is_bfloat16, sums, tally)
                   : add_squares_of<Errors::summed>(source, result, count, is_bfloat16, sums, tally);
        },
    .add_distant_squares =
        [](DistantKind kind, const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
           bool may_grow, WordSums& sums, Tally& tally) {
          const auto add = [&]<bool are_bool>(std::bool_constant<are_bool>) {
            may_grow ? add_squares_of<Errors::growing, are_bool>(source, result, count, is_bfloat16, sums, tally)
                     : add_squares_of<Errors::largest, are_bool>(source, result, count, is_bfloat16, sums, tally);
          };
          kind == DistantKind::boolean ? add(std::true_type{}) : add(std::false_type{});
        },
    .count_inexact =
        [](const std::byte* source, const std::byte* result, std::size_t count, const DistantWords& what,
           Tally& tally) {
          switch (what.kind) {
            case DistantKind::scale:
              return count_inexact<DistantKind::scale>(source, result, count, what, tally);
            case DistantKind::boolean:
              return count_inexact<DistantKind::boolean>(source, result, count, what, tally);
            case DistantKind::integer:
              break;
          }
          return count_inexact<DistantKind::integer>(source, result, count, what, tally);
        },
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
