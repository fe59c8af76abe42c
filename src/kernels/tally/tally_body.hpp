// The loops of a tally for the target that the source is compiled for: 16 elements at a time, in the definition's
// chains.
//
// 1. Most float32 have a small error, which shows that both sides are finite and within the range; three comparisons
//    are left to count. Else the sixteen are counted as float64, with all comparisons of the definition, and if
//    something is not finite, one by one.
// 2. The largest relative error needs a division only where it may grow: where the error exceeds the largest one so far
//    times the source.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/simd/environment.hpp"
#include "kernels/simd/simd.hpp"
#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

// --- Masks that simd.hpp has no need of

#if TENSORCAST_TARGET_LEVEL >= 2
SIMD_INLINE Mask64 less(F64 a, F64 b) { return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ); }
SIMD_INLINE Mask64 both(Mask64 a, Mask64 b) { return static_cast<Mask64>(a & b); }
SIMD_INLINE bool any(Mask64 mask) { return mask != 0; }
SIMD_INLINE bool all(Mask64 mask) { return mask == 0xff; }
SIMD_INLINE Mask32 without(Mask32 mask) { return static_cast<Mask32>(~mask); }
SIMD_INLINE Mask64 without(Mask64 mask) { return static_cast<Mask64>(~mask); }
inline const Mask64 all_lanes = 0xff, no_lanes = 0;
SIMD_INLINE F64 greater_of(F64 a, F64 b) { return (F64)_mm512_max_pd((__m512d)a, (__m512d)b); }
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) { return (F64)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z); }
template <class Mask>
class LaneCount {
 public:
  SIMD_INLINE void add(Mask mask) { count_ += static_cast<std::uint64_t>(std::popcount(static_cast<unsigned>(mask))); }
  [[nodiscard]] std::uint64_t total() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};
#else
SIMD_INLINE Mask64 less(F64 a, F64 b) { return a < b; }
SIMD_INLINE Mask64 both(Mask64 a, Mask64 b) { return a & b; }
SIMD_INLINE Mask64 either(Mask64 a, Mask64 b) { return a | b; }
SIMD_INLINE I64 without(I64 mask) { return ~mask; }
SIMD_INLINE I32 without(I32 mask) { return ~mask; }
inline const Mask64 all_lanes = ~I64{}, no_lanes = {};
SIMD_INLINE F64 greater_of(F64 a, F64 b) { return a > b ? a : b; }
#if TENSORCAST_TARGET_LEVEL == 1
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) { return (F64)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z); }
SIMD_INLINE bool all(Mask64 mask) { return _mm256_movemask_pd((__m256d)mask) == 0xf; }
SIMD_INLINE bool any(Mask64 mask) { return _mm256_movemask_pd((__m256d)mask) != 0; }
#else
SIMD_INLINE F64 multiply_add(F64 x, F64 y, F64 z) { return x * y + z; }  // only for products that are exact
SIMD_INLINE bool all(Mask64 mask) { return (mask[0] & mask[1]) != 0; }
SIMD_INLINE bool any(Mask64 mask) { return (mask[0] | mask[1]) != 0; }
#endif
template <class Mask>
class LaneCount {
 public:
  SIMD_INLINE void add(Mask mask) { lanes_ -= mask; }
  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < sizeof(Mask) / sizeof(lanes_[0]); ++i) sum += static_cast<std::uint64_t>(lanes_[i]);
    return sum;
  }

 private:
  Mask lanes_ = {};
};
#endif

constexpr int double_lanes = kLanes / 2;
constexpr int float_registers = static_cast<int>(tally_chains) / kLanes;
constexpr int double_registers = static_cast<int>(tally_chains) / double_lanes;

// Sixteen numbers.
struct Floats {
  F32 at[float_registers];
};
struct Doubles {
  F64 at[double_registers];
};

SIMD_INLINE Floats load_floats(const float* values) {
  Floats out;
#pragma GCC unroll 4
  for (int r = 0; r < float_registers; ++r) {
    out.at[r] = load<F32>(reinterpret_cast<const std::byte*>(values + r * kLanes));
  }
  return out;
}
SIMD_INLINE Doubles load_doubles(const double* values) {
  Doubles out;
#pragma GCC unroll 8
  for (int r = 0; r < double_registers; ++r) {
    out.at[r] = load<F64>(reinterpret_cast<const std::byte*>(values + r * double_lanes));
  }
  return out;
}
SIMD_INLINE void store_doubles(double* values, const Doubles& x) {
#pragma GCC unroll 8
  for (int r = 0; r < double_registers; ++r) {
    store(reinterpret_cast<std::byte*>(values + r * double_lanes), x.at[r]);
  }
}
SIMD_INLINE Doubles widen(const Floats& x) {
  Doubles out;
#pragma GCC unroll 4
  for (int r = 0; r < float_registers; ++r) {
    const F64x2 wide = widen(x.at[r]);
    out.at[2 * r] = wide.lo;
    out.at[2 * r + 1] = wide.hi;
  }
  return out;
}

