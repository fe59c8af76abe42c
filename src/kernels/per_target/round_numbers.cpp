// SPDX-License-Identifier: Apache-2.0
// Rounding by a word: adds to the magnitude's bits what carries where the word says, and cuts. In integers, which no
// floating-point environment changes; conversions of other numbers to these run in the default one.
#include "kernels/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "codec/philox.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {
namespace {

template <class Number>
struct FormOf;
template <>
struct FormOf<float> {
  using Bits = std::uint32_t;
  using Place = std::int32_t;
  using Lanes = U32;
  using Places = I32;
  static constexpr int mantissa_bits = 23, bias = 127;
};
template <>
struct FormOf<double> {
  using Bits = std::uint64_t;
  using Place = std::int64_t;
  using Lanes = U64;
  using Places = I64;
  static constexpr int mantissa_bits = 52, bias = 1023;
};

// The first `count` bits of a random word, at the lowest places; count is below the bits of a word.
template <class Bits>
SIMD_INLINE Bits first_bits(Bits random, Bits count) {
  constexpr int width = 8 * sizeof(random[0]);
  return ((random << (width - 32)) >> 1) >> (width - 1 - count);
}

template <class Number, WordKind kind>
class Rounder {
  using Form = FormOf<Number>;
  using Bits = typename Form::Bits;
  using Place = typename Form::Place;
  static constexpr bool is_long = sizeof(Bits) == 8;
  static constexpr Place mantissa = Form::mantissa_bits;
  static constexpr Bits leading = Bits{1} << mantissa, sign = Bits{1} << (8 * sizeof(Bits) - 1);
  static constexpr Bits infinity = ~(leading - 1) & ~sign;

 public:
  using Lanes = typename Form::Lanes;
  using Places = typename Form::Places;

  explicit Rounder(const RoundRule& rule) {
    const Place all = rule.kept_bits < mantissa ? mantissa - rule.kept_bits : 0;
    const Place least_place = rule.is_power_of_two ? 0 : rule.last_place + Form::bias + mantissa;
    normal_drop_ = places(all);
    least_place_ = places(least_place);
    most_drop_ = places(std::min<Place>(mantissa, least_place - 1));  // subnormal numbers have the place of the first
    if (least_place > mantissa + 1) {
      least_ =
          std::bit_cast<Place>(static_cast<Number>(std::bit_cast<double>(std::uint64_t(rule.last_place + 1023) << 52)));
    }
    rises_above_ = places(kind == WordKind::away ? least_ - static_cast<Place>(leading) - 1 : 0);
    signs_ = lanes(rule.is_magnitude ? ~sign : ~Bits{0});
    if (rule.is_power_of_two) {  // and 1 is not the least odd code
      first_ = bits_of(0x1p-127);
      end_ = bits_of(0x1p127) + 1;
      odd_places_ = lanes(~Bits{0});
    }
    const Place is_up_above = rule.word == Rounding::toward_positive ? -1 : 0;
    flip_ = places(is_up_above);
    // Not infinity, which some targets tell from a number that is out of range.
    const auto limit_of = [](double limit) { return std::min<Place>(bits_of(limit), infinity - 1); };
    positive_limit_ = places(limit_of(rule.positive_limit));
    negative_limit_ = places(limit_of(rule.negative_limit));
  }

