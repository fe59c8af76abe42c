// SPDX-License-Identifier: Apache-2.0
// Rounding by a word: adds to the magnitude's bits what carries where the word says, and cuts. Loops without branches,
// in integers, which the compiler vectorizes and no floating-point environment changes.
#include "kernels/rounding.hpp"

#include <bit>

#include "codec/philox.hpp"
#include "kernels/per_target/functions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {
namespace {

template <class Number>
struct FormOf;
template <>
struct FormOf<float> {
  using Bits = std::uint32_t;
  using Place = std::int32_t;
  static constexpr int mantissa_bits = 23, bias = 127;
};
template <>
struct FormOf<double> {
  using Bits = std::uint64_t;
  using Place = std::int64_t;
  static constexpr int mantissa_bits = 52, bias = 1023;
};

// The words that differ by more than a sign.
enum class Kind : std::uint8_t { even, away, directed, odd, stochastic };

// The first `count` bits of a random word, at the lowest places; count is below the bits of a word.
template <class Bits>
inline Bits first_bits(std::uint32_t random, Bits count) {
  constexpr int width = 8 * sizeof(Bits);
  return static_cast<Bits>((static_cast<Bits>(random) << (width - 32)) >> 1) >> (width - 1 - count);
}

template <class Number, Kind kind>
void round_each(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                const std::uint32_t* random) {
  using Form = FormOf<Number>;
  using Bits = typename Form::Bits;
  using Place = typename Form::Place;
  constexpr Place mantissa = Form::mantissa_bits;
  constexpr Bits leading = Bits{1} << mantissa, sign = Bits{1} << (8 * sizeof(Bits) - 1);
  constexpr Bits infinity = ~(leading - 1) & ~sign;
  const auto bits_of = [](double x) { return std::bit_cast<Bits>(static_cast<Number>(x)); };

  const Place normal_drop = rule.kept_bits < mantissa ? mantissa - rule.kept_bits : 0;
  const Place least_place = rule.is_power_of_two ? 0 : rule.last_place + Form::bias + mantissa;
  const Bits least =
      rule.is_power_of_two ? 0 : bits_of(std::bit_cast<double>(std::uint64_t(rule.last_place + 1023) << 52));
  // Numbers that stay: those before `first` and from `end` on.
  const Bits first = rule.is_power_of_two ? bits_of(0x1p-127) : 0;
  const Bits end = rule.is_power_of_two ? bits_of(0x1p127) + 1 : infinity;
  const Place last_odd = rule.is_power_of_two ? mantissa : mantissa - 1;  // code 1 is odd already
  const Bits signs = rule.is_magnitude ? ~sign : ~Bits{0};
  // Not infinity, which some targets tell from a number that is out of range.
  const auto limit_of = [&](double limit) { return bits_of(limit) < infinity ? bits_of(limit) : infinity - 1; };
  const Bits positive_limit = limit_of(rule.positive_limit), negative_limit = limit_of(rule.negative_limit);
  const Bits positive_up = rule.word == Rounding::toward_positive ? ~Bits{0} : 0;
  const Bits negative_up = rule.word == Rounding::toward_negative ? ~Bits{0} : 0;
  for (std::size_t i = 0; i < count; ++i) {
    Bits x;
    __builtin_memcpy(&x, src + i * sizeof x, sizeof x);
    x &= signs;
    const Bits magnitude = x & ~sign, is_negative = x & sign;
    const Bits field = magnitude >> mantissa;
    const Place place = static_cast<Place>(field < 1 ? 1 : field);
    const Place below_least = least_place - place;
    const Place drop = below_least > normal_drop ? below_least : normal_drop;
    const auto shift = static_cast<Bits>(drop < mantissa ? drop : mantissa);
    const Bits last = Bits{1} << shift, below = last - 1;
    const Bits negative_lanes = Bits{0} - (is_negative >> (8 * sizeof(Bits) - 1));
    const Bits up = (negative_up & negative_lanes) | (positive_up & ~negative_lanes);
    const std::uint32_t word = kind == Kind::stochastic ? random[i] : 0;
    Bits added = 0;
    if (kind == Kind::even) added = (below >> 1) + ((magnitude >> mantissa) & 1);
    if (kind == Kind::away) added = last >> 1;
    if (kind == Kind::directed) added = below & up;
    if (kind == Kind::stochastic) added = first_bits<Bits>(word, shift);
    Bits rounded = (magnitude + added) & ~below;
    if (kind == Kind::odd) {
      const Bits cut = (magnitude & below) != 0 ? last : 0;
      rounded |= drop <= last_odd ? cut : 0;
    }
    // Less than the least number: it or zero.
    Bits rises = 0;
    if (kind == Kind::away) rises = drop == mantissa + 1 ? magnitude & ~(leading - 1) : 0;
    if (kind == Kind::directed) rises = magnitude & up;
    if (kind == Kind::odd) rises = magnitude;
    if (kind == Kind::stochastic) {
      const Bits significand = (magnitude & (leading - 1)) | (magnitude >= leading ? leading : 0);
      constexpr Place most_right = 8 * sizeof(Bits) - 1, most_left = sizeof(Bits) == 4 ? 8 : 0;
      const Place right = drop < 32 ? 0 : drop - 32 > most_right ? most_right : drop - 32;
      const Place left = drop > 32 ? 0 : 32 - drop > most_left ? most_left : 32 - drop;
      const auto part = static_cast<std::uint32_t>((significand << left) >> right);
      rises = part > static_cast<std::uint32_t>(~word) ? 1 : 0;
    }
    const Bits least_or_zero = rises != 0 ? least : 0;
    rounded = drop > mantissa ? least_or_zero : rounded;
    const Bits limit = (negative_limit & negative_lanes) | (positive_limit & ~negative_lanes);
    rounded = rounded < limit ? rounded : limit;
    rounded = magnitude < first ? magnitude : rounded;
    rounded = magnitude >= end ? magnitude : rounded;
    x = rounded | is_negative;
    __builtin_memcpy(dst + i * sizeof x, &x, sizeof x);
  }
}

template <class Number>
void round_numbers(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                   const std::uint32_t* random) {
  switch (rule.word) {
    case Rounding::automatic:
    case Rounding::nearest_even:
      return round_each<Number, Kind::even>(src, dst, count, rule, random);
    case Rounding::nearest_away:
      return round_each<Number, Kind::away>(src, dst, count, rule, random);
    case Rounding::to_odd:
      return round_each<Number, Kind::odd>(src, dst, count, rule, random);
    case Rounding::stochastic:
      return round_each<Number, Kind::stochastic>(src, dst, count, rule, random);
    case Rounding::toward_zero:
    case Rounding::toward_positive:
    case Rounding::toward_negative:
      return round_each<Number, Kind::directed>(src, dst, count, rule, random);
  }
}

// Integers of 64 bits, which no float holds before they are rounded.
template <bool is_signed>
void round_integers(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                    const std::uint32_t* random) {
  const int digits = rule.kept_bits + 1;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t x;
    __builtin_memcpy(&x, src + i * sizeof x, sizeof x);
    bool is_negative = is_signed && x >> 63 != 0;
    const std::uint64_t magnitude = is_negative ? 0 - x : x;
    is_negative = is_negative && !rule.is_magnitude;
    const int width = 64 - __builtin_clzll(magnitude | 1);
    const int drop = width > digits ? width - digits : 0;
    const std::uint64_t last = std::uint64_t{1} << drop, below = last - 1;
    std::uint64_t added = 0;
    if (rule.word == Rounding::nearest_away) added = last >> 1;
    if (rule.word == (is_negative ? Rounding::toward_negative : Rounding::toward_positive)) added = below;
    if (rule.word == Rounding::stochastic)
      added = first_bits<std::uint64_t>(random[i], static_cast<std::uint64_t>(drop));
    std::uint64_t rounded = 0;
    const bool carries = __builtin_add_overflow(magnitude, added, &rounded);
    rounded &= ~below;
    if (rule.word == Rounding::to_odd && (magnitude & below) != 0) rounded |= last;
    double number = carries ? 0x1p64 : static_cast<double>(rounded);
    const double limit = is_negative ? rule.negative_limit : rule.positive_limit;
    number = number < limit ? number : limit;
    number = is_negative ? -number : number;
    __builtin_memcpy(dst + i * sizeof number, &number, sizeof number);
  }
}

}  // namespace

