#include "kernels/tally/tally.hpp"

#include <cmath>

#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels {

const TallyLoops& tally_loops_of(Target target) noexcept {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      return portable::tally_loops;
    case Target::avx2:
      return avx2::tally_loops;
    case Target::avx512:
    case Target::avx512vbmi:
      return avx512::tally_loops;
  }
#endif
  static_cast<void>(target);
  return portable::tally_loops;
}

// No float32 is between a bound and the sum of its two parts.
void TallyRules::set_floats() noexcept {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto nearest = [](double x) {  // NaN stays
    if (x > std::numeric_limits<float>::max()) return infinity;
    return x < std::numeric_limits<float>::lowest() ? -infinity : static_cast<float>(x);
  };
  float_below = nearest(below);
  if (static_cast<double>(float_below) > below) float_below = std::nextafterf(float_below, -infinity);
  float_above = nearest(above);
  if (static_cast<double>(float_above) < above) float_above = std::nextafterf(float_above, infinity);
  float_usual_error = nearest(usual_error);
}

void tally_element(double x, double x_low, double y, double y_low, std::size_t chain, const TallyRules& rules,
                   Tally& tally) noexcept {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool x_nan = x != x;
  const bool y_nan = y != y;
  const bool x_finite = std::fabs(x) < infinity;
  const bool y_finite = std::fabs(y) < infinity;
  tally.nan_made += !x_nan && y_nan;
  tally.nan_lost += x_nan && !y_nan;
  tally.overflowed += x_finite && !y_finite;
  // The difference of near numbers is exact, so its sign is right.
  const bool is_beyond =
      (x - rules.above) + (x_low - rules.above_low) >= 0.0 || (x - rules.below) + (x_low - rules.below_low) <= 0.0;
  tally.beyond += is_beyond && y_finite;
  tally.underflowed += x != 0.0 && !x_nan && y == 0.0;
  if (!x_finite || !y_finite) return;
  const double error = std::fabs((x - y) + (x_low - y_low));
  tally.inexact += error != 0.0;
  if (chain != no_chain) {
    tally.signal[chain] += x * x;
    tally.noise[chain] += error * error;
  }
  if (tally.max_abs < error) tally.max_abs = error;
  if (x != 0.0 && tally.max_rel < error / std::fabs(x)) tally.max_rel = error / std::fabs(x);
}

void tally_float32(Target target, const float* source, const float* result, std::size_t count, const TallyRules& rules,
                   Tally& tally) noexcept {
  tally_loops_of(target).float32(source, result, count, rules, tally);
}

void count_float32(Target target, const float* source, const float* result, std::size_t count, const TallyRules& rules,
                   Tally& tally) noexcept {
  tally_loops_of(target).float32_counts(source, result, count, rules, tally);
}

void tally_float64(Target target, RealSums source, RealSums result, std::size_t count, const TallyRules& rules,
                   Tally& tally) noexcept {
  tally_loops_of(target).float64(source, result, count, rules, tally);
}

void tally_products(Target target, const float* source, double scale, const float* result, std::size_t count,
                    const TallyRules& rules, Tally& tally) noexcept {
  tally_loops_of(target).products(source, scale, result, count, rules, tally);
}

bool are_small(Target target, const std::byte* integers, int bits, bool is_signed, int digits,
               std::size_t count) noexcept {
  return tally_loops_of(target).are_small(integers, bits, is_signed, digits, count);
}

std::size_t count_byte(Target target, const std::byte* data, std::size_t bytes, std::byte value) noexcept {
  return tally_loops_of(target).count_byte(data, bytes, value);
}

std::size_t count_bytes(Target target, const std::byte* data, std::size_t bytes, ByteWindow window,
                        std::uint64_t* counts) noexcept {
  return tally_loops_of(target).count_bytes(data, bytes, window, counts);
}

void count_half_bytes(Target target, const std::byte* data, std::size_t bytes, std::uint64_t* counts) noexcept {
  tally_loops_of(target).count_half_bytes(data, bytes, counts);
}

bool has_count_bytes(Target target) noexcept { return tally_loops_of(target).count_bytes != nullptr; }

void split_integers(Target target, const std::byte* integers, bool is_signed, double* high, double* low,
                    std::size_t count) noexcept {
  tally_loops_of(target).split_integers(integers, is_signed, high, low, count);
}

bool split_products(Target target, const double* x, double scale, double* high, double* low,
                    std::size_t count) noexcept {
  return tally_loops_of(target).split_products(x, scale, high, low, count);
}

}  // namespace tensorcast::kernels
