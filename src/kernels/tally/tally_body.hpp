// The loops of a tally for the target that the source is compiled for: 16 elements at a time, in the definition's
// chains.
//
// 1. Most elements are usual: their error is less than shows that both sides are finite and within the range, and too
//    small for the largest relative error to grow. Where one minimum and one comparison say so of all sixteen, there is
//    only to count the inexact ones and to sum. (A number that became zero has itself for its error, which is more.)
//    Where a target makes other events frequent, as zeros of float4, there is a loop that counts these too (Usually).
// 2. Else the sixteen are counted with all comparisons of the definition, in float32 where the source is; their errors,
//    which float32 may lack digits for, in float64. Elements that are not finite are counted and then taken for zeros.
//    Such groups seldom come alone: after one, the next is not tried as usual.
// 3. The largest relative error needs a division only where it may grow: where the error exceeds the largest one so far
//    times the source.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/count_bytes.hpp"
#include "kernels/tally/fractions_body.hpp"
#include "kernels/tally/integers_loops.hpp"
#include "kernels/tally/powers_body.hpp"
#include "kernels/tally/tally_loops.hpp"
#include "kernels/tally/tally_masks.hpp"
#include "kernels/tally/words_body.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// The numbers of a block: pairs of a source and its result, each the sum of two if `sums`.
template <bool with_squares>
struct FloatPairs {
  using Vector = F32;
  static constexpr bool sums = false;
  static constexpr bool has_squares = with_squares;  // to be summed up
  const float* source;
  const float* result;

  SIMD_INLINE Floats x(std::size_t at) const { return load_group<F32>(source + at); }
  SIMD_INLINE Floats y(std::size_t at) const { return load_group<F32>(result + at); }
  SIMD_INLINE Doubles wide_x(std::size_t at) const { return load_widened_group(source + at); }
  SIMD_INLINE static Doubles x_low(std::size_t) { return {}; }
  SIMD_INLINE static Doubles y_low(std::size_t) { return {}; }
};
template <bool with_low>
struct DoublePairs {
  using Vector = F64;
  static constexpr bool sums = with_low;
  static constexpr bool has_squares = true;
  RealSums source, result;

  SIMD_INLINE Doubles x(std::size_t at) const { return load_group<F64>(source.high + at); }
  SIMD_INLINE Doubles y(std::size_t at) const { return load_group<F64>(result.high + at); }
  SIMD_INLINE Doubles wide_x(std::size_t at) const { return x(at); }
  SIMD_INLINE Doubles x_low(std::size_t at) const { return sums ? load_group<F64>(source.low + at) : Doubles{}; }
  SIMD_INLINE Doubles y_low(std::size_t at) const { return sums ? load_group<F64>(result.low + at) : Doubles{}; }
};

#if TENSORCAST_TARGET_LEVEL >= 1

// Products of float32 and a scale: see tally_products() in tally.hpp.
template <bool with_low>
struct ProductPairs {
  using Vector = F64;
  static constexpr bool sums = with_low;
  static constexpr bool has_squares = true;
  const float* source;
  const float* result;
  double scale;

  SIMD_INLINE Doubles x(std::size_t at) const {
    Doubles products = load_widened_group(source + at);
#pragma GCC unroll 8
    for (int r = 0; r < Doubles::registers; ++r) products.at[r] *= splat(scale);
    return products;
  }
  // Of a product that is not finite it is not zero, which only those see who look at such.
  SIMD_INLINE Doubles x_low(std::size_t at) const {
    if constexpr (!sums) return {};
    Doubles rests = load_widened_group(source + at);
#pragma GCC unroll 8
    for (int r = 0; r < Doubles::registers; ++r) {
      rests.at[r] = multiply_subtract(rests.at[r], splat(scale), rests.at[r] * splat(scale));
    }
    return rests;
  }
  SIMD_INLINE Doubles y(std::size_t at) const { return load_widened_group(result + at); }
  SIMD_INLINE Doubles wide_x(std::size_t at) const { return x(at); }
  SIMD_INLINE static Doubles y_low(std::size_t) { return {}; }
};

#endif