SIMD_INLINE F32 magnitude_of(F32 x) { return as<F32>(as<I32>(x) & INT32_MAX); }
SIMD_INLINE F64 magnitude_of(F64 x) { return as<F64>(as<I64>(x) & INT64_MAX); }

// A tally in registers.
class GroupTally {
 public:
  SIMD_INLINE GroupTally(const TallyRules& rules, Tally& tally) : rules_(rules), tally_(tally) { load_sums(); }
  GroupTally(const GroupTally&) = delete;
  GroupTally& operator=(const GroupTally&) = delete;

  SIMD_INLINE ~GroupTally() {
    store_sums();
    tally_.inexact += inexact_.total() + float_inexact_.total();
    tally_.beyond += beyond_.total();
    if (const std::uint64_t zeros = underflowed_.total() + float_underflowed_.total(); zeros != 0) {
      tally_.underflowed += zeros;
      if (tally_.max_rel < 1.0) tally_.max_rel = 1.0;
    }
    for (int lane = 0; lane < double_lanes; ++lane) tally_.max_abs = greater_of(tally_.max_abs, max_abs_[lane]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto error = std::bit_cast<float>(static_cast<std::int32_t>(float_max_abs_[lane]));
      tally_.max_abs = greater_of(tally_.max_abs, static_cast<double>(error));
    }
  }

  // float32 with usual errors, which are exact in float32. False, and nothing is added, where an error is not.
  SIMD_INLINE bool add_usual(const Floats& x, const Floats& y, I32 greatest_usual) {
    Floats error;
    Mask32 unusual = mask_if(false);
#pragma GCC unroll 4
    for (int r = 0; r < float_registers; ++r) {
      error.at[r] = magnitude_of(x.at[r] - y.at[r]);
      unusual = either(unusual, greater(as<I32>(error.at[r]), greatest_usual));
    }
    if (any(unusual)) [[unlikely]]
      return false;
    const F32 bound = splat(float_bound_);
    Mask32 may_grow = mask_if(false);
#pragma GCC unroll 4
    for (int r = 0; r < float_registers; ++r) {
      const Mask32 is_inexact = greater(as<I32>(error.at[r]), I32{});
      const Mask32 is_zero = both(is_inexact, equal(as<I32>(y.at[r]) & INT32_MAX, I32{}));
      float_inexact_.add(is_inexact);
      float_underflowed_.add(is_zero);
      const Mask32 is_great = greater_equal(error.at[r], bound * magnitude_of(x.at[r]));
      may_grow = either(may_grow, both(is_great, both(is_inexact, without(is_zero))));
      float_max_abs_ = max(float_max_abs_, as<I32>(error.at[r]));
    }
    const Doubles wide = widen(x), wide_error = widen(error);
#pragma GCC unroll 8
    for (int r = 0; r < double_registers; ++r) {
      signal_.at[r] = multiply_add(wide.at[r], wide.at[r], signal_.at[r]);
      noise_.at[r] = multiply_add(wide_error.at[r], wide_error.at[r], noise_.at[r]);
    }
    if (any(may_grow)) [[unlikely]]
      grow_relative(wide, wide_error);
    return true;
  }