  SIMD_INLINE Lanes operator()(Lanes loaded, Lanes random) const {
    const Lanes x = loaded & signs_;
    const Places magnitude = as<Places>(x & ~sign), place = magnitude >> mantissa;
    const Places is_negative = as<Places>(x) < 0;
    const Places drop = least_place_ - place;
    const Places shift = larger(drop < most_drop_ ? drop : most_drop_, normal_drop_);
    const Lanes last = lanes(1) << as<Lanes>(shift), below = last - 1, bits = as<Lanes>(magnitude);
    const Lanes up = as<Lanes>(is_negative ^ flip_);
    Lanes rounded = bits;
    if constexpr (kind == WordKind::even) rounded += (below >> 1) + ((bits >> mantissa) & 1);
    if constexpr (kind == WordKind::away) rounded += last >> 1;
    if constexpr (kind == WordKind::directed) rounded += below & up;
    if constexpr (kind == WordKind::stochastic) rounded += first_bits(random, as<Lanes>(shift));
    rounded &= ~below;
    if constexpr (kind == WordKind::odd) rounded |= ((bits & below) + below) & last & odd_places_;
    // Less than the least number: it or zero.
    Lanes least_or_zero = {};
    if constexpr (kind == WordKind::away || kind == WordKind::odd) least_or_zero = least_above(magnitude, rises_above_);
    if constexpr (kind == WordKind::directed) least_or_zero = least_above(magnitude, Places{}) & up;
    if constexpr (kind == WordKind::stochastic) least_or_zero = least_by_chance(bits, drop, random);
    Places result = magnitude < least_ ? as<Places>(least_or_zero) : as<Places>(rounded);
    const Places limit = is_negative ? negative_limit_ : positive_limit_;
    result = result < limit ? result : limit;
    if constexpr (is_long) result = magnitude < first_ ? magnitude : result;
    result = magnitude < end_ ? result : magnitude;
    return as<Lanes>(result) | (x & sign);
  }

 private:
  static Lanes lanes(Bits x) { return Lanes{} + x; }
  static Places places(Place x) { return Places{} + x; }
  static Place bits_of(double x) { return std::bit_cast<Place>(static_cast<Number>(x)); }
  SIMD_INLINE static Places larger(Places a, Places b) { return a < b ? b : a; }
  SIMD_INLINE Lanes least_above(Places magnitude, Places limit) const {
    return as<Lanes>(magnitude > limit ? places(least_) : Places{});
  }
  // Whether the first 32 bits of the number's place below the least one and the random word carry.
  SIMD_INLINE Lanes least_by_chance(Lanes bits, Places drop, Lanes random) const {
    const Lanes significand =
        (bits & (leading - 1)) | (as<Places>(bits) < static_cast<Place>(leading) ? Lanes{} : lanes(leading));
    constexpr Place most_right = 8 * sizeof(Bits) - 1;
    const Places right = drop - 32, left = 32 - drop;
    const Lanes rights = as<Lanes>(right < 0 ? Places{} : right < most_right ? right : places(most_right));
    const Lanes lefts = as<Lanes>(left < 0 ? Places{} : left < 8 ? left : places(8));
    const Lanes part = (significand << lefts) >> rights;
    return as<Lanes>(part > (~random & 0xffffffff) ? places(least_) : Places{});
  }

  Places normal_drop_, least_place_, most_drop_, rises_above_, positive_limit_, negative_limit_, flip_;
  Place least_ = 0;                   // 0: no number is less than the least one and yet not a subnormal of Number
  Place first_ = 0, end_ = infinity;  // numbers that stay: those before the first, and from the end on
  Lanes signs_, odd_places_ = lanes(~leading);  // code 1 is odd already
};

// Words of as many lanes, each in a lane.
SIMD_INLINE U32 load_words(const std::uint32_t* random, U32) {
  return load<U32>(reinterpret_cast<const std::byte*>(random));
}
SIMD_INLINE U64 load_words(const std::uint32_t* random, U64) {
  typedef std::uint32_t Half __attribute__((vector_size(kRegisterBytes / 2)));
  return __builtin_convertvector(load<Half>(reinterpret_cast<const std::byte*>(random)), U64);
}

// Integers of 32 and 64 bits, which no float of as many holds before they are rounded, to float32 and float64. For
// types with more than one number in each power of two, by words that are not to nearest even.
template <class Integer, WordKind kind>
class IntegerRounder {
  static constexpr bool is_signed = std::is_signed_v<Integer>, is_long = sizeof(Integer) == 8;
  using Number = std::conditional_t<is_long, double, float>;
  using Form = FormOf<Number>;
  using Places = typename Form::Places;
  using Place = typename Form::Place;
  static constexpr Place sign_bit = std::numeric_limits<Place>::min();

