#include "cast/report_integers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cast/report_codes.hpp"
#include "codec/encoded.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast {
namespace {

using Errors = kernels::IntegerRules::Errors;

constexpr std::size_t block_bytes = 2048;  // of decoded results, which so stay in the first-level cache

constexpr double least_e8m0 = 0x1p-127;  // what zeros become there

// The last magnitude that is rounded to one within the range: less than half a step past the largest, or that far where
// ties go to the largest as the even one.
double last_within(const DTypeRow& target) {
  const FloatFormat& format = target.format;
  const double half_step = std::ldexp(1.0, format.max_exponent() - format.mantissa_bits - 1);
  const bool tie_goes_up = format.largest_code() % 2 == 1;
  const double end = facts(target.id).largest + half_step;
  return tie_goes_up ? std::ceil(end) - 1.0 : std::floor(end);
}

}  // namespace

bool IntegerReporter::is_for(DType from, DType to, const codec::Policy& policy) noexcept {
  const double largest = facts(to).largest;
  if (bit_width(to) < 8 && largest != std::floor(largest)) return false;  // errors of integers are no integers then
  return family(from) == Family::integer && bit_width(from) >= 16 && policy.scale == 1.0;
}

IntegerReporter::IntegerReporter(DType from, DType to, const codec::Policy& policy, Target target)
    : from_(from), to_(to), target_(target) {
  const DTypeRow& source = row(from);
  const DTypeRow& type = row(to);
  const int digits = source.is_signed ? source.bits - 1 : source.bits;
  const double greatest = std::ldexp(1.0, digits);  // and some less, maybe
  rules_.bits = source.bits;
  rules_.is_signed = source.is_signed;
  rules_.limit = source.bits < 64 ? std::ldexp(1.0, source.bits) - 1.0 : std::numeric_limits<double>::infinity();
  if (type.family == Family::integer) {
    // Those of one sign more take a digit for it.
    const bool has_all = type.is_signed ? type.bits > digits : !source.is_signed && type.bits >= digits;
    if (has_all) return;
    // Signed targets: numbers from half the unit on become negative, and so are a unit further away.
    const bool is_narrower = type.bits < source.bits;
    rules_.errors = Errors::wrapped;
    rules_.above = std::min(type.bits, source.bits - 1);
    rules_.carry = type.is_signed && is_narrower ? 1 : 0;
    rules_.below = is_narrower ? type.bits - 1 : 0;
    unit_exponent_ = type.bits;
    // At most, -1 becomes the largest, or half the unit its negative, or the unit zero.
    const int exponent = type.is_signed ? type.bits - 1 : source.is_signed ? 0 : type.bits;
    if (exponent < 32) rules_.least_ratio = std::uint32_t{1} << exponent;
  } else if (type.family != Family::floating) {  // bool: nothing is beyond its range
    rules_.errors = source.bits < 64 ? Errors::truth : Errors::saturated;
  } else if (!type.format.has_zero) {
    const CodeFate of_zero = fate_of(from, 0, to, policy);
    rules_.errors = of_zero.is_finite ? Errors::lifted : Errors::refused;
    makes_nan_ = !of_zero.is_finite;
    rules_.least_ratio = 1;  // of negative numbers
  } else if (type.format.mantissa_bits + 1 < digits) {
    rules_.errors = Errors::rounded;
    // The first tie, which is rounded by one.
    if (source.bits < 64) rules_.least_ratio = (std::uint32_t{2} << type.format.mantissa_bits) + 1;
    const double limit = last_within(type);
    if (limit >= greatest - 1.0) return;
    rules_.limit = limit;
    rules_.extreme = facts(to).largest;
    const CodeFate of_greatest = fate_of(from, (std::uint64_t{1} << (digits - 1) << 1) - 1, to, policy);
    rules_.errors = of_greatest.is_finite ? Errors::saturated : Errors::overflowed;
    makes_nan_ = (of_greatest.events & codec::event_nan_made) != 0;
  }
}