  // Any numbers, each the sum of two if `sums`. False, and nothing is added, where something is not finite.
  template <bool sums>
  SIMD_INLINE bool add(const Doubles& x, const Doubles& x_low, const Doubles& y, const Doubles& y_low,
                       bool& some_beyond) {
    const F64 infinity = splat(std::numeric_limits<double>::infinity());
    Doubles error;
    Mask64 finite = all_lanes;
#pragma GCC unroll 8
    for (int r = 0; r < double_registers; ++r) {
      F64 difference = x.at[r] - y.at[r];
      if constexpr (sums) difference += x_low.at[r] - y_low.at[r];
      error.at[r] = magnitude_of(difference);
      finite = both(finite, less(error.at[r], infinity));
    }
    if (!all(finite)) [[unlikely]]
      return false;
    const F64 above = splat(rules_.above), below = splat(rules_.below), bound = splat(bound_);
    Mask64 may_grow = no_lanes, beyond = no_lanes;
#pragma GCC unroll 8
    for (int r = 0; r < double_registers; ++r) {
      F64 over = x.at[r] - above, under = x.at[r] - below;
      if constexpr (sums) {
        over += x_low.at[r] - rules_.above_low;
        under += x_low.at[r] - rules_.below_low;
      }
      const Mask64 is_beyond = either(greater_equal(over, F64{}), greater_equal(F64{}, under));
      const Mask64 is_inexact = less(F64{}, error.at[r]);
      const Mask64 is_zero = both(is_inexact, equal(as<I64>(y.at[r]) & INT64_MAX, I64{}));
      beyond_.add(is_beyond);
      inexact_.add(is_inexact);
      underflowed_.add(is_zero);
      beyond = either(beyond, is_beyond);
      const Mask64 is_great = greater_equal(error.at[r], bound * magnitude_of(x.at[r]));
      may_grow = either(may_grow, both(is_great, both(is_inexact, without(is_zero))));
      max_abs_ = greater_of(max_abs_, error.at[r]);
      signal_.at[r] += x.at[r] * x.at[r];
      noise_.at[r] += error.at[r] * error.at[r];
    }
    if (any(may_grow)) [[unlikely]]
      grow_relative(x, error);
    some_beyond = any(beyond);
    return true;
  }

  // Whatever they are: `element(chain)` adds the definition's counts of one.
  template <class Element>
  SIMD_INLINE void add_elements(std::size_t count, Element element) {
    store_sums();
    for (std::size_t chain = 0; chain < count; ++chain) element(chain);
    load_sums();
  }

 private:
  static double greater_of(double a, double b) { return a < b ? b : a; }
  SIMD_INLINE static F64 greater_of(F64 a, F64 b) { return TENSORCAST_TARGET::greater_of(a, b); }

  SIMD_INLINE void load_sums() {
    signal_ = load_doubles(tally_.signal);
    noise_ = load_doubles(tally_.noise);
    set_bounds();
  }
  // A little less than the largest relative error so far: products with it are rounded.
  SIMD_INLINE void set_bounds() {
    bound_ = tally_.max_rel * (1.0 - 0x1p-50);
    constexpr double largest = std::numeric_limits<float>::max();
    float_bound_ = static_cast<float>((tally_.max_rel < largest ? tally_.max_rel : largest) * (1.0 - 0x1p-21));
  }
  SIMD_INLINE void store_sums() {
    store_doubles(tally_.signal, signal_);
    store_doubles(tally_.noise, noise_);
  }

  // Divisions only where the largest has surely grown: integers often have it in common.
  SIMD_INLINE void grow_relative(const Doubles& x, const Doubles& error) {
    const F64 bound = splat(tally_.max_rel * (1.0 + 0x1p-50));
    Mask64 grows = no_lanes;
#pragma GCC unroll 8
    for (int r = 0; r < double_registers; ++r) {
      grows = either(grows, less(bound * magnitude_of(x.at[r]), error.at[r]));
    }
    if (!any(grows)) [[likely]]
      return;
    divide(x, error, tally_.max_rel);
    set_bounds();
  }
  [[gnu::noinline]] static void divide(const Doubles& x, const Doubles& error, double& max_rel) {
    double values[tally_chains], errors[tally_chains];
    store_doubles(values, x);
    store_doubles(errors, error);
    for (std::size_t i = 0; i < tally_chains; ++i) {
      if (values[i] != 0.0) max_rel = greater_of(max_rel, errors[i] / std::fabs(values[i]));
    }
  }

  const TallyRules& rules_;
  Tally& tally_;
  Doubles signal_, noise_;
  double bound_ = 0.0;
  float float_bound_ = 0.0F;
  F64 max_abs_ = {};
  I32 float_max_abs_ = {};
  LaneCount<Mask64> inexact_, underflowed_, beyond_;
  LaneCount<Mask32> float_inexact_, float_underflowed_;
};

inline void tally_float32(const float* source, const float* result, std::size_t count, const TallyRules& rules,
                          Tally& tally) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float usual_error = rules.usual_error < infinity ? static_cast<float>(rules.usual_error) : infinity;
  const I32 greatest_usual = splat(std::bit_cast<std::int32_t>(usual_error) - 1);  // as integers; -1: none is
  GroupTally groups(rules, tally);
  bool expect_usual = true;  // numbers beyond the range seldom come alone
  while (count != 0) {
    const auto add_elements = [&](std::size_t elements) __attribute__((always_inline)) {
      groups.add_elements(elements, [&](std::size_t chain) {
        tally_element(static_cast<double>(source[chain]), 0.0, static_cast<double>(result[chain]), 0.0, chain, rules,
                      tally);
      });
    };
    if (count < tally_chains) return add_elements(count);
    const Floats x = load_floats(source), y = load_floats(result);
    if (!expect_usual || !groups.add_usual(x, y, greatest_usual)) {
      bool some_beyond = true;
      if (!groups.add<false>(widen(x), {}, widen(y), {}, some_beyond)) add_elements(tally_chains);
      expect_usual = !some_beyond;
    }
    source += tally_chains;
    result += tally_chains;
    count -= tally_chains;
  }
}

