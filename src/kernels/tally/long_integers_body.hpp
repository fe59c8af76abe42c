// The loops of a tally of integers of 64 bits for the target that the source is compiled for: 16 elements at a
// time, in the definition's chains.
//
// 1. Sources are converted to float64 in registers. Of a target that keeps the low bits, the error is what the bits
//    above are worth, in units of the lowest of these: found in integers, whatever the source, and exact.
// 2. Else the error is source less result. Float64 may lack the last bits of a source, which is split in two.
// 3. Each loop is for one way that errors come about, and counts what can occur there.
// 4. Groups without errors have only their sources summed.
// 5. The largest relative error needs a division only where it grows: where the error exceeds the largest one so far
//    times the source.
#pragma once

#include <cmath>
#include <cstring>

#include "kernels/simd/environment.hpp"
#include "kernels/tally/integers_loops.hpp"
#include "kernels/tally/tally_masks.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using Errors = IntegerRules::Errors;

// Sixteen sources.
template <bool is_signed>
class Sources {
 public:
  SIMD_INLINE explicit Sources(const std::byte* source) {
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) x_[r] = load<I64>(source + static_cast<std::size_t>(r) * sizeof(I64));
  }
  SIMD_INLINE Doubles high() const {
    Doubles out;
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) out.at[r] = to_f64<is_signed>(x_[r]);
    return out;
  }
  // The same as `high`, and what it lacks.
  SIMD_INLINE void split(Doubles& high, Doubles& low) const {
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) {
      const SplitF64 sum = split_integer<is_signed>(x_[r]);
      high.at[r] = sum.high;
      low.at[r] = sum.low;
    }
  }
  SIMD_INLINE Doubles units_lost(int above, int below, int carry) const {
    Doubles out;
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) {
      const I64 units = is_signed ? x_[r] >> above : as<I64>(as<U64>(x_[r]) >> above);
      out.at[r] = to_f64<true>(units + (as<I64>(as<U64>(x_[r]) >> below) & carry));
    }
    return out;
  }

 private:
  static constexpr int registers = Doubles::registers;

  I64 x_[registers];
};

template <class Number>
SIMD_INLINE Doubles load_results(const std::byte* result) {
  if constexpr (sizeof(Number) == 4) return load_widened_group(reinterpret_cast<const float*>(result));
  return load_group<F64>(reinterpret_cast<const double*>(result));
}

template <bool is_signed, Errors errors, class Result>
class LongBlock {
 public:
  SIMD_INLINE LongBlock(const IntegerRules& rules, const LongTally& tally)
      : above_(rules.above), below_(rules.below), carry_(rules.carry), limit_(splat(rules.limit)) {
    signal_ = load_group<F64>(tally.signal);
    noise_ = load_group<F64>(tally.noise);
    ratio_ = splat(tally.max_ratio);
  }

  static constexpr bool reads_result = kernels::reads_result(errors);