// The tally of a block. Each of the two loops keeps the state in registers for as long as its kind of groups goes on.
template <class Pairs>
class BlockTally {
 public:
  BlockTally(const Pairs& pairs, const TallyRules& rules, Tally& tally)
      : pairs_(pairs), rules_(rules), tally_(tally), limits_(rules) {
    state_.signal = load_group<F64>(tally.signal);
    state_.noise = load_group<F64>(tally.noise);
  }

  // Some elements that are not known to be usual. Returns where they end.
  std::size_t count_any(std::size_t first, std::size_t count) { return add_any(first, count, longest_run); }

  void add(std::size_t count) {
    constexpr std::size_t exception_over = usual_groups * tally_chains;
    std::size_t first = 0;
    int& run = tally_.unusual_run;
    if (run == longest_run && count > exception_over) first = add_any(first, count - exception_over, run);
    while (first < count) {
      const std::size_t usual = add_usual(first, count);
      run = usual - first >= exception_over ? shortest_run : std::clamp(2 * run, shortest_run, longest_run);
      first = add_any(usual, count, run);
    }
  }

  void finish() {
    store_group(tally_.signal, state_.signal);
    store_group(tally_.noise, state_.noise);
    const std::uint64_t zeroed = state_.zeroed.total();
    tally_.inexact += state_.inexact.total();
    tally_.beyond += state_.beyond.total();
    if (any_not_finite_) {
      tally_.overflowed += state_.overflowed.total();
      tally_.nan_made += state_.nan_made.total();
      tally_.nan_lost += state_.nan_lost.total();
    }
    tally_.underflowed += zeroed;
    if (zeroed != 0) tally_.max_rel = greater_of(tally_.max_rel, 1.0);  // no larger ratio is short: see Limits
    tally_.max_abs = greater_of(tally_.max_abs, static_cast<double>(greatest_lane(state_.max_abs)));
  }

 private:
  using V = typename Pairs::Vector;
  using Mask = typename Lanes<V>::Mask;
  using Bits = typename Lanes<V>::Bits;
  using Number = typename Lanes<V>::Number;
  static constexpr bool sums = Pairs::sums;
  static constexpr int registers = Group<V>::registers;

  // So many groups are counted as any after one that is not usual; the more, the more often that happens.
  static constexpr int shortest_run = 1, longest_run = 64;
  static constexpr std::size_t usual_groups = 4;  // so many in a row, and the exception is over

  struct State {
    Doubles signal, noise;
    V max_abs = {};
    LaneCount<Mask> inexact, zeroed, beyond, overflowed, nan_made, nan_lost;
  };

  // The rules, and the largest relative error so far, in the numbers that are compared with them.
  struct Limits {
    const TallyRules& rules;
    Number below, above, usual_error;
    Number relative = 0;  // a little less than the largest relative error: products with it are rounded
    // The same for usual elements: those with a smaller error than it says are usual, or also those with the same.
    Number usual_relative = 0;
    Number usual_absolute = 0;
    bool is_equal_usual = false;
    Number absolute = 0;  // a little less than the largest error so far
    Number ignored = 0;   // a result with no larger relative error: zero, whose is 1. NaN: there is none yet