template <bool sums>
void tally_float64(RealSums source, RealSums result, std::size_t count, const TallyRules& rules, Tally& tally) {
  GroupTally groups(rules, tally);
  const auto low_of = [](const RealSums& numbers, std::size_t i) { return sums ? numbers.low[i] : 0.0; };
  const auto lows = [](const RealSums& numbers, std::size_t i) {
    return sums ? load_doubles(numbers.low + i) : Doubles{};
  };
  for (std::size_t i = 0; i < count; i += tally_chains) {
    const auto add_elements = [&](std::size_t elements) __attribute__((always_inline)) {
      groups.add_elements(elements, [&](std::size_t chain) {
        const std::size_t at = i + chain;
        tally_element(source.high[at], low_of(source, at), result.high[at], low_of(result, at), chain, rules, tally);
      });
    };
    if (count - i < tally_chains) return add_elements(count - i);
    bool some_beyond = false;
    if (!groups.add<sums>(load_doubles(source.high + i), lows(source, i), load_doubles(result.high + i),
                          lows(result, i), some_beyond)) {
      add_elements(tally_chains);
    }
  }
}

inline bool split_products(const double* x, double scale, double* high, double* low, std::size_t count) {
  constexpr std::int64_t least = 0x03f0000000000000;  // 2^-960: the lower part is no smaller than 2^-1066
  constexpr std::int64_t infinite = 0x7ff0000000000000;
  constexpr std::size_t lanes = static_cast<std::size_t>(kLanes) / 2;
  const F64 factor = splat(scale);
  I64 lost = {};
  const auto split = [&](const std::byte* from, std::byte* to_high, std::byte* to_low) {
    const F64 value = load<F64>(from);
    const F64 product = value * factor;
    const F64 rest = multiply_subtract(value, factor, product);
    const I64 magnitude = as<I64>(product) & INT64_MAX;
    const I64 is_finite = magnitude < infinite;
    const I64 is_source_finite = (as<I64>(value) & INT64_MAX) < infinite;
    const I64 is_source_zero = (as<I64>(value) & INT64_MAX) == 0;
    lost |= (is_source_finite & ~is_finite) | ((magnitude < least) & ~is_source_zero);
    store(to_high, product);
    store(to_low, as<F64>(as<I64>(rest) & is_finite));
  };
  const auto bytes = [](auto* values) {
    if constexpr (std::is_const_v<std::remove_pointer_t<decltype(values)>>) {
      return reinterpret_cast<const std::byte*>(values);
    } else {
      return reinterpret_cast<std::byte*>(values);
    }
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) split(bytes(x + i), bytes(high + i), bytes(low + i));
  if (i < count) {
    double last[lanes] = {}, last_high[lanes], last_low[lanes];
    __builtin_memcpy(last, x + i, (count - i) * sizeof(double));
    split(bytes(last), bytes(last_high), bytes(last_low));
    __builtin_memcpy(high + i, last_high, (count - i) * sizeof(double));
    __builtin_memcpy(low + i, last_low, (count - i) * sizeof(double));
  }
  std::int64_t any_lost = 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) any_lost |= lost[lane];
  return any_lost == 0;
}

// Subnormal numbers count, whatever the caller's floating-point environment does to them.
template <class Body>
auto in_default_environment(Body body) {
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return body();
  struct Restore {
    FloatEnvironment saved;
    ~Restore() { restore(saved); }
  } const restorer{saved};
  set_default_environment();
  return body();
}

const TallyLoops tally_loops = {
    .float32 =
        [](const float* source, const float* result, std::size_t count, const TallyRules& rules, Tally& tally) {
          in_default_environment([&] { tally_float32(source, result, count, rules, tally); });
        },
    .float64 =
        [](RealSums source, RealSums result, std::size_t count, const TallyRules& rules, Tally& tally) {
          const auto run = source.low == nullptr ? tally_float64<false> : tally_float64<true>;
          in_default_environment([&] { run(source, result, count, rules, tally); });
        },
    .split_products =
        [](const double* x, double scale, double* high, double* low, std::size_t count) {
          return in_default_environment([&] { return split_products(x, scale, high, low, count); });
        },
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