 public:
  using Lanes = typename Form::Lanes;

  explicit IntegerRounder(const RoundRule& rule)
      : kept_exponent_(places(Form::bias + rule.kept_bits)),
        flip_(places(rule.word == Rounding::toward_positive ? -1 : 0)),
        positive_limit_(places(bits_of(rule.positive_limit))),
        negative_limit_(places(bits_of(rule.negative_limit))) {}

  SIMD_INLINE Lanes operator()(Lanes loaded, Lanes random) const {
    const Places x = as<Places>(loaded), sign = is_signed ? x < 0 : Places{};
    const Lanes magnitude = as<Lanes>(x ^ sign) - as<Lanes>(sign);
    // Without the digit behind the first one, the conversion does not reach the next power of two.
    const Places exponent = as<Places>(as<Lanes>(number_of(magnitude & ~(magnitude >> 1))) >> Form::mantissa_bits);
    const Places excess = exponent - kept_exponent_;
    const Lanes drop = as<Lanes>(excess > 0 ? excess : Places{}), last = (Lanes{} + 1) << drop, below = last - 1;
    Lanes added = {};
    if constexpr (kind == WordKind::away) added = last >> 1;
    if constexpr (kind == WordKind::directed) added = below & as<Lanes>(sign ^ flip_);
    if constexpr (kind == WordKind::stochastic) added = first_bits(random, drop);
    const Lanes sum = magnitude + added;
    Lanes rounded = sum & ~below;
    if constexpr (kind == WordKind::odd) rounded |= ((magnitude & below) + below) & last;
    const Places past_all = places(bits_of(is_long ? 0x1p64 : 0x1p32));
    const Places number = sum < added ? past_all : number_of(rounded);
    const Places limit = sign != 0 ? negative_limit_ : positive_limit_;
    return as<Lanes>((number < limit ? number : limit) | (sign & sign_bit));
  }

 private:
  static Places places(Place x) { return Places{} + x; }
  static Place bits_of(double x) { return std::bit_cast<Place>(static_cast<Number>(x)); }
  SIMD_INLINE static Places number_of(Lanes x) {
    if constexpr (is_long) {
      return as<Places>(to_f64<false>(as<Places>(x))) & ~sign_bit;
    } else {
      return as<Places>(to_f32<false>(as<Places>(x)));
    }
  }

