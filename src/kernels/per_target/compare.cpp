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

// --- Vectors of float32 or float64. Masks here are vectors of 0 and -1 on every target: most of them are counted.

SIMD_INLINE I32 magnitude_bits(I32 bits) { return bits & INT32_MAX; }
SIMD_INLINE I64 magnitude_bits(I64 bits) { return bits & INT64_MAX; }
SIMD_INLINE F32 magnitude(F32 x) { return as<F32>(magnitude_bits(as<I32>(x))); }
SIMD_INLINE F64 magnitude(F64 x) { return as<F64>(magnitude_bits(as<I64>(x))); }
SIMD_INLINE bool any_lane(I32 mask) { return any(greater(as<U32>(mask), U32{})); }
SIMD_INLINE bool any_lane(I64 mask) { return any_lane(as<I32>(mask)); }
SIMD_INLINE F32 keep_where(I32 mask, F32 x) { return as<F32>(as<I32>(x) & mask); }
SIMD_INLINE F64 keep_where(I64 mask, F64 x) { return as<F64>(as<I64>(x) & mask); }
SIMD_INLINE F64 greater_of(F64 a, F64 b) { return a > b ? a : b; }

template <class V>
struct LanesOf;
template <>
struct LanesOf<F32> {
  using Number = float;
  using Mask = I32;
};
template <>
struct LanesOf<F64> {
  using Number = double;
  using Mask = I64;
};

template <class Mask>
std::uint64_t total(Mask counts) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) sum += static_cast<std::uint64_t>(counts[i]);
  return sum;
}

// --- The loop

// The first number of a type that is not below `bound`, and the last one that is not above it. NaN stays.
template <class Number>
Number rounded_up(DoubleDouble bound) {
  constexpr Number infinity = std::numeric_limits<Number>::infinity();
  if (bound.high > static_cast<double>(std::numeric_limits<Number>::max())) return infinity;
  const auto nearest = static_cast<Number>(bound.high);
  const double rest = (bound.high - static_cast<double>(nearest)) + bound.low;
  return rest > 0.0 ? std::nextafter(nearest, infinity) : nearest;
}
template <class Number>
Number rounded_down(DoubleDouble bound) {
  return -rounded_up<Number>({-bound.high, -bound.low});
}

// Compares `lanes` pairs at a time; 16 of them are a round of the accumulators. `V` is the vector that holds sources
// and results, `has_low` says that each of them is the sum of two.
template <class V, bool has_low>
class Comparison {
 public:
  using Number = typename LanesOf<V>::Number;
  static constexpr std::size_t lanes = sizeof(V) / sizeof(Number);

  Comparison(const CompareRules& rules, CompareSums& sums)
      : rules_(rules),
        sums_(sums),
        below_(rounded_down<Number>(rules.below)),
        above_(rounded_up<Number>(rules.above)) {}

  void add(const ComparedPairs& pairs, std::size_t count) {
    State state;
    std::memcpy(state.signal, sums_.signal.data(), sizeof state.signal);
    std::memcpy(state.noise, sums_.noise.data(), sizeof state.noise);
    state.share = splat(share_to_exceed());
    std::size_t first = 0;
    for (; first + accumulator_count <= count; first += accumulator_count) add_round(pairs, first, state);
    if (first < count) add_last(pairs, first, count - first, state);

    std::memcpy(sums_.signal.data(), state.signal, sizeof state.signal);
    std::memcpy(sums_.noise.data(), state.noise, sizeof state.noise);
    const std::uint64_t zeroed = total(state.zeroed);
    sums_.zeroed += zeroed;
    sums_.inexact += total(state.inexact);
    sums_.out_of_range += total(state.out_of_range);
    sums_.max_rel_error = std::max(sums_.max_rel_error, zeroed != 0 ? 1.0 : 0.0);
    for (std::size_t i = 0; i < sizeof(F64) / sizeof(double); ++i) {
      sums_.max_abs_error = std::max(sums_.max_abs_error, static_cast<double>(state.max_abs[i]));
    }
  }

 private:
  using Mask = typename LanesOf<V>::Mask;
  static constexpr std::size_t wide_lanes = sizeof(F64) / sizeof(double);

  // Kept in registers.
  struct State {
    F64 signal[accumulator_count / wide_lanes], noise[accumulator_count / wide_lanes];
    F64 max_abs = {};
    V share;
    Mask inexact = {}, zeroed = {}, out_of_range = {};
  };
  struct Lanes {
    V x = {}, y = {}, x_low = {}, y_low = {};
  };

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
    const Mask is_finite = magnitude(difference) < splat(std::numeric_limits<Number>::infinity());
    if (any_lane(~is_finite)) [[unlikely]] {
      count_not_finite(in);
      in.x = keep_where(is_finite, in.x);
      in.y = keep_where(is_finite, in.y);
      out_of_range &= is_finite;
      difference = keep_where(is_finite, difference);
    }