void IntegerReporter::add(const Conversion& done, Count& count) const {
  if (rules_.bits == 64) {
    add_long(done, count.of_64_bits);
  } else {
    add_narrow(done, count.narrow);
  }
}

void IntegerReporter::add_narrow(const Conversion& done, kernels::IntegerTally& tally) const {
  if (!kernels::reads_result(rules_.errors)) {
    kernels::tally_integers(target_, done.src, nullptr, done.count, rules_, tally);
    return;
  }
  const DType as = kernels::takes_floats(rules_.bits, rules_.errors) ? DType::float32 : from_;
  const kernels::KernelFn decode = kernels::find_kernel(target_, to_, as)->run;
  alignas(64) std::array<std::byte, block_bytes> result;
  const std::size_t block = block_bytes * 8 / static_cast<std::size_t>(rules_.bits);
  for (std::size_t first = 0; first < done.count; first += block) {
    const std::size_t elements = std::min(block, done.count - first);
    decode(done.dst + storage_bytes(to_, first), result.data(), elements, {});
    kernels::tally_integers(target_, done.src + storage_bytes(from_, first), result.data(), elements, rules_, tally);
  }
}

void IntegerReporter::add_long(const Conversion& done, kernels::LongTally& tally) const {
  if (!kernels::reads_result(rules_.errors) || to_ == DType::float32 || to_ == DType::float64) {
    kernels::tally_long_integers(target_, done.src, done.dst, to_ == DType::float64, done.count, rules_, tally);
    return;
  }
  const kernels::KernelFn decode = kernels::find_kernel(target_, to_, DType::float32)->run;
  alignas(64) std::array<std::byte, block_bytes> result;
  constexpr std::size_t block = block_bytes / sizeof(float);
  for (std::size_t first = 0; first < done.count; first += block) {
    const std::size_t elements = std::min(block, done.count - first);
    decode(done.dst + storage_bytes(to_, first), result.data(), elements, {});
    kernels::tally_long_integers(target_, done.src + storage_bytes(from_, first), result.data(), false, elements,
                                 rules_, tally);
  }
}

CastReport IntegerReporter::report(const Count& count) const {
  const kernels::IntegerTally& narrow = count.narrow;
  const kernels::LongTally& of_64_bits = count.of_64_bits;
  CastReport report;
  report.inexact = narrow.inexact + narrow.zeros + of_64_bits.inexact;
  const std::uint64_t beyond = narrow.beyond + of_64_bits.beyond;
  switch (rules_.errors) {
    case Errors::wrapped:
      report.wrapped = report.inexact;
      break;
    case Errors::saturated:
    case Errors::lifted:
      report.saturated = beyond;
      break;
    case Errors::overflowed:
    case Errors::refused:
      report.overflowed = beyond;
      report.nan_made = makes_nan_ ? beyond : 0;
      break;
    case Errors::none:
    case Errors::rounded:
    case Errors::truth:
      break;
  }
  const double ratio = static_cast<double>(narrow.ratio_error) / static_cast<double>(narrow.ratio_source);
  report.max_abs_error = std::ldexp(std::max<double>(narrow.max_error, of_64_bits.max_error), unit_exponent_);
  report.max_rel_error = std::ldexp(std::max(ratio, of_64_bits.max_ratio), unit_exponent_);
  report.signal_power = static_cast<double>(narrow.signal);
  report.noise_power = static_cast<double>(narrow.noise);
  for (std::size_t chain = 0; chain < kernels::tally_chains; ++chain) {
    report.signal_power += of_64_bits.signal[chain];
    report.noise_power += of_64_bits.noise[chain];
  }
  report.noise_power = std::ldexp(report.noise_power, 2 * unit_exponent_);
  if (narrow.zeros != 0) {
    report.max_abs_error = std::max(report.max_abs_error, least_e8m0);
    report.noise_power += static_cast<double>(narrow.zeros) * (least_e8m0 * least_e8m0);
  }
  return report;
}

}  // namespace tensorcast