  Places kept_exponent_, flip_, positive_limit_, negative_limit_;
};

template <template <class, WordKind> class Round, class Number, WordKind kind>
[[gnu::noinline]] void round_each(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                                  const std::uint32_t* random) {
  const Round<Number, kind> round(rule);
  using Lanes = typename Round<Number, kind>::Lanes;
  constexpr std::size_t lanes = sizeof(Lanes) / sizeof(Number);
  const auto words = [&](std::size_t i) {
    if constexpr (kind == WordKind::stochastic) return load_words(random + i, Lanes{});
    return Lanes{};
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    store(dst + i * sizeof(Number), round(load<Lanes>(src + i * sizeof(Number)), words(i)));
  }
  if (i == count) return;
  Lanes rest = {};
  std::memcpy(&rest, src + i * sizeof(Number), (count - i) * sizeof(Number));
  rest = round(rest, words(i));
  std::memcpy(dst + i * sizeof(Number), &rest, (count - i) * sizeof(Number));
}

template <template <class, WordKind> class Round, class Number>
void round_numbers(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                   const std::uint32_t* random) {
  switch (rule.word) {
    case Rounding::automatic:
    case Rounding::nearest_even:
      return round_each<Round, Number, WordKind::even>(src, dst, count, rule, random);
    case Rounding::nearest_away:
      return round_each<Round, Number, WordKind::away>(src, dst, count, rule, random);
    case Rounding::to_odd:
      return round_each<Round, Number, WordKind::odd>(src, dst, count, rule, random);
    case Rounding::stochastic:
      return round_each<Round, Number, WordKind::stochastic>(src, dst, count, rule, random);
    case Rounding::toward_zero:
      return round_each<Round, Number, WordKind::zero>(src, dst, count, rule, random);
    case Rounding::toward_positive:
    case Rounding::toward_negative:
      return round_each<Round, Number, WordKind::directed>(src, dst, count, rule, random);
  }
}

template <class Integer>
void round_integers(const std::byte* src, std::byte* dst, std::size_t count, const RoundRule& rule,
                    const std::uint32_t* random) {
  in_default_environment([&] { round_numbers<IntegerRounder, Integer>(src, dst, count, rule, random); });
}

// The integer's first 53 digits, the last of which is set if others follow.
template <bool is_signed>
SIMD_INLINE F64 to_f64_odd(I64 x) {
  constexpr std::int64_t cut = (1 << 11) - 1, two_to_eleven = std::int64_t{11} << 52;
  const I64 sign = is_signed ? x < 0 : I64{};
  const U64 magnitude = as<U64>(negated_where(sign, x));
  const I64 is_long = as<I64>((magnitude >> 53) != 0);
  const U64 first = (magnitude >> 11) | (((magnitude & cut) + cut) >> 11);
  const I64 digits = is_long ? as<I64>(first) : as<I64>(magnitude);
  return as<F64>((as<I64>(to_f64<false>(digits)) + (is_long & two_to_eleven)) | (sign & INT64_MIN));
}

// Elements of kLanes, and the rest as if zeros followed.
template <std::size_t from_bytes, std::size_t to_bytes, class Function>
SIMD_INLINE void narrow_each(const std::byte* src, std::byte* dst, std::size_t count, Function function) {
  for (; count >= kLanes; count -= kLanes, src += kLanes * from_bytes, dst += kLanes * to_bytes) function(src, dst);
  if (count == 0) return;
  std::byte rest[kLanes * from_bytes] = {}, narrow[kLanes * to_bytes];
  std::memcpy(rest, src, count * from_bytes);
  function(rest, narrow);
  std::memcpy(dst, narrow, count * to_bytes);
}

template <bool is_signed>
[[gnu::noinline]] void long_to_float64(const std::byte* src, std::byte* dst, std::size_t count) {
  narrow_each<8, 8>(src, dst, count, [](const std::byte* in, std::byte* out) {
    store(out, to_f64_odd<is_signed>(load<I64>(in)));
    store(out + kRegisterBytes, to_f64_odd<is_signed>(load<I64>(in + kRegisterBytes)));
  });
}

template <bool is_signed>
[[gnu::noinline]] void long_to_float32(const std::byte* src, std::byte* dst, std::size_t count) {
  narrow_each<8, 4>(src, dst, count, [](const std::byte* in, std::byte* out) {
    store(out,
          narrow_odd({to_f64_odd<is_signed>(load<I64>(in)), to_f64_odd<is_signed>(load<I64>(in + kRegisterBytes))}));
  });
}

// Whether the CPU has no conversion of 64-bit lanes, which would be faster.
constexpr bool limits_long = kRegisterBytes == 32;

// Right below 2^24. What is above stays above, which is enough for types that end below.
template <bool is_signed>
[[gnu::noinline]] void long_to_limited_float32(const std::byte* src, std::byte* dst, std::size_t count) {
  narrow_each<8, 4>(src, dst, count, [](const std::byte* in, std::byte* out) {
    store(out, to_f32_clamped<is_signed>({load<I64>(in), load<I64>(in + kRegisterBytes)}));
  });
}

template <bool is_signed>
[[gnu::noinline]] void int_to_float32(const std::byte* src, std::byte* dst, std::size_t count) {
  narrow_each<4, 4>(src, dst, count, [](const std::byte* in, std::byte* out) {
    store(out, to_f32<is_signed>(round_to_odd_24<is_signed>(load<I32>(in))));
  });
}

// Finite numbers that float32 lacks become its largest, which is odd.
SIMD_INLINE F64 within_float32(F64 x) {
  constexpr auto largest = std::bit_cast<std::int64_t>(0x1.fffffep127);
  constexpr std::int64_t infinity = 0x7ff0000000000000;
  const I64 bits = as<I64>(x), magnitude = bits & INT64_MAX;
  const I64 limited = magnitude > largest ? I64{} + largest : magnitude;
  return as<F64>(magnitude < infinity ? limited | (bits & INT64_MIN) : bits);
}

[[gnu::noinline]] void double_to_float32(const std::byte* src, std::byte* dst, std::size_t count) {
  narrow_each<8, 4>(src, dst, count, [](const std::byte* in, std::byte* out) {
    store(out, narrow_odd({within_float32(load<F64>(in)), within_float32(load<F64>(in + kRegisterBytes))}));
  });
}

template <NarrowFn narrow>
void run_narrow(const std::byte* src, std::byte* dst, std::size_t count) {
  in_default_environment([&] { narrow(src, dst, count); });
}

// In memory, from which they are copied to all lanes as they are read.
struct PhiloxKeys {
  explicit PhiloxKeys(std::uint64_t seed) {
    auto first = static_cast<std::uint32_t>(seed), second = static_cast<std::uint32_t>(seed >> 32);
    for (int i = 0; i < codec::philox::rounds; ++i, first += codec::philox::step_0, second += codec::philox::step_1) {
      of_round[i][0] = first;
      of_round[i][1] = second;
    }
  }
  std::uint64_t of_round[codec::philox::rounds][2];
};

// Blocks of random words that follow each other, one in each lane of 64 bits, whose lower half counts. Even lanes have
// the first half of the blocks, so that pairs of lanes interleave in order.
class PhiloxBlocks {
 public:
  static constexpr std::size_t count = kRegisterBytes / sizeof(std::uint64_t);