    const Mask is_inexact = difference != V{};
    const Mask is_zero = in.y == V{};
    state.inexact -= is_inexact;
    state.zeroed -= is_inexact & is_zero;
    state.out_of_range -= out_of_range;
    // A result of zero has a relative error of 1, which the count of them tells.
    const Mask may_grow = is_inexact & ~is_zero & ~(magnitude(difference) < state.share * magnitude(in.x));

    if constexpr (lanes == wide_lanes) {
      add_squares(in.x, difference, r, state);
      if (any_lane(may_grow)) [[unlikely]]
        grow_share(in.x, difference, state);
    } else {
      // float32 lacks digits for the errors of numbers out of range.
      const F64x2 x = widen(in.x), y = widen(in.y);
      add_squares(x.lo, x.lo - y.lo, 2 * r, state);
      add_squares(x.hi, x.hi - y.hi, 2 * r + 1, state);
      if (any_lane(may_grow)) [[unlikely]] {
        grow_share(x.lo, x.lo - y.lo, state);
        grow_share(x.hi, x.hi - y.hi, state);
      }
    }
  }

  SIMD_INLINE Mask out_of_range_of(const Lanes& in) const {
    if constexpr (has_low) {
      // The difference of near numbers is exact, so its sign is right.
      const V over = (in.x - rules_.above.high) + (in.x_low - rules_.above.low);
      const V under = (in.x - rules_.below.high) + (in.x_low - rules_.below.low);
      return (over >= V{}) | (under <= V{});
    } else {
      return (in.x >= splat(above_)) | (in.x <= splat(below_));
    }
  }

  SIMD_INLINE static void add_squares(F64 x, F64 difference, std::size_t accumulator, State& state) {
    state.max_abs = greater_of(magnitude(difference), state.max_abs);
    state.signal[accumulator] += x * x;
    state.noise[accumulator] += difference * difference;
  }

  // Counts what only happens to elements that are infinite or NaN before or after.
  [[gnu::noinline]] void count_not_finite(const Lanes& in) {
    constexpr Number infinity = std::numeric_limits<Number>::infinity();
    for (std::size_t i = 0; i < lanes; ++i) {
      const Number x = in.x[i], y = in.y[i];
      const bool x_finite = std::fabs(x) < infinity, y_finite = std::fabs(y) < infinity;
      sums_.nan_made += x == x && y != y;
      sums_.nan_lost += x != x && y == y;
      sums_.overflowed += x_finite && !y_finite;
      sums_.out_of_range += y_finite && !x_finite && (x >= above_ || x <= below_);
    }
  }

  // The largest relative error so far, to multiply sources with: where the error is less than the product, it does not
  // grow. A little smaller than it is, as the product is rounded.
  [[nodiscard]] Number share_to_exceed() const {
    constexpr double less_than_one = sizeof(Number) == 4 ? 1.0 - 0x1p-21 : 1.0 - 0x1p-50;
    constexpr double largest = static_cast<double>(std::numeric_limits<Number>::max());
    return static_cast<Number>(std::min(sums_.max_rel_error, largest) * less_than_one);
  }

  SIMD_INLINE void grow_share(F64 x, F64 difference, State& state) {
    grow_max_rel(x, difference);
    state.share = splat(share_to_exceed());
  }
  [[gnu::noinline]] void grow_max_rel(F64 x, F64 difference) {
    for (std::size_t i = 0; i < wide_lanes; ++i) {
      if (x[i] != 0.0) sums_.max_rel_error = std::max(sums_.max_rel_error, std::fabs(difference[i] / x[i]));
    }
  }

  const CompareRules& rules_;
  CompareSums& sums_;
  Number below_, above_;  // plain numbers only
};

// --- Tests of ranges

template <class V>
bool any_outside(const std::byte* numbers, std::size_t count, double low, double high) {
  using Number = typename LanesOf<V>::Number;
  constexpr std::size_t lanes = sizeof(V) / sizeof(Number), unrolled = 4;
  const V least = splat(static_cast<Number>(low)), greatest = splat(static_cast<Number>(high));
  const auto inside = [&](const std::byte* at) SIMD_INLINE_LAMBDA {
    const V x = load<V>(at);
    return (x >= least) & (x <= greatest);
  };
  typename LanesOf<V>::Mask all_inside = ~typename LanesOf<V>::Mask{};
  std::size_t first = 0;
  for (; first + unrolled * lanes <= count; first += unrolled * lanes) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < unrolled; ++r) all_inside &= inside(numbers + (first + r * lanes) * sizeof(Number));
  }
  bool rest_inside = true;
  for (; first < count; ++first) {
    Number x;
    std::memcpy(&x, numbers + first * sizeof x, sizeof x);
    rest_inside &= x >= static_cast<Number>(low) && x <= static_cast<Number>(high);
  }
  return !rest_inside || any_lane(~all_inside);
}

}  // namespace

// --- What Ops has. Subnormal numbers count, whatever the caller's floating-point environment does to them.

void compare_float32(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                     CompareSums& sums) noexcept {
  in_default_environment([&] { Comparison<F32, false>(rules, sums).add(pairs, count); });
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

// The halves of an integer are exact, and of their rounded sum it is known what it lacks.
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