    explicit Limits(const TallyRules& of) : rules(of) {
      if constexpr (std::is_same_v<Number, float>) {
        below = rules.float_below;
        above = rules.float_above;
        usual_error = rules.float_usual_error;
      } else {
        below = rules.below;
        above = rules.above;
        usual_error = rules.usual_error;
      }
    }
    void set(const Tally& tally) {
      const double max_abs = tally.max_abs, max_rel = tally.max_rel;
      constexpr double largest = std::numeric_limits<Number>::max();
      constexpr double less_than_one = sizeof(Number) == 4 ? 1.0 - 0x1p-21 : 1.0 - 0x1p-50;
      relative = static_cast<Number>((max_rel < largest ? max_rel : largest) * less_than_one);
      absolute = static_cast<Number>((max_abs < largest ? max_abs : largest) * less_than_one);
      ignored = max_rel < 1.0 ? std::numeric_limits<Number>::quiet_NaN() : Number{0};
      set_usual(tally, less_than_one);
    }
    // 1. A number that became zero has the relative error 1. Where zeros are counted, one of the limits is below 1 by
    //    enough for subnormal numbers too, so that the zero is not usual; or the loop looks for zeros itself.
    // 2. Of short sources, an error at the limit shall be usual: among so few significands there are exact ties, each
    //    of which has the largest relative error again. If all errors and numbers are multiples of a unit, below 2^11
    //    units each, then the next ratio above r = a / b is greater by r / 2^22 at least. The limit, which is r and
    //    then a product rounded up, is less than r / 2^22.4 too great, and never too small: an error is a float32.
    //    tally.is_max_rel_short says that r is such a ratio; usual_absolute makes the others so.
    // 3. Where the ratio is 1 or another power of two, the product is exact, and the same holds of all sources. No
    //    truncated number has an error larger than itself, and none of those that are rounded to powers of two.
    void set_usual(const Tally& tally, double less_than_one) {
      constexpr bool is_float = std::is_same_v<Number, float>;
      const Usually counted = sums ? Usually::inexact : rules.usually;
      const bool is_plain = counted == Usually::inexact;
      const double max_rel = tally.max_rel;
      const bool is_at_most_one = counted == Usually::below_zero || (is_plain && !rules.counts_zeros);
      const bool cannot_grow = is_at_most_one && max_rel >= 1.0;
      const bool is_short = is_float && rules.is_source_short;  // in float64, it may be a product with a scale
      is_equal_usual = (is_plain ? !sums : counted == Usually::below_zero) && (is_short || cannot_grow);
      if (is_plain) {  // errors at the bound may be those of numbers beyond it
        usual_absolute = is_equal_usual ? std::nextafter(usual_error, Number{0}) : usual_error;
      } else if (counted == Usually::beyond) {
        usual_absolute = absolute;
      } else {
        usual_absolute = counted == Usually::below_zero ? std::numeric_limits<Number>::max() : Number{1000};
      }
      constexpr std::uint64_t mantissa = (std::uint64_t{1} << 52) - 1;
      const bool is_power = (std::bit_cast<std::uint64_t>(max_rel) & mantissa) == 0;
      usual_relative = relative;
      if (is_equal_usual && max_rel < 1.0 && tally.is_max_rel_short) {
        usual_relative = static_cast<Number>(max_rel);
        if (usual_relative < max_rel) usual_relative = std::nextafter(usual_relative, Number{1});
      } else if (counted == Usually::beyond && max_rel >= 1.0 && max_rel < 0x1p100 && is_power) {
        usual_relative = static_cast<Number>(max_rel);
      }
      if (cannot_grow) usual_relative = 1;
      if ((is_plain && !cannot_grow) || (counted == Usually::beyond && max_rel < 1.0)) {
        const auto most = static_cast<Number>(is_equal_usual ? 1.0 - 0x1p-12 : less_than_one);
        usual_relative = std::min(usual_relative, most);
      }
    }
  };

  static double greater_of(double a, double b) { return a < b ? b : a; }
  SIMD_INLINE static F64 greater_of(F64 a, F64 b) { return TENSORCAST_TARGET::greater_of(a, b); }