  // After two rounds, which share a product and have no second one, as words 1 to 3 of all counters are the same.
  // Precondition: the lower half of the counter does not overflow.
  SIMD_INLINE void start(std::uint64_t first, const PhiloxKeys& keys) {
    U64 counters = {};
    for (std::size_t i = 0; i < count; ++i) counters[i] = i % 2 * (count / 2) + i / 2;
    const U64 product = multiply_low_halves(counters + first, U64{} + codec::philox::multiplier_0);
    const std::uint64_t shared = ((first >> 32) ^ keys.of_round[0][0]) * codec::philox::multiplier_0;
    b_ = multiply_low_halves((product >> 32) ^ keys.of_round[0][1], U64{} + codec::philox::multiplier_1);
    a_ = (b_ >> 32) ^ keys.of_round[1][0];
    c_ = product ^ ((shared >> 32) ^ keys.of_round[1][1]);
    d_ = U64{} + shared;
  }
  static constexpr int rounds_of_start = 2;

  SIMD_INLINE void mix(const PhiloxKeys& keys, int round) {
    const U64 product_0 = multiply_low_halves(a_, U64{} + codec::philox::multiplier_0);
    const U64 product_1 = multiply_low_halves(c_, U64{} + codec::philox::multiplier_1);
    a_ = (product_1 >> 32) ^ b_ ^ keys.of_round[round][0];
    b_ = product_1;
    c_ = (product_0 >> 32) ^ d_ ^ keys.of_round[round][1];
    d_ = product_0;
  }

  SIMD_INLINE void store_words(std::uint32_t* words) const {
    constexpr std::uint64_t low = 0xffffffff;
    const U64 first = (a_ & low) | (b_ << 32), second = (c_ & low) | (d_ << 32);
    auto* const bytes = reinterpret_cast<std::byte*>(words);
    store(bytes, even_lanes(first, second, std::make_index_sequence<count>()));
    store(bytes + kRegisterBytes, odd_lanes(first, second, std::make_index_sequence<count>()));
  }

