#include "cast/report_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "cast/report_codes.hpp"
#include "codec/encoded.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast {
namespace {

using Errors = kernels::WordRules::Errors;

constexpr int word_bits = 16;
constexpr std::size_t block_elements = 1024;  // both blocks fit the first-level cache

constexpr double least_e8m0 = 0x1p-127;  // what zeros become there

// The last magnitude that is rounded to one within the range: less than half a step past the largest, or that far where
// ties go to the largest as the even one.
std::uint16_t last_within(const DTypeRow& target) {
  const FloatFormat& format = target.format;
  const double half_step = std::ldexp(1.0, format.max_exponent() - format.mantissa_bits - 1);
  const bool tie_goes_up = format.largest_code() % 2 == 1;
  const double end = facts(target.id).largest + half_step;
  const double last = tie_goes_up ? std::ceil(end) - 1.0 : std::floor(end);
  return static_cast<std::uint16_t>(std::min(last, double{UINT16_MAX}));
}

}  // namespace

bool WordReporter::is_for(DType from, const codec::Policy& policy) noexcept {
  return (from == DType::int16 || from == DType::uint16) && policy.scale == 1.0;
}

WordReporter::WordReporter(DType from, DType to, const codec::Policy& policy, Target target)
    : from_(from), to_(to), target_(target) {
  const DTypeRow& type = row(to);
  const bool is_signed = from == DType::int16;
  rules_.is_signed = is_signed;
  switch (type.family) {
    case Family::integer: {
      const bool has_all = type.is_signed ? type.bits + is_signed > word_bits : !is_signed && type.bits >= word_bits;
      if (has_all) break;
      // Signed targets: numbers from half the unit on become negative, and so are a unit further away.
      rules_.errors = Errors::wrapped;
      rules_.above = std::min(type.bits, word_bits - 1);
      rules_.carry = type.is_signed && type.bits < word_bits ? 1 : 0;
      rules_.below = type.bits < word_bits ? type.bits - 1 : 0;
      unit_exponent_ = type.bits;
      break;
    }
    case Family::floating: {
      if (!type.format.has_zero) {
        const CodeFate of_zero = fate_of(from, 0, to, policy);
        rules_.errors = of_zero.is_finite ? Errors::lifted : Errors::refused;
        makes_nan_ = !of_zero.is_finite;
        break;
      }
      if (type.bits > word_bits) break;
      rules_.limit = last_within(type);
      const std::uint16_t greatest = is_signed ? INT16_MAX : UINT16_MAX;
      if (rules_.limit >= greatest) {
        rules_.errors = Errors::rounded;
        break;
      }
      const CodeFate of_greatest = fate_of(from, greatest, to, policy);
      rules_.errors = of_greatest.is_finite ? Errors::saturated : Errors::overflowed;
      makes_nan_ = (of_greatest.events & codec::event_nan_made) != 0;
      break;
    }
    default:  // bool: nothing is beyond its range
      rules_.errors = Errors::saturated;
  }
}

void WordReporter::add(const Conversion& done, kernels::WordTally& tally) const {
  if (rules_.errors == Errors::none || rules_.errors == Errors::wrapped) {
    kernels::tally_words(target_, done.src, nullptr, done.count, rules_, tally);
    return;
  }
  const kernels::KernelFn decode = kernels::find_kernel(target_, to_, from_)->run;
  alignas(64) std::array<std::byte, block_elements * 2> result;
  for (std::size_t first = 0; first < done.count; first += block_elements) {
    const std::size_t elements = std::min(block_elements, done.count - first);
    decode(done.dst + storage_bytes(to_, first), result.data(), elements, {});
    kernels::tally_words(target_, done.src + storage_bytes(from_, first), result.data(), elements, rules_, tally);
  }
}

CastReport WordReporter::report(const kernels::WordTally& tally) const {
  CastReport report;
  report.inexact = tally.inexact;
  switch (rules_.errors) {
    case Errors::wrapped:
      report.wrapped = tally.inexact;
      break;
    case Errors::saturated:
    case Errors::lifted:
      report.saturated = tally.beyond;
      break;
    case Errors::overflowed:
    case Errors::refused:
      report.overflowed = tally.beyond;
      report.nan_made = makes_nan_ ? tally.beyond : 0;
      break;
    case Errors::none:
    case Errors::rounded:
      break;
  }
  report.max_abs_error = std::ldexp(tally.max_error, unit_exponent_);
  report.max_rel_error = std::ldexp(static_cast<double>(tally.ratio_error) / tally.ratio_source, unit_exponent_);
  report.signal_power = static_cast<double>(tally.signal);
  report.noise_power = std::ldexp(static_cast<double>(tally.noise), 2 * unit_exponent_);
  if (tally.zeros != 0) {
    report.inexact += tally.zeros;
    report.max_abs_error = std::max(report.max_abs_error, least_e8m0);
    report.noise_power += static_cast<double>(tally.zeros) * (least_e8m0 * least_e8m0);
  }
  return report;
}

}  // namespace tensorcast