  SIMD_INLINE static Group<V> errors(const Group<V>& x, const Doubles& x_low, const Group<V>& y, const Doubles& y_low) {
    Group<V> error;
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) {
      V difference = x.at[r] - y.at[r];
      if constexpr (sums) difference += x_low.at[r] - y_low.at[r];
      error.at[r] = magnitude_of(difference);
    }
    return error;
  }

  std::size_t add_usual(std::size_t first, std::size_t count) {
    limits_.set(tally_);
    const bool or_equal = limits_.is_equal_usual;
    if constexpr (!sums) {
      switch (rules_.usually) {
        case Usually::beyond:
          return add_usual<Usually::beyond, false>(first, count);
        case Usually::extremes:
          return add_usual<Usually::extremes, false>(first, count);
        case Usually::below_zero:
          return or_equal ? add_usual<Usually::below_zero, true>(first, count)
                          : add_usual<Usually::below_zero, false>(first, count);
        case Usually::inexact:
          break;
      }
    }
    if constexpr (!sums) {
      if (or_equal) return add_usual<Usually::inexact, true>(first, count);
    }
    return add_usual<Usually::inexact, false>(first, count);
  }

  // Usual groups from `first` on. Returns where they end. The errors of usual float32 are exact in float32, or nearly
  // so: then those that the largest ones may grow by are not usual. `or_equal`: errors at the limit are usual too.
  template <Usually counted, bool or_equal>
  [[gnu::noinline]] std::size_t add_usual(std::size_t first, std::size_t count) {
    constexpr bool finds_zeros = counted == Usually::extremes;
    constexpr bool has_no_zero = counted == Usually::below_zero;
    constexpr bool has_errors = counted != Usually::beyond;  // wrapped, a float32 may have too many digits
    State s = state_;
    const V relative = splat(limits_.usual_relative), absolute = splat(limits_.usual_absolute);
    for (; first < count; first += tally_chains) {
      const Group<V> x = pairs_.x(first), y = pairs_.y(first);
      Mask unusual = {};
      Mask inexact[registers], compared[registers];
      const Group<V> error = errors(x, pairs_.x_low(first), y, pairs_.y_low(first));
#pragma GCC unroll 8
      for (int r = 0; r < registers; ++r) {
        compared[r] = inexact[r] = nonzero(as<Bits>(error.at[r]));
        V limit;
        if constexpr (finds_zeros) {
          compared[r] = nonzero_of(inexact[r], as<Bits>(y.at[r]), splat(Lanes<V>::magnitude_bits));
          unusual = united(unusual, not_less(error.at[r], absolute));
          limit = magnitude_of(x.at[r]) * relative;
        } else if constexpr (has_no_zero) {
          unusual = united(unusual, not_less(splat(Number{0x1p-70F}), magnitude_of(x.at[r])));
          unusual = united(unusual, not_less(magnitude_of(x.at[r]), splat(limits_.above)));
          limit = magnitude_of(x.at[r]) * relative;
        } else {
          limit = smaller_magnitude(x.at[r] * relative, absolute);
        }
        const Mask is_unusual = or_equal ? not_less_equal_of(compared[r], error.at[r], limit)
                                         : not_less_of(compared[r], error.at[r], limit);
        unusual = r == 0 && !finds_zeros && !has_no_zero ? is_unusual : united(unusual, is_unusual);
      }
      if (some(unusual)) [[unlikely]]
        break;
#pragma GCC unroll 8
      for (int r = 0; r < registers; ++r) {
        s.inexact.add(inexact[r]);
        if constexpr (has_errors) s.max_abs = greater_magnitude(s.max_abs, error.at[r]);
        if constexpr (counted == Usually::beyond) {
          s.beyond.add(greater_equal(error.at[r], splat(static_cast<Number>(rules_.beyond_error))));
        }
        if constexpr (finds_zeros) {
          s.zeroed.add(without(inexact[r], compared[r]));
          s.beyond.add(greater_equal(magnitude_of(x.at[r]), splat(limits_.above)));
        }
        if constexpr (has_no_zero) s.beyond.add(greater_equal(splat(limits_.below), x.at[r]));
      }
      const Doubles wide = pairs_.wide_x(first);
      Doubles wide_error = widen(has_errors ? error : y);
#pragma GCC unroll 8
      for (int r = 0; r < Doubles::registers; ++r) {
        s.signal.at[r] = add_square<V>(s.signal.at[r], wide.at[r]);
        if constexpr (!has_errors) wide_error.at[r] = wide.at[r] - wide_error.at[r];
        s.noise.at[r] = add_square<std::conditional_t<has_errors, V, F64>>(s.noise.at[r], wide_error.at[r]);
      }
    }
    state_ = s;
    return first;
  }

  // `groups` groups from `first` on, whatever they are. Returns where they end.
  std::size_t add_any(std::size_t first, std::size_t count, int groups) {
    const std::size_t end = std::min(count, first + static_cast<std::size_t>(groups) * tally_chains);
    limits_.set(tally_);
    if (first >= end) return first;
    const bool has_errors = rules_.has_float32_errors;
    if (rules_.beyond_has_large_error && !sums) {
      has_errors ? add_groups<true, true>(first, end) : add_groups<true, false>(first, end);
    } else {
      has_errors ? add_groups<false, true>(first, end) : add_groups<false, false>(first, end);
    }
    return end;
  }

  // `by_error`: beyond_has_large_error. `exact`: has_float32_errors.
  template <bool by_error, bool exact>
  [[gnu::noinline]] void add_groups(std::size_t first, std::size_t end) {
    constexpr bool has_errors = exact || std::is_same_v<V, F64>;  // in the vectors that are compared
    State s = state_;
    const V beyond_error = splat(static_cast<Number>(rules_.beyond_error));
    for (; first < end; first += tally_chains) {
      Group<V> x = pairs_.x(first), y = pairs_.y(first);
      Doubles x_low = pairs_.x_low(first), y_low = pairs_.y_low(first);
      Group<V> error = errors(x, x_low, y, y_low);
      Doubles wide = pairs_.wide_x(first);
      Mask finite[registers];
      Mask all_finite = {};
#pragma GCC unroll 8
      for (int r = 0; r < registers; ++r) {
        finite[r] = less(error.at[r], splat(std::numeric_limits<Number>::infinity()));
        all_finite = r == 0 ? finite[r] : common(all_finite, finite[r]);
      }
      if (!all(all_finite)) [[unlikely]] {
        take_out_not_finite(x, x_low, y, y_low, finite, s);
        error = errors(x, x_low, y, y_low);
        wide = widen(x);
      }

      Mask may_grow = {};
#pragma GCC unroll 8
      for (int r = 0; r < registers; ++r) {
        const Mask is_inexact = nonzero(as<Bits>(error.at[r]));
        s.inexact.add(is_inexact);
        Mask is_compared = {};
        if constexpr (by_error) {
          s.beyond.add(greater_equal(error.at[r], beyond_error));  // taken out: no error
          is_compared = not_equal_of(is_inexact, y.at[r], splat(limits_.ignored));
        } else {
          s.beyond.add(beyond_of(finite[r], x.at[r], x_low, r));
          is_compared = nonzero_of(is_inexact, as<Bits>(y.at[r]), splat(Lanes<V>::magnitude_bits));
          s.zeroed.add(without(is_inexact, is_compared));
        }
        const V limit = splat(limits_.relative) * magnitude_of(x.at[r]);
        Mask grows = not_less_of(is_compared, error.at[r], limit);
        if constexpr (has_errors) {
          s.max_abs = greater_magnitude(s.max_abs, error.at[r]);
        } else {
          grows = united(grows, not_less_of(is_inexact, error.at[r], splat(limits_.absolute)));
        }
        may_grow = r == 0 ? grows : united(may_grow, grows);
      }
      if constexpr (!Pairs::has_squares) {
        if (!some(may_grow)) [[likely]]
          continue;
      }
      Doubles wide_error;
      if constexpr (has_errors) {
        wide_error = widen(error);
      } else {
        const Doubles result = widen(y);
#pragma GCC unroll 8
        for (int r = 0; r < Doubles::registers; ++r) wide_error.at[r] = wide.at[r] - result.at[r];
      }
#pragma GCC unroll 8
      for (int r = 0; Pairs::has_squares && r < Doubles::registers; ++r) {
        s.signal.at[r] = add_square<V>(s.signal.at[r], wide.at[r]);
        s.noise.at[r] = add_square<std::conditional_t<exact, V, F64>>(s.noise.at[r], wide_error.at[r]);
      }
      if (some(may_grow)) [[unlikely]]
        grow(wide, wide_error);
    }
    state_ = s;
  }

  SIMD_INLINE Mask beyond_of(Mask where, V x, const Doubles& x_low, int r) {
    if constexpr (!sums) {
      return united(greater_equal_of(where, x, splat(limits_.above)), greater_equal_of(where, splat(limits_.below), x));
    } else {
      const F64 over = x - limits_.above + (x_low.at[r] - rules_.above_low);
      const F64 under = x - limits_.below + (x_low.at[r] - rules_.below_low);
      return united(greater_equal_of(where, over, F64{}), greater_equal_of(where, F64{}, under));
    }
  }

  // Counts what the definition counts of elements that are not finite on both sides, and makes them zeros.
  SIMD_INLINE void take_out_not_finite(Group<V>& x, Doubles& x_low, Group<V>& y, Doubles& y_low, Mask* finite,
                                       State& s) {
    any_not_finite_ = true;
    const V infinity = splat(std::numeric_limits<Number>::infinity());
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) {
      const Mask x_finite = less(magnitude_of(x.at[r]), infinity);
      const Mask y_finite = less(magnitude_of(y.at[r]), infinity);
      const Mask x_number = greater_equal(infinity, magnitude_of(x.at[r]));
      const Mask y_number = greater_equal(infinity, magnitude_of(y.at[r]));
      finite[r] = common(x_finite, y_finite);
      if constexpr (sums) x_low.at[r] = kept_where(x_finite, x_low.at[r]);
      s.nan_made.add(without(x_number, y_number));
      s.nan_lost.add(without(y_number, x_number));
      s.overflowed.add(without(x_finite, y_finite));
      s.beyond.add(beyond_of(without(y_finite, x_finite), x.at[r], x_low, r));
      x.at[r] = kept_where(finite[r], x.at[r]);
      y.at[r] = kept_where(finite[r], y.at[r]);
      if constexpr (sums) {
        x_low.at[r] = kept_where(finite[r], x_low.at[r]);
        y_low.at[r] = kept_where(finite[r], y_low.at[r]);
      }
    }
  }

  // Divisions only where the largest has surely grown: integers often have it in common.
  SIMD_INLINE void grow(const Doubles& x, const Doubles& error) {
    const F64 relative = splat(tally_.max_rel * (1.0 + 0x1p-50)), absolute = splat(tally_.max_abs);
    Mask64 grows = {};
#pragma GCC unroll 8
    for (int r = 0; r < Doubles::registers; ++r) {
      const F64 magnitude = magnitude_of(error.at[r]);
      const Mask64 not_zero = nonzero(as<I64>(magnitude_of(x.at[r])));
      grows = united(grows, common(not_zero, less(relative * magnitude_of(x.at[r]), magnitude)));
      if constexpr (std::is_same_v<V, F32>) grows = united(grows, less(absolute, magnitude));
    }
    if (!some(grows)) [[likely]]
      return;
    double values[tally_chains], errors[tally_chains];
    store_group(values, x);
    store_group(errors, error);
    grow_to(values, errors, tally_);
    limits_.set(tally_);
  }
  [[gnu::noinline]] static void grow_to(const double* x, const double* errors, Tally& tally) {
    for (std::size_t i = 0; i < tally_chains; ++i) {
      const double error = std::fabs(errors[i]);
      tally.max_abs = greater_of(tally.max_abs, error);
      if (x[i] == 0.0 || error / std::fabs(x[i]) <= tally.max_rel) continue;
      tally.max_rel = error / std::fabs(x[i]);
      tally.is_max_rel_short = is_short_ratio(std::fabs(x[i]), error);
    }
  }
  // Whether both are integers below 2^11 times a power of two.
  static bool is_short_ratio(double x, double error) {
    int exponent = 0;
    static_cast<void>(std::frexp(x, &exponent));
    const double unit = std::ldexp(1.0, exponent - 11);
    return x / unit == std::floor(x / unit) && error / unit == std::floor(error / unit) && error <= x;
  }

  Pairs pairs_;
  const TallyRules& rules_;
  Tally& tally_;
  Limits limits_;
  State state_;
  bool any_not_finite_ = false;
};