 private:
  template <std::size_t... i>
  SIMD_INLINE static U64 even_lanes(U64 x, U64 y, std::index_sequence<i...>) {
    return __builtin_shufflevector(x, y, (i % 2 == 0 ? i : count + i - 1)...);
  }
  template <std::size_t... i>
  SIMD_INLINE static U64 odd_lanes(U64 x, U64 y, std::index_sequence<i...>) {
    return __builtin_shufflevector(x, y, (i % 2 == 0 ? i + 1 : count + i)...);
  }

  U64 a_, b_, c_, d_;
};

// Several blocks at once hide each other's latency: as many as there are registers for. Inlined, g++ would keep the
// keys in registers instead.
template <int chains>
[[gnu::noinline]] void make_words(std::uint64_t first, std::size_t times, const PhiloxKeys& keys,
                                  std::uint32_t* words) {
  for (; times != 0; --times) {
    PhiloxBlocks blocks[chains];
#pragma GCC unroll 4
    for (int i = 0; i < chains; ++i, first += PhiloxBlocks::count) blocks[i].start(first, keys);
#pragma GCC unroll 9
    for (int round = PhiloxBlocks::rounds_of_start; round < codec::philox::rounds; ++round) {
#pragma GCC unroll 4
      for (int i = 0; i < chains; ++i) blocks[i].mix(keys, round);
    }
#pragma GCC unroll 4
    for (int i = 0; i < chains; ++i, words += 4 * PhiloxBlocks::count) blocks[i].store_words(words);
  }
}

}  // namespace

extern constexpr Rounders rounders = {
    .float32 = round_numbers<Rounder, float>,
    .float64 = round_numbers<Rounder, double>,
    .int32 = round_integers<std::int32_t>,
    .uint32 = round_integers<std::uint32_t>,
    .int64 = round_integers<std::int64_t>,
    .uint64 = round_integers<std::uint64_t>,
    .int64_to_float64 = run_narrow<long_to_float64<true>>,
    .uint64_to_float64 = run_narrow<long_to_float64<false>>,
    .int64_to_float32 = run_narrow<long_to_float32<true>>,
    .uint64_to_float32 = run_narrow<long_to_float32<false>>,
    .int64_limited = limits_long ? run_narrow<long_to_limited_float32<true>> : nullptr,
    .uint64_limited = limits_long ? run_narrow<long_to_limited_float32<false>> : nullptr,
    .int32_to_float32 = run_narrow<int_to_float32<true>>,
    .uint32_to_float32 = run_narrow<int_to_float32<false>>,
    .float64_to_float32 = run_narrow<double_to_float32>};

void random_words(std::uint64_t seed, std::uint64_t first_block, std::size_t blocks, std::uint32_t* words) {
  const PhiloxKeys keys(seed);
  constexpr int chains = kRegisterBytes == 64 ? 4 : 2;
  constexpr std::size_t lanes = PhiloxBlocks::count, at_once = chains * lanes;
  while (blocks != 0) {
    const std::uint64_t to_overflow = (std::uint64_t{1} << 32) - static_cast<std::uint32_t>(first_block);
    const std::size_t times = std::min<std::uint64_t>(blocks, to_overflow) / at_once;
    std::size_t made = std::max<std::size_t>(1, times * at_once);
    if (times != 0) {
      make_words<chains>(first_block, times, keys, words);
    } else if (to_overflow >= lanes) {
      alignas(64) std::uint32_t some[4 * lanes];
      make_words<1>(first_block, 1, keys, some);
      made = std::min(blocks, lanes);
      __builtin_memcpy(words, some, 16 * made);
    } else {
      const codec::PhiloxBlock block = codec::random_block(seed, first_block);
      __builtin_memcpy(words, block.data(), sizeof block);
    }
    blocks -= made;
    first_block += made;
    words += 4 * made;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
