#include <cstring>
#include <limits>

#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::kernels {
namespace {

using codec::IntegerRange;
using codec::Policy;

// The numbers that are surely accepted. NaN never is: it may be, and then the reference says so.
struct Accepted {
  double lowest = -std::numeric_limits<double>::infinity();
  double highest = std::numeric_limits<double>::infinity();
  bool ends_included = true;
};

Accepted accepted_by(const DTypeRow& to, const Policy& policy) {
  if (to.family == Family::floating) {  // float8_e8m0fnu refuses negative numbers, float4_e2m1fn NaN
    if (to.format.has_sign) return {};
    // A product of zero may be a negative number that underflowed.
    return {.lowest = policy.scale == 1.0 ? 0.0 : std::numeric_limits<double>::denorm_min()};
  }
  if (policy.integer_range != IntegerRange::error) return {.ends_included = false};  // only what is not finite
  double power = 1.0;
  for (int bit = to.is_signed ? 1 : 0; bit < to.bits; ++bit) power *= 2.0;
  // What is cut off or rounded away: up to one, or up to a half. Beyond 2^53 there are no fractions.
  const double margin = policy.int_rounding == IntRounding::trunc ? 1.0 : 0.5;
  return {.lowest = (to.is_signed ? -power : 0.0) - margin, .highest = power - 1.0 + margin, .ends_included = false};
}

bool demands_errors(const DTypeRow& from, const DTypeRow& to, const Policy& policy) {
  switch (to.family) {
    case Family::floating:
      return policy.invalid_is_error && (!to.format.has_sign || !to.format.has_nan());
    case Family::integer:
      return (from.family == Family::floating || policy.scale != 1.0) &&
             (policy.invalid_is_error || policy.integer_range == IntegerRange::error);
    case Family::boolean:
    case Family::text:
      break;
  }
  return false;
}

}  // namespace

// Rounding is monotonic: a product that rounds to less than a limit is less than it, unless it underflows.
bool may_refuse(Target target, const std::byte* src, DType from, DType to, std::size_t count,
                const Policy& policy) noexcept {
  const DTypeRow& source = row(from);
  if (!demands_errors(source, row(to), policy)) return false;
  const bool exact_in_float64 = source.family != Family::integer || source.bits < 64;
  if (policy.scale != 1.0 && !exact_in_float64) return true;

  const Accepted accepted = accepted_by(row(to), policy);
  const Kernel* const to_float64 = from == DType::float64 ? nullptr : find_kernel(target, from, DType::float64);
  constexpr std::size_t buffer_count = 1024;  // fills whole bytes of every type
  alignas(64) double buffer[buffer_count];
  while (count != 0) {
    const std::size_t step = count < buffer_count ? count : buffer_count;
    if (to_float64 == nullptr) {
      std::memcpy(buffer, src, step * sizeof(double));
    } else {
      to_float64->run(src, reinterpret_cast<std::byte*>(buffer), step, {});
    }
    std::size_t accepted_count = 0;
    if (accepted.ends_included) {
      for (std::size_t i = 0; i < step; ++i) {
        const double x = buffer[i] * policy.scale;
        accepted_count += (x >= accepted.lowest) & (x <= accepted.highest);
      }
    } else {
      for (std::size_t i = 0; i < step; ++i) {
        const double x = buffer[i] * policy.scale;
        accepted_count += (x > accepted.lowest) & (x < accepted.highest);
      }
    }
    if (accepted_count != step) return true;
    src += step * static_cast<std::size_t>(source.bits) / 8;
    count -= step;
  }
  return false;
}

}  // namespace tensorcast::kernels