// `tally_last` adds the definition's counts of an element of an incomplete group.
template <class Pairs, class TallyLast>
SIMD_INLINE void tally_pairs(const Pairs& pairs, std::size_t count, const TallyRules& rules, Tally& tally,
                             TallyLast tally_last) {
  const std::size_t whole = count / tally_chains * tally_chains;
  if (whole != 0) {
    BlockTally<Pairs> block(pairs, rules, tally);
    block.add(whole);
    block.finish();
  }
  for (std::size_t at = whole; at < count; ++at) tally_last(at);
}

inline void tally_float32(const float* source, const float* result, std::size_t count, const TallyRules& rules,
                          Tally& tally) {
  tally_pairs(FloatPairs<true>{source, result}, count, rules, tally, [&](std::size_t at) {
    tally_element(static_cast<double>(source[at]), 0.0, static_cast<double>(result[at]), 0.0, at % tally_chains, rules,
                  tally);
  });
}

inline void count_float32(const float* source, const float* result, std::size_t count, const TallyRules& rules,
                          Tally& tally) {
  const std::size_t whole = count / tally_chains * tally_chains;
  BlockTally<FloatPairs<false>> block({source, result}, rules, tally);
  for (std::size_t first = 0; first < whole;) first = block.count_any(first, whole);
  block.finish();
  for (std::size_t at = whole; at < count; ++at) {
    tally_element(static_cast<double>(source[at]), 0.0, static_cast<double>(result[at]), 0.0, no_chain, rules, tally);
  }
}

