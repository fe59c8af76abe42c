#include "kernels/scaled.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;

constexpr std::size_t piece_count = 1024;           // elements whose products stay in the first-level cache
constexpr std::size_t small_count = 64;             // elements of a piece that need another way, the least that take it
constexpr std::size_t search_pays_from = 1U << 16;  // elements: the search takes some microseconds

std::uint64_t float32_bits(double x) { return std::bit_cast<std::uint32_t>(static_cast<float>(x)); }

std::size_t bytes_of(const DTypeRow& type, std::size_t count) {
  return count * static_cast<std::size_t>(type.bits) / 8;
}

// --- A float32 that does as well as the scale

// How `significand`, an integer, lies to the numbers of at most `digits` binary digits: itself with fewer digits cut
// off, and whether that changed it.
struct Interval {
  std::uint64_t floor;
  bool is_inside;
  friend bool operator==(const Interval&, const Interval&) = default;
};

Interval interval_of(std::uint64_t significand, int digits) {
  const std::uint64_t aligned = significand << std::countl_zero(significand);
  return {aligned >> (64 - digits), aligned << digits != 0};
}

// Whether products of all integers of `source_digits` digits with two scales lie alike to all numbers of
// `boundary_digits` digits. The significands are below 2^53, aligned to each other.
bool lie_alike(std::uint64_t scale, std::uint64_t other, int source_digits, int boundary_digits) {
  for (std::uint64_t x = std::uint64_t{1} << (source_digits - 1); x >> source_digits == 0; ++x) {
    if (std::bit_width(x * scale) != std::bit_width(x * other)) return false;
    if (interval_of(x * scale, boundary_digits) != interval_of(x * other, boundary_digits)) return false;
  }
  return true;
}

// One of the two float32 next to the scale, for sources of at most 11 digits. Precondition: both are normal.
std::optional<double> nearby_float32(double scale, int source_digits, int boundary_digits) {
  constexpr std::uint64_t significand_bits = 0xfffffffffffff, leading = 0x10000000000000;
  constexpr std::uint64_t step = std::uint64_t{1} << 29;  // the last bit of a float32
  const auto bits = std::bit_cast<std::uint64_t>(scale);
  const std::uint64_t significand = (bits & significand_bits) | leading;
  const std::uint64_t below = significand & ~(step - 1);
  for (const std::uint64_t other : {below, below + step}) {
    if (other == leading * 2 || !lie_alike(significand, other, source_digits, boundary_digits)) continue;
    return std::bit_cast<double>((bits & ~significand_bits) | (other & significand_bits));
  }
  return std::nullopt;
}

// Numbers at which the target's result changes have this many digits; those of integers as far as integer_limit().
int boundary_digits(const DTypeRow& to) {
  return to.family == Family::floating ? to.format.mantissa_bits + 2 : to.bits + 3;
}
double integer_limit(const DTypeRow& to) { return std::ldexp(1.0, boundary_digits(to) - 1); }  // multiples of one half

std::optional<double> float32_scale(const DTypeRow& from, const DTypeRow& to, double scale, std::size_t total) {
  const double size = std::fabs(scale);
  if (!(size >= 0x1p-60 && size <= 0x1p60)) return std::nullopt;
  if (static_cast<double>(static_cast<float>(scale)) == scale) return scale;
  const bool is_short = from.family == Family::floating && from.bits == 16;
  if (!is_short || to.family == Family::boolean || boundary_digits(to) > 12 || total < search_pays_from) return {};
  return nearby_float32(scale, from.format.mantissa_bits + 1, boundary_digits(to));
}

// --- Which products are unwanted

bool wraps(const DTypeRow& to, const Policy& policy) {
  return to.family == Family::integer && policy.integer_range != codec::IntegerRange::saturate;
}

// In float32, to targets of 16 bits or fewer.
Multiplication float32_multiplication(double scale, const DTypeRow& to, const Policy& policy, double integer_limit) {
  constexpr std::uint64_t infinity = 0x7f800000;
  if (wraps(to, policy)) return {scale, float32_bits(integer_limit), infinity};
  if (to.family != Family::floating) return {scale};
  // A finite number beyond float32 may be infinite by now.
  const bool tells_infinity = to.format.nonfinite == NonFinite::nan_negative_zero && policy.saturate;
  if (tells_infinity && policy.fnuz_inf_is_nan) return {scale, float32_bits(0x1p127), infinity + 1};
  return {scale};
}

