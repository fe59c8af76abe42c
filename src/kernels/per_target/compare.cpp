// SPDX-License-Identifier: Apache-2.0
#include "kernels/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {
namespace {

// --- Vectors of float32 or float64

SIMD_INLINE F32 magnitude(F32 x) { return as<F32>(as<I32>(x) & INT32_MAX); }
SIMD_INLINE F64 magnitude(F64 x) { return as<F64>(as<I64>(x) & INT64_MAX); }

template <class V>
struct LanesOf;
template <>
struct LanesOf<F32> {
  using Number = float;
  using Mask = Mask32;
  using Counts = I32;
};
template <>
struct LanesOf<F64> {
  using Number = double;
  using Mask = Mask64;
  using Counts = I64;
};

// Lanes count up to 2^31 elements each.
template <class Counts>
SIMD_INLINE std::uint64_t sum_of_lanes(Counts counts) {
  return static_cast<std::uint64_t>(reduce(counts, [](auto a, auto b) { return a + b; }));
}

SIMD_INLINE Range<float> range_of(const CompareRules& rules, float) { return rules.of_float32; }
SIMD_INLINE Range<double> range_of(const CompareRules& rules, double) { return rules.of_float64; }

// --- Tests of ranges

template <class V>
bool any_outside(const std::byte* numbers, std::size_t count, double low, double high) {
  using Number = typename LanesOf<V>::Number;
  constexpr std::size_t unit = sizeof(V) / sizeof(Number), units = 4;
  const V least = splat(static_cast<Number>(low)), greatest = splat(static_cast<Number>(high));
  const auto inside = [&](const std::byte* at) SIMD_INLINE_LAMBDA {
    const V x = load<V>(at);
    return mask_and(greater_equal(x, least), greater_equal(greatest, x));
  };
  for (; count >= units * unit; count -= units * unit, numbers += units * sizeof(V)) {
    const auto first = mask_and(inside(numbers), inside(numbers + sizeof(V)));
    const auto second = mask_and(inside(numbers + 2 * sizeof(V)), inside(numbers + 3 * sizeof(V)));
    if (!all_of(mask_and(first, second))) return true;
  }
  for (; count != 0; --count, numbers += sizeof(Number)) {
    Number x;
    std::memcpy(&x, numbers, sizeof x);
    if (!(x >= static_cast<Number>(low) && x <= static_cast<Number>(high))) return true;
  }
  return false;
}

// --- What both loops share

constexpr std::size_t wide_lanes = sizeof(F64) / sizeof(double);

// The sums of squares, in registers.
struct Squares {
  static constexpr std::size_t registers = accumulator_count / wide_lanes;
  F64 signal[registers], noise[registers];

  SIMD_INLINE explicit Squares(const CompareSums& sums) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < registers; ++i) {
      signal[i] = load<F64>(reinterpret_cast<const std::byte*>(&sums.signal[i * wide_lanes]));
      noise[i] = load<F64>(reinterpret_cast<const std::byte*>(&sums.noise[i * wide_lanes]));
    }
  }
  SIMD_INLINE void store_to(CompareSums& sums) const {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < registers; ++i) {
      store(reinterpret_cast<std::byte*>(&sums.signal[i * wide_lanes]), signal[i]);
      store(reinterpret_cast<std::byte*>(&sums.noise[i * wide_lanes]), noise[i]);
    }
  }
};

// The largest relative error so far, made a little smaller, as its product with a source is rounded. It does not grow
// if an element's error is less than that product.
template <class Number>
SIMD_INLINE Number share_to_exceed(const CompareSums& sums) {
  constexpr double less_than_one = sizeof(Number) == 4 ? 1.0 - 0x1p-21 : 1.0 - 0x1p-50;
  constexpr double largest = static_cast<double>(std::numeric_limits<Number>::max());
  return static_cast<Number>(std::min(sums.max_rel_error, largest) * less_than_one);
}

// Adds relative errors to the largest. Returns whether it grows: of small integers, many errors are just as large.
SIMD_INLINE bool grow_max_rel_error(F64 x, F64 error, CompareSums& sums) {
  const F64 quotient = select(not_equal(x, F64{}), magnitude(error) / magnitude(x), F64{});
  if (!any_of(less(splat(sums.max_rel_error), quotient))) return false;
  sums.max_rel_error = reduce_max(quotient);
  return true;
}