template <bool sums>
void tally_float64(RealSums source, RealSums result, std::size_t count, const TallyRules& rules, Tally& tally) {
  tally_pairs(DoublePairs<sums>{source, result}, count, rules, tally, [&](std::size_t at) {
    tally_element(source.high[at], sums ? source.low[at] : 0.0, result.high[at], sums ? result.low[at] : 0.0,
                  at % tally_chains, rules, tally);
  });
}

#if TENSORCAST_TARGET_LEVEL >= 1

template <bool sums>
void tally_products(const float* source, double scale, const float* result, std::size_t count, const TallyRules& rules,
                    Tally& tally) {
  tally_pairs(ProductPairs<sums>{source, result, scale}, count, rules, tally, [&](std::size_t at) {
    const auto x = static_cast<double>(source[at]);
    const double product = x * scale;
    const double rest = sums && std::isfinite(product) ? std::fma(x, scale, -product) : 0.0;
    tally_element(product, rest, static_cast<double>(result[at]), 0.0, at % tally_chains, rules, tally);
  });
}

// float64 holds products with the 24 digits of a float32.
inline bool has_short_products(double scale) {
  constexpr std::uint64_t further_digits = (std::uint64_t{1} << 24) - 1;
  return (std::bit_cast<std::uint64_t>(scale) & further_digits) == 0;
}