extern constexpr Rounders rounders = {.float32 = round_numbers<float>,
                                      .float64 = round_numbers<double>,
                                      .int64 = round_integers<true>,
                                      .uint64 = round_integers<false>};

void random_words(std::uint64_t seed, std::uint64_t first_block, std::size_t blocks, std::uint32_t* words) {
  namespace philox = codec::philox;
  constexpr std::size_t lanes = 64;  // so many that the compiler keeps the loops, and vectorizes them
  for (std::size_t done = 0; done < blocks; done += lanes) {
    std::uint32_t a[lanes], b[lanes], c[lanes], d[lanes];
    for (std::size_t i = 0; i < lanes; ++i) {
      const std::uint64_t block = first_block + done + i;
      a[i] = static_cast<std::uint32_t>(block);
      b[i] = static_cast<std::uint32_t>(block >> 32);
      c[i] = d[i] = 0;
    }
    auto key_0 = static_cast<std::uint32_t>(seed), key_1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < philox::rounds; ++round, key_0 += philox::step_0, key_1 += philox::step_1) {
      for (std::size_t i = 0; i < lanes; ++i) {
        const std::uint64_t product_0 = std::uint64_t{philox::multiplier_0} * a[i];
        const std::uint64_t product_1 = std::uint64_t{philox::multiplier_1} * c[i];
        a[i] = static_cast<std::uint32_t>(product_1 >> 32) ^ b[i] ^ key_0;
        b[i] = static_cast<std::uint32_t>(product_1);
        c[i] = static_cast<std::uint32_t>(product_0 >> 32) ^ d[i] ^ key_1;
        d[i] = static_cast<std::uint32_t>(product_0);
      }
    }
    const std::size_t size = blocks - done < lanes ? blocks - done : lanes;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint32_t block[] = {a[i], b[i], c[i], d[i]};
      __builtin_memcpy(words + 4 * (done + i), block, sizeof block);
    }
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