// A result of zero has a relative error of 1.
template <class Counts>
SIMD_INLINE void add_counts(Counts inexact, Counts zeroed, double max_abs_error, CompareSums& sums) {
  const std::uint64_t zeros = sum_of_lanes(zeroed);
  sums.zeroed += zeros;
  sums.inexact += sum_of_lanes(inexact);
  sums.max_abs_error = std::max(sums.max_abs_error, max_abs_error);
  if (zeros != 0) sums.max_rel_error = std::max(sums.max_rel_error, 1.0);
}

// --- The loop for plain float32

// Compares pairs of which CompareRules::plain has all sources. Their squares are exact in float64, so every target may
// add them in its own way.
void compare_plain(const ComparedPairs& pairs, std::size_t count, CompareSums& sums) {
  Squares squares(sums);
  F32 share = splat(share_to_exceed<float>(sums));
  I32 inexact = {}, zeroed = {}, max_abs = {};  // as bits, which are ordered as the numbers are
  const auto add_round = [&](const std::byte* source, const std::byte* result) SIMD_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < accumulator_count / kLanes; ++r, source += sizeof(F32), result += sizeof(F32)) {
      const F32 x = load<F32>(source), y = load<F32>(result), error = x - y;
      const Mask32 is_inexact = not_equal(x, y), is_nonzero = not_equal(y, F32{});
      inexact = count_where(inexact, is_inexact);
      zeroed = count_where(zeroed, mask_and_not(is_inexact, is_nonzero));
      max_abs = max(max_abs, as<I32>(magnitude(error)));
      squares.signal[2 * r] = add_square(squares.signal[2 * r], load_widened(source));
      squares.signal[2 * r + 1] = add_square(squares.signal[2 * r + 1], load_widened(source + sizeof(F32) / 2));
      const F64x2 wide = widen(error);
      squares.noise[2 * r] = add_square(squares.noise[2 * r], wide.lo);
      squares.noise[2 * r + 1] = add_square(squares.noise[2 * r + 1], wide.hi);
      const Mask32 may_grow =
          mask_and(greater_equal(magnitude(error), share * magnitude(x)), mask_and(is_inexact, is_nonzero));
      if (any_of(may_grow)) [[unlikely]] {
        const F64x2 wide_x = widen(x);
        const bool low_grows = grow_max_rel_error(wide_x.lo, wide.lo, sums);
        const bool high_grows = grow_max_rel_error(wide_x.hi, wide.hi, sums);
        if (low_grows || high_grows) share = splat(share_to_exceed<float>(sums));
      }
    }
  };
  const std::size_t rest = count % accumulator_count;
  const std::byte* const end = pairs.source + (count - rest) * sizeof(float);
  const std::byte *source = pairs.source, *result = pairs.result;
  constexpr std::size_t round_bytes = accumulator_count * sizeof(float);
  for (; source != end; source += round_bytes, result += round_bytes) add_round(source, result);
  if (rest != 0) {  // filled up with zeros, which add nothing
    float last_sources[accumulator_count] = {}, last_results[accumulator_count] = {};
    std::memcpy(last_sources, source, rest * sizeof(float));
    std::memcpy(last_results, result, rest * sizeof(float));
    add_round(reinterpret_cast<const std::byte*>(last_sources), reinterpret_cast<const std::byte*>(last_results));
  }
  squares.store_to(sums);
  add_counts(inexact, zeroed, static_cast<double>(reduce_max(as<F32>(max_abs))), sums);
}

// --- The loop for all numbers

// Compares `lanes` pairs at a time; 16 pairs are a round of the accumulators. `V` is the vector of sources and of
// results. `has_low`: each number is the sum of two.
template <class V, bool has_low>
class Comparison {
 public:
  using Number = typename LanesOf<V>::Number;
  static constexpr std::size_t lanes = sizeof(V) / sizeof(Number);

  Comparison(const CompareRules& rules, CompareSums& sums)
      : rules_(rules), range_(range_of(rules, Number{})), sums_(sums) {}

  void add(const ComparedPairs& pairs, std::size_t count) {
    State state = {.squares = Squares(sums_), .share = splat(share_to_exceed<Number>(sums_))};
    std::size_t first = 0;
    for (; first + accumulator_count <= count; first += accumulator_count) add_round(pairs, first, state);
    if (first < count) add_last(pairs, first, count - first, state);
    store_sums(state);
  }

 private:
  using Mask = typename LanesOf<V>::Mask;
  using Counts = typename LanesOf<V>::Counts;
  static constexpr Number infinity = std::numeric_limits<Number>::infinity();

