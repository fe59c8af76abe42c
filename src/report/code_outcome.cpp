// SPDX-License-Identifier: Apache-2.0
#include "report/code_outcome.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "codec/reference_cast.hpp"

namespace tensorcast::report {
namespace {

// significand * 2^exponent, whose exponent may be out of float64's range.
struct Magnitude {
  double significand = 0.0;
  int exponent = 0;
};

double value_of(const Magnitude& x) {
  constexpr int bias = 1023, mantissa_bits = 52;
  if (std::abs(x.exponent) >= bias) return std::ldexp(x.significand, x.exponent);
  // By a product, which takes a tenth of the time: `exponent` is one of float64.
  return x.significand * std::bit_cast<double>(static_cast<std::uint64_t>(x.exponent + bias) << mantissa_bits);
}

bool is_finite(const codec::Real& x) {
  return x.kind == codec::Real::Kind::finite || x.kind == codec::Real::Kind::zero;
}

Magnitude magnitude(const codec::Real& x) {
  if (x.kind == codec::Real::Kind::zero) return {};
  return {.significand = static_cast<double>(x.significand), .exponent = x.exponent};
}

// |x| + |y|.
Magnitude sum(const codec::Real& x, const codec::Real& y) {
  Magnitude larger = magnitude(x), smaller = magnitude(y);
  if (smaller.significand == 0.0) return larger;
  if (larger.significand == 0.0) return smaller;
  if (larger.exponent < smaller.exponent) std::swap(larger, smaller);
  larger.significand += std::ldexp(smaller.significand, smaller.exponent - larger.exponent);
  return larger;
}

// |x - y| of two finite numbers. The difference of two significands is exact where digits cancel, so a small distance
// to the rounded result keeps its precision.
Magnitude distance(const codec::Real& x, const codec::Real& y) {
  using Kind = codec::Real::Kind;
  if (x.kind == Kind::zero || y.kind == Kind::zero || x.negative != y.negative) return sum(x, y);
  const bool x_is_larger = x.exponent != y.exponent ? x.exponent > y.exponent : x.significand > y.significand;
  const codec::Real& larger = x_is_larger ? x : y;
  const codec::Real& smaller = x_is_larger ? y : x;
  const int shift = larger.exponent - smaller.exponent;
  if (shift == 1 && larger.significand < smaller.significand) {
    const codec::uint128 difference = larger.significand - (smaller.significand - larger.significand);
    return {.significand = static_cast<double>(difference), .exponent = smaller.exponent};
  }
  const codec::uint128 aligned = shift < 128 ? smaller.significand >> shift : 0;
  return {.significand = static_cast<double>(larger.significand - aligned), .exponent = larger.exponent};
}

}  // namespace

CodeOutcome code_outcome(DType from, std::uint64_t code, DType to, const codec::Policy& policy, std::uint32_t random) {
  const codec::Encoded encoded = codec::cast_code(from, code, to, policy, random);
  codec::Real exact = codec::decode(from, code);
  if (policy.scale != 1.0) exact = codec::scaled(exact, policy.scale);
  const codec::Real result = codec::decode(to, encoded.bits);
  if (!is_finite(exact) || !is_finite(result)) return {.events = encoded.events};
  const Magnitude source = magnitude(exact), error = distance(exact, result);
  const Magnitude relative = {.significand = error.significand / source.significand,
                              .exponent = error.exponent - source.exponent};
  return {.events = encoded.events,
          .is_finite = true,
          .source = value_of(source),
          .error = value_of(error),
          .relative_error = source.significand == 0.0 ? 0.0 : value_of(relative)};
}

void add_counts(const CodeOutcome& outcome, std::uint64_t times, CastReport& report) {
  const auto count = [&](std::uint32_t event) { return (outcome.events & event) != 0 ? times : 0; };
  report.overflowed += count(codec::event_overflowed);
  report.saturated += count(codec::event_saturated);
  report.underflowed_to_zero += count(codec::event_underflowed);
  report.inexact += count(codec::event_inexact);
  report.nan_made += count(codec::event_nan_made);
  report.nan_lost += count(codec::event_nan_lost);
  report.wrapped += count(codec::event_wrapped);
  report.sign_lost += count(codec::event_sign_lost);
  report.max_abs_error = std::max(report.max_abs_error, outcome.error);
  report.max_rel_error = std::max(report.max_rel_error, outcome.relative_error);
}

void add_outcome(const CodeOutcome& outcome, std::uint64_t times, CastReport& report) {
  add_counts(outcome, times, report);
  report.signal_power += outcome.source * outcome.source * static_cast<double>(times);
  report.noise_power += outcome.error * outcome.error * static_cast<double>(times);
}

}  // namespace tensorcast::report