#endif

// Of negative numbers, the inverted bits: one less than their magnitude.
template <class Bits, class Number>
bool are_small(const std::byte* integers, bool is_signed, int digits, std::size_t count) {
  constexpr std::size_t lanes = sizeof(Bits) / sizeof(Number);
  constexpr int sign_bit = static_cast<int>(sizeof(Number)) * 8 - 1;
  const Bits sign = splat(static_cast<Number>(is_signed ? -1 : 0));
  Bits all = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const Bits x = load<Bits>(integers + i * sizeof(Number));
    all |= x ^ ((x >> sign_bit) & sign);
  }
  if (i < count) {
    Number last[lanes] = {};
    __builtin_memcpy(last, integers + i * sizeof(Number), (count - i) * sizeof(Number));
    const auto x = load<Bits>(reinterpret_cast<const std::byte*>(last));
    all |= x ^ ((x >> sign_bit) & sign);
  }
  Number any = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) any |= all[lane];
  return any >= 0 && any >> digits == 0;
}

// In lanes that count to 255 together.
inline std::size_t count_byte(const std::byte* data, std::size_t bytes, std::byte value) {
  constexpr std::size_t lanes = sizeof(U8);
  const U8 wanted = splat(static_cast<std::uint8_t>(value));
  std::size_t count = 0;
  std::size_t i = 0;
  while (i + lanes <= bytes) {
    const std::size_t end = std::min(bytes, i + 254 * lanes);
    U8 even = {}, odd = {};
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      even = count_equal(even, load<U8>(data + i), wanted);
      odd = count_equal(odd, load<U8>(data + i + lanes), wanted);
    }
    if (i + lanes <= end) {
      even = count_equal(even, load<U8>(data + i), wanted);
      i += lanes;
    }
    std::uint8_t sums[lanes];
    store(reinterpret_cast<std::byte*>(sums), even + odd);
    for (const std::uint8_t sum : sums) count += sum;
  }
  for (; i < bytes; ++i) count += data[i] == value;
  return count;
}

// `split` makes a register of each side from one of the source; an incomplete one is filled up with zeros.
template <class Split>
SIMD_INLINE void split_each(const std::byte* source, double* high, double* low, std::size_t count, Split split) {
  constexpr std::size_t lanes = Doubles::lanes;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const SplitF64 sum = split(load<I64>(source + i * sizeof(double)));
    store(reinterpret_cast<std::byte*>(high + i), sum.high);
    store(reinterpret_cast<std::byte*>(low + i), sum.low);
  }
  const std::size_t rest = (count - i) * sizeof(double);
  if (rest == 0) return;
  std::byte last[sizeof(I64)] = {};
  __builtin_memcpy(last, source + i * sizeof(double), rest);
  const SplitF64 sum = split(load<I64>(last));
  __builtin_memcpy(high + i, &sum.high, rest);
  __builtin_memcpy(low + i, &sum.low, rest);
}

template <bool is_signed>
void split_integers(const std::byte* integers, double* high, double* low, std::size_t count) {
  split_each(integers, high, low, count, split_integer<is_signed>);
}