  // Kept in registers.
  struct State {
    Squares squares;
    V share;
    F64 max_abs = {};
    Counts inexact = {}, zeroed = {}, out_of_range = {}, overflowed = {}, nan_made = {}, nan_lost = {};
  };
  struct Lanes {
    V x = {}, y = {}, x_low = {}, y_low = {};
  };

  SIMD_INLINE void store_sums(const State& state) {
    state.squares.store_to(sums_);
    add_counts(state.inexact, state.zeroed, reduce_max(state.max_abs), sums_);
    sums_.out_of_range += sum_of_lanes(state.out_of_range);
    sums_.overflowed += sum_of_lanes(state.overflowed);
    sums_.nan_made += sum_of_lanes(state.nan_made);
    sums_.nan_lost += sum_of_lanes(state.nan_lost);
  }

  SIMD_INLINE void add_round(const ComparedPairs& pairs, std::size_t first, State& state) {
#pragma GCC unroll 8
    for (std::size_t r = 0; r < accumulator_count / lanes; ++r) {
      const std::size_t at = first + r * lanes;
      Lanes in;
      in.x = load<V>(pairs.source + at * sizeof(Number));
      in.y = load<V>(pairs.result + at * sizeof(Number));
      if constexpr (has_low) {
        in.x_low = load<V>(reinterpret_cast<const std::byte*>(pairs.source_low + at));
        in.y_low = load<V>(reinterpret_cast<const std::byte*>(pairs.result_low + at));
      }
      add_lanes(in, r, state);
    }
  }

  // Fills up with pairs of NaN, which count nowhere.
  void add_last(const ComparedPairs& pairs, std::size_t first, std::size_t count, State& state) {
    Number x[accumulator_count], y[accumulator_count];
    double x_low[accumulator_count] = {}, y_low[accumulator_count] = {};
    std::fill_n(x, accumulator_count, std::numeric_limits<Number>::quiet_NaN());
    std::fill_n(y, accumulator_count, std::numeric_limits<Number>::quiet_NaN());
    std::memcpy(x, pairs.source + first * sizeof(Number), count * sizeof(Number));
    std::memcpy(y, pairs.result + first * sizeof(Number), count * sizeof(Number));
    if constexpr (has_low) {
      std::memcpy(x_low, pairs.source_low + first, count * sizeof(double));
      std::memcpy(y_low, pairs.result_low + first, count * sizeof(double));
    }
    add_round({reinterpret_cast<const std::byte*>(x), reinterpret_cast<const std::byte*>(y), x_low, y_low}, 0, state);
  }

  SIMD_INLINE static V error(const Lanes& in) {
    if constexpr (has_low) return (in.x - in.y) + (in.x_low - in.y_low);
    return in.x - in.y;
  }

  SIMD_INLINE void add_lanes(Lanes in, std::size_t r, State& state) {
    Mask out_of_range = out_of_range_of(in);
    V difference = error(in);
    const Mask is_finite = less(magnitude(difference), splat(infinity));
    if (!all_of(is_finite)) [[unlikely]] {
      const Mask x_is_finite = less(magnitude(in.x), splat(infinity)),
                 y_is_finite = less(magnitude(in.y), splat(infinity));
      const Mask x_is_nan = not_equal(in.x, in.x), y_is_nan = not_equal(in.y, in.y);
      state.overflowed = count_where(state.overflowed, mask_and_not(x_is_finite, y_is_finite));
      state.nan_made = count_where(state.nan_made, mask_and_not(y_is_nan, x_is_nan));
      state.nan_lost = count_where(state.nan_lost, mask_and_not(x_is_nan, y_is_nan));
      out_of_range = mask_and(out_of_range, y_is_finite);
      in.x = select(is_finite, in.x, V{});
      in.y = select(is_finite, in.y, V{});
      difference = select(is_finite, difference, V{});
    }

    const Mask is_inexact = not_equal(difference, V{});
    const Mask is_nonzero = not_equal(in.y, V{});
    state.inexact = count_where(state.inexact, is_inexact);
    state.zeroed = count_where(state.zeroed, mask_and_not(is_inexact, is_nonzero));
    state.out_of_range = count_where(state.out_of_range, out_of_range);
    // A result of zero has a relative error of 1; store_sums() adds it if any result is zero.
    const Mask may_grow =
        mask_and(greater_equal(magnitude(difference), state.share * magnitude(in.x)), mask_and(is_inexact, is_nonzero));

    if constexpr (lanes == wide_lanes) {
      add_squares(in.x, difference, r, state);
      if (any_of(may_grow)) [[unlikely]]
        grow(in.x, difference, state);
    } else {
      // float32 lacks digits for the errors of numbers out of range.
      const F64x2 x = widen(in.x), y = widen(in.y);
      add_squares(x.lo, x.lo - y.lo, 2 * r, state);
      add_squares(x.hi, x.hi - y.hi, 2 * r + 1, state);
      if (any_of(may_grow)) [[unlikely]] {
        grow(x.lo, x.lo - y.lo, state);
        grow(x.hi, x.hi - y.hi, state);
      }
    }
  }