  SIMD_INLINE void add(const std::byte* source, const std::byte* result, LongTally& tally) {
    const Sources<is_signed> sources(source);
    Doubles x, error;
    if constexpr (reads_result) {
      Doubles low;
      sources.split(x, low);
      error = difference(x, low, load_results<Result>(result));
    } else {
      x = sources.high();
      if constexpr (has_errors) error = sources.units_lost(above_, below_, carry_);
    }
    if constexpr (has_errors) {
      Mask64 inexact[registers];
      Mask64 some_inexact = {};
#pragma GCC unroll 8
      for (int r = 0; r < registers; ++r) {
        if constexpr (is_signed || reads_result) error.at[r] = magnitude_of(error.at[r]);
        if constexpr (has_limit || only_positive) {
          const Mask64 is_within = has_limit ? greater_equal(limit_, size_of(x.at[r])) : less(F64{}, x.at[r]);
          within_.add(is_within);
          if constexpr (drops_beyond) {
            x.at[r] = kept_where(is_within, x.at[r]);
            error.at[r] = kept_where(is_within, error.at[r]);
          }
        }
        inexact[r] = nonzero(as<I64>(error.at[r]));
        some_inexact = r == 0 ? inexact[r] : united(some_inexact, inexact[r]);
      }
      if (some(some_inexact)) add_errors(x, error, inexact, tally);
    }
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) signal_.at[r] = signal_.at[r] + x.at[r] * x.at[r];
  }

  // `count` elements in `groups` groups, the last one filled up with zeros.
  void finish(std::size_t count, std::size_t groups, LongTally& tally) {
    store_group(tally.signal, signal_);
    if constexpr (!has_errors) return;
    store_group(tally.noise, noise_);
    tally.inexact += inexact_.total();
    tally.max_error = std::fmax(tally.max_error, greatest_lane(max_error_));
    if constexpr (has_limit) tally.beyond += groups * tally_chains - within_.total();
    if constexpr (only_positive) tally.beyond += count - within_.total();
  }

 private:
  static constexpr int registers = Doubles::registers;
  static constexpr bool has_errors = errors != Errors::none;
  static constexpr bool has_limit = errors == Errors::saturated || errors == Errors::overflowed;
  static constexpr bool only_positive = errors == Errors::lifted || errors == Errors::refused;
  static constexpr bool drops_beyond = errors == Errors::overflowed || errors == Errors::refused;

  SIMD_INLINE static F64 size_of(F64 x) { return is_signed ? magnitude_of(x) : x; }

  SIMD_INLINE void add_errors(const Doubles& x, const Doubles& error, const Mask64* inexact, LongTally& tally) {
    Mask64 grows = {};
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) {
      inexact_.add(inexact[r]);
      max_error_ = greater_of(max_error_, error.at[r]);
      noise_.at[r] = noise_.at[r] + error.at[r] * error.at[r];
      Mask64 is_greater = less(ratio_ * size_of(x.at[r]), error.at[r]);
      if constexpr (errors == Errors::lifted) is_greater = common(is_greater, nonzero(as<I64>(x.at[r])));
      grows = r == 0 ? is_greater : united(grows, is_greater);
    }
    if (some(grows)) [[unlikely]] {
      double values[tally_chains], errors_of_x[tally_chains];  // made here, so that registers do outside
      store_group(values, x);
      store_group(errors_of_x, error);
      ratio_ = splat(grow(values, errors_of_x, tally));
    }
  }

  SIMD_INLINE static Doubles difference(const Doubles& x, const Doubles& low, const Doubles& y) {
    Doubles out;
#pragma GCC unroll 8
    for (int r = 0; r < registers; ++r) out.at[r] = (x.at[r] - y.at[r]) + low.at[r];
    return out;
  }

  // Returns what the next errors are compared with: no less than the largest ratio, and so much that the same element
  // does not come here again, though the product with it be rounded.
  [[gnu::noinline]] static double grow(const double* x, const double* errors_of_x, LongTally& tally) {
    double limit = tally.max_ratio;
    for (std::size_t i = 0; i < tally_chains; ++i) {
      const double size = std::fabs(x[i]);
      if (size == 0.0 || !(errors_of_x[i] / size >= tally.max_ratio)) continue;
      limit = tally.max_ratio = errors_of_x[i] / size;
      while (limit * size < errors_of_x[i]) limit = std::nextafter(limit, 2.0 * limit);
    }
    return limit;
  }

  int above_, below_, carry_;
  F64 limit_, ratio_;
  F64 max_error_ = {};
  Doubles signal_, noise_;
  LaneCount<Mask64> inexact_, within_;
};

template <bool is_signed, Errors errors, class Result>
void tally_block(const std::byte* source, const std::byte* result, std::size_t count, const IntegerRules& rules,
                 LongTally& tally) {
  using Block = LongBlock<is_signed, errors, Result>;
  constexpr std::size_t source_bytes = tally_chains * sizeof(std::int64_t);
  constexpr std::size_t result_bytes = Block::reads_result ? tally_chains * sizeof(Result) : 0;
  Block block(rules, tally);
  // The last elements are filled up with zeros, and go through the same loop: one copy of the code.
  std::byte last_source[source_bytes] = {}, last_result[tally_chains * sizeof(Result)] = {};
  std::size_t groups = count / tally_chains;
  std::size_t rest = count % tally_chains;
  for (;;) {
    for (; groups != 0; --groups, source += source_bytes, result += result_bytes) block.add(source, result, tally);
    if (rest == 0) break;
    std::memcpy(last_source, source, rest * sizeof(std::int64_t));
    if constexpr (Block::reads_result) std::memcpy(last_result, result, rest * sizeof(Result));
    source = last_source;
    result = last_result;
    groups = 1;
    rest = 0;
  }
  block.finish(count, (count + tally_chains - 1) / tally_chains, tally);
}

template <bool is_signed>
void tally_long(const std::byte* source, const std::byte* result, bool is_result_double, std::size_t count,
                const IntegerRules& rules, LongTally& tally) {
  switch (rules.errors) {
    case Errors::none:
      return tally_block<is_signed, Errors::none, float>(source, result, count, rules, tally);
    case Errors::wrapped:
      return tally_block<is_signed, Errors::wrapped, float>(source, result, count, rules, tally);
    case Errors::rounded:
      return is_result_double ? tally_block<is_signed, Errors::rounded, double>(source, result, count, rules, tally)
                              : tally_block<is_signed, Errors::rounded, float>(source, result, count, rules, tally);
    case Errors::truth:
    case Errors::saturated:
      return tally_block<is_signed, Errors::saturated, float>(source, result, count, rules, tally);
    case Errors::overflowed:
      return tally_block<is_signed, Errors::overflowed, float>(source, result, count, rules, tally);
    case Errors::lifted:
      return tally_block<is_signed, Errors::lifted, float>(source, result, count, rules, tally);
    case Errors::refused:
      return tally_block<is_signed, Errors::refused, float>(source, result, count, rules, tally);
  }
}

// Subnormal results count, whatever the caller's floating-point environment does to them.
void tally_long_integers(const std::byte* source, const std::byte* result, bool is_result_double, std::size_t count,
                         const IntegerRules& rules, LongTally& tally) {
  const auto run = rules.is_signed ? tally_long<true> : tally_long<false>;
  in_default_environment([&] { run(source, result, is_result_double, count, rules, tally); });
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