// In float64.
Multiplication float64_multiplication(const DTypeRow& from, const DTypeRow& to, const Policy& policy) {
  constexpr std::uint64_t infinity = 0x7ff0000000000000;
  const bool is_long = from.family == Family::integer && from.bits == 64;
  const bool saturates_early = !wraps(to, policy) && to.bits < 64;
  const bool has_fractions = to.family == Family::integer && !saturates_early;
  double limit = HUGE_VAL;
  if (has_fractions) limit = 0x1p51;                                       // two more bits than those before the point
  if (is_long) limit = std::min(limit, 0x1p53 * std::fabs(policy.scale));  // numbers that float64 may not hold
  return {policy.scale, std::bit_cast<std::uint64_t>(limit), is_long ? infinity + 1 : infinity};
}

}  // namespace

ScaledConversion::ScaledConversion(Target target, DType from_type, DType to_type, const Policy& policy,
                                   std::size_t total) noexcept
    : target_(target), from_(from_type), to_(to_type), policy_(policy), unscaled_(policy) {
  unscaled_.scale = 1.0;
  // Zero makes NaN of infinity, whose sign the specification states: that is no product of the CPU.
  if (policy.scale == 0.0) return;
  const DTypeRow& from = row(from_);
  const DTypeRow& to = row(to_);
  if (to.family == Family::boolean && from_ != to_) {  // zero stays, and nothing else becomes it
    as_unscaled_ = find_kernel(target, from_, to_)->run;
    return;
  }
  if ((from.bits <= 16 || from_ == DType::float32) && to.bits <= 16) {
    const bool is_loaded = from.family == Family::floating && from.bits >= 16;
    const DType read_as = is_loaded ? from_ : DType::float32;
    if (const std::optional<double> scale = float32_scale(from, to, policy.scale, total)) {
      const double limit = *scale == policy.scale ? 0x1p22 : integer_limit(to);
      Multiplication by = float32_multiplication(*scale, to, policy, limit);
      const bool has_tiny = from.family == Family::floating && from.format.exponent_bits == 8;
      if (has_tiny && to.family == Family::floating && to.format.exponent_bits == 8) {
        by.first = 1;
        by.end = float32_bits(0x1p-100);
      }
      add_way(read_as, Products::float32_odd, DType::float32, by);
    }
    add_way(read_as, Products::float32_from_float64, DType::float32,
            float32_multiplication(policy.scale, to, policy, 0x1p22));
  }
  add_way(DType::float64, to_ == DType::float64 ? Products::float64_nearest : Products::float64_odd, DType::float64,
          float64_multiplication(from, to, policy));
}

void ScaledConversion::add_way(DType read_as, Products products, DType product_type,
                               const Multiplication& by) noexcept {
  Way& way = ways_[way_count_++];
  if (read_as != from_) way.decode = find_kernel(target_, from_, read_as)->run;
  way.multiply = ops_of(target_).find_multiply(read_as, products);
  way.by = by;
  if (product_type != to_) way.encode = find_kernel(target_, product_type, to_)->run;
}

bool ScaledConversion::is_light() const noexcept { return as_unscaled_ != nullptr; }

void ScaledConversion::run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  if (as_unscaled_ != nullptr) return as_unscaled_(src, dst, count, unscaled_);
  const DTypeRow& from = row(from_);
  const DTypeRow& to = row(to_);
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(piece_count, count);
    if (way_count_ == 0 || !try_way(ways_[0], src, dst, step)) run_otherwise(src, dst, step);
    src += bytes_of(from, step);
    dst += bytes_of(to, step);
  }
}

bool ScaledConversion::try_way(const Way& way, const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  alignas(64) std::byte read[piece_count * sizeof(double)];
  alignas(64) std::byte products[piece_count * sizeof(double)];
  const std::size_t whole = (count + 63) / 64 * 64;
  if (way.decode != nullptr || whole != count) {
    if (whole != count) std::memset(read, 0, sizeof read);
    if (way.decode != nullptr) {
      way.decode(src, read, count, unscaled_);
    } else {
      std::memcpy(read, src, bytes_of(row(from_), count));
    }
    src = read;
  }
  if (!way.multiply(src, products, whole, way.by)) return false;
  if (way.encode != nullptr) {
    way.encode(products, dst, count, unscaled_);
  } else {
    std::memcpy(dst, products, bytes_of(row(to_), count));
  }
  return true;
}

void ScaledConversion::run_otherwise(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  const DTypeRow& from = row(from_);
  const DTypeRow& to = row(to_);
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(small_count, count);
    const auto works = [&](const Way& way) { return try_way(way, src, dst, step); };
    if (std::none_of(ways_.begin(), ways_.begin() + static_cast<std::ptrdiff_t>(way_count_), works)) {
      static_cast<void>(codec::reference_cast(src, from_, dst, to_, step, policy_));
    }
    src += bytes_of(from, step);
    dst += bytes_of(to, step);
  }
}

}  // namespace tensorcast::kernels