  SIMD_INLINE Mask out_of_range_of(const Lanes& in) const {
    if constexpr (has_low) {
      // The difference of near numbers is exact, so its sign is right.
      const V over = (in.x - rules_.of_sums.above.high) + (in.x_low - rules_.of_sums.above.low);
      const V under = (in.x - rules_.of_sums.below.high) + (in.x_low - rules_.of_sums.below.low);
      return mask_or(greater_equal(over, V{}), greater_equal(V{}, under));
    } else {
      return mask_or(greater_equal(in.x, splat(range_.above)), greater_equal(splat(range_.below), in.x));
    }
  }

  SIMD_INLINE static void add_squares(F64 x, F64 difference, std::size_t accumulator, State& state) {
    state.max_abs = max(magnitude(difference), state.max_abs);
    state.squares.signal[accumulator] += x * x;
    state.squares.noise[accumulator] += difference * difference;
  }

  SIMD_INLINE void grow(F64 x, F64 difference, State& state) {
    if (grow_max_rel_error(x, difference, sums_)) state.share = splat(share_to_exceed<Number>(sums_));
  }

  const CompareRules& rules_;
  const Range<Number> range_;  // of numbers that are not sums
  CompareSums& sums_;
};

}  // namespace

// --- The functions in Ops. They run in the default environment, as callers may flush subnormal numbers to zero.

void compare_float32(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                     CompareSums& sums) noexcept {
  in_default_environment([&] {
    if (any_outside<F32>(pairs.source, count, rules.plain.low, rules.plain.high)) {
      Comparison<F32, false>(rules, sums).add(pairs, count);
    } else {
      compare_plain(pairs, count, sums);
    }
  });
}

void compare_float64(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                     CompareSums& sums) noexcept {
  in_default_environment([&] {
    if (pairs.source_low == nullptr) {
      Comparison<F64, false>(rules, sums).add(pairs, count);
    } else {
      Comparison<F64, true>(rules, sums).add(pairs, count);
    }
  });
}

// The halves of an integer are exact as float64, so the error of their rounded sum is exact too.
void split_integers(const std::byte* integers, bool is_signed, double* high, double* low, std::size_t count) noexcept {
  in_default_environment([&] {
    for (std::size_t i = 0; i < count; ++i) {
      std::uint64_t bits;
      std::memcpy(&bits, integers + i * sizeof bits, sizeof bits);
      const auto upper = static_cast<std::uint32_t>(bits >> 32);
      const double a = (is_signed ? static_cast<double>(static_cast<std::int32_t>(upper)) : static_cast<double>(upper));
      const auto b = static_cast<double>(static_cast<std::uint32_t>(bits));
      high[i] = a * 0x1p32 + b;
      low[i] = b - (high[i] - a * 0x1p32);
    }
  });
}

bool split_products(double* numbers, double scale, double* low, std::size_t count) noexcept {
  return in_default_environment([&] {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    bool is_exact = true;
    for (std::size_t i = 0; i < count; ++i) {
      const double x = numbers[i];
      const double product = x * scale;
      const bool is_finite = std::fabs(product) < infinity;
      const bool is_trivial = x == 0.0 || scale == 0.0 || !(std::fabs(x) < infinity);
      is_exact &= is_trivial || (is_finite && std::fabs(product) >= 0x1p-960);
      numbers[i] = product;
      low[i] = is_finite ? std::fma(x, scale, -product) : 0.0;
    }
    return is_exact;
  });
}

bool any_outside_float32(const std::byte* numbers, std::size_t count, double low, double high) noexcept {
  return in_default_environment([&] { return any_outside<F32>(numbers, count, low, high); });
}

bool any_outside_float64(const std::byte* numbers, std::size_t count, double low, double high) noexcept {
  return in_default_environment([&] { return any_outside<F64>(numbers, count, low, high); });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