inline bool split_products(const double* x, double scale, double* high, double* low, std::size_t count) {
  constexpr std::int64_t least = 0x03f0000000000000;  // 2^-960: the lower part is no smaller than 2^-1066
  constexpr std::int64_t infinite = 0x7ff0000000000000;
  const F64 factor = splat(scale);
  I64 lost = {};
  split_each(reinterpret_cast<const std::byte*>(x), high, low, count, [&](I64 bits) {
    const F64 value = as<F64>(bits);
    const F64 product = value * factor;
    const F64 rest = multiply_subtract(value, factor, product);
    const I64 magnitude = as<I64>(product) & INT64_MAX;
    const I64 is_finite = magnitude < infinite;
    const I64 is_source_finite = (bits & INT64_MAX) < infinite;
    const I64 is_source_zero = (bits & INT64_MAX) == 0;
    lost |= (is_source_finite & ~is_finite) | ((magnitude < least) & ~is_source_zero);
    return SplitF64{product, as<F64>(as<I64>(rest) & is_finite)};
  });
  std::int64_t any_lost = 0;
  for (std::size_t lane = 0; lane < static_cast<std::size_t>(Doubles::lanes); ++lane) any_lost |= lost[lane];
  return any_lost == 0;
}

#if TENSORCAST_TARGET_LEVEL == 0

// In arrays, which needs no further code: the portable target is to be small.
inline void tally_products(const float* source, double scale, const float* result, std::size_t count,
                           const TallyRules& rules, Tally& tally) {
  constexpr std::size_t block = 256;
  constexpr double zeros[block] = {};
  double numbers[block], results[block], high[block], low[block];
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t elements = std::min(block, count - first);
    std::copy_n(source + first, elements, numbers);
    std::copy_n(result + first, elements, results);
    split_products(numbers, scale, high, low, elements);  // of such numbers float64 holds all sums
    tally_float64<true>({high, low}, {results, zeros}, elements, rules, tally);
  }
}

#endif

const TallyLoops tally_loops = {
    .float32 =
        [](const float* source, const float* result, std::size_t count, const TallyRules& rules, Tally& tally) {
          in_default_environment([&] { tally_float32(source, result, count, rules, tally); });
        },
    .float32_counts =
        [](const float* source, const float* result, std::size_t count, const TallyRules& rules, Tally& tally) {
          in_default_environment([&] { count_float32(source, result, count, rules, tally); });
        },
    .float64 =
        [](RealSums source, RealSums result, std::size_t count, const TallyRules& rules, Tally& tally) {
          const auto run = source.low == nullptr ? tally_float64<false> : tally_float64<true>;
          in_default_environment([&] { run(source, result, count, rules, tally); });
        },
    .products =
        [](const float* source, double scale, const float* result, std::size_t count, const TallyRules& rules,
           Tally& tally) {
#if TENSORCAST_TARGET_LEVEL >= 1
          const auto run = has_short_products(scale) ? tally_products<false> : tally_products<true>;
#else
          const auto run = tally_products;
#endif
          in_default_environment([&] { run(source, scale, result, count, rules, tally); });
        },
    .are_small =
        [](const std::byte* integers, int bits, bool is_signed, int digits, std::size_t count) {
          return bits == 32 ? are_small<I32, std::int32_t>(integers, is_signed, digits, count)
                            : are_small<I64, std::int64_t>(integers, is_signed, digits, count);
        },
    .count_byte = count_byte,
#if TENSORCAST_TARGET_LEVEL >= 1
    .count_bytes = count_bytes,
    .count_half_bytes = count_half_bytes,
#else
    .count_bytes = nullptr,
    .count_half_bytes = nullptr,
#endif
    .split_integers =
        [](const std::byte* integers, bool is_signed, double* high, double* low, std::size_t count) {
          const auto run = is_signed ? split_integers<true> : split_integers<false>;
          in_default_environment([&] { run(integers, high, low, count); });
        },
    .split_products =
        [](const double* x, double scale, double* high, double* low, std::size_t count) {
          return in_default_environment([&] { return split_products(x, scale, high, low, count); });
        },
    .integer_loop = integer_loop,
    .long_integers = tally_long_integers,
    .words = word_loops,
    .fractions = fraction_loops,
    .powers = power_loops,
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
