// Conversions with a scale: products in float32 or float64, then the target's own conversion, in blocks that stay in
// the first-level cache. Products are rounded to odd (multiply.hpp), so that the conversion rounds them rightly.
#include "kernels/scaled.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/short_scale.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;
using Method = ScaledConversion::Method;
using Pair = ScaledConversion::Pair;

constexpr std::size_t block_count = 1024;  // elements whose products stay in the first-level cache
constexpr std::size_t piece_count = 64;    // of a block that needs another way, the least that takes it

MultiplyFn find_multiply(Target target, DType from, ProductPath path, ProductRounding rounding, bool is_limited) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      break;
    case Target::avx2:
      return avx2::find_multiply(from, path, rounding, is_limited);
    case Target::avx512:
    case Target::avx512vbmi:
      return avx512::find_multiply(from, path, rounding, is_limited);
  }
#endif
  static_cast<void>(target);
  return portable::find_multiply(from, path, rounding, is_limited);
}

MultiplyAndConvertFn find_multiply_and_convert([[maybe_unused]] const Pair& pair, ProductRounding rounding) {
#if defined(__x86_64__)
  switch (pair.target) {
    case Target::portable:
      break;
    case Target::avx2:
      return avx2::find_multiply_and_convert(pair.from, pair.to, rounding);
    case Target::avx512:
      return avx512::find_multiply_and_convert(pair.from, pair.to, rounding);
    case Target::avx512vbmi:
      return avx512vbmi::find_multiply_and_convert(pair.from, pair.to, rounding);
  }
#endif
  static_cast<void>(rounding);
  return nullptr;
}

ScaledConversion::OnePass one_pass(const Pair& pair, const Factor& factor, ProductRounding rounding) {
  return {.run = find_multiply_and_convert(pair, rounding), .factor = factor, .rounding = rounding};
}

// Types of 8 bits and fewer are read as float32, which holds them.
bool is_narrow(const DTypeRow& type) { return type.bits <= 8; }
DType read_as(const DTypeRow& from) { return is_narrow(from) ? DType::float32 : from.id; }

// Of a normal number, without zeros at the end.
int digits_of(double scale) { return 53 - std::countr_zero(std::bit_cast<std::uint64_t>(scale) | 0x10000000000000U); }

bool is_power_of_two(double scale) { return (std::bit_cast<std::uint64_t>(scale) & 0xfffffffffffff) == 0; }

// --- Which products

// Nonzero magnitudes below the limit.
void set_small(Factor& factor, double limit) {
  factor.first = 1;
  factor.special = std::bit_cast<std::uint32_t>(static_cast<float>(limit)) - 1;
}

// Magnitudes from the limit on, and NaN.
void set_large(Factor& factor, double limit) {
  factor.first = std::bit_cast<std::uint32_t>(static_cast<float>(limit));
  factor.special = 0x80000000U - factor.first;
  factor.special_is_large = true;
}

// As a sum (multiply.hpp). False for the rare one that has no zero where it could be split.
bool split(double scale, Factor& factor) {
  factor.high = static_cast<float>(scale);
  if (static_cast<double>(factor.high) == scale) return true;
  const auto bits = std::bit_cast<std::uint64_t>(scale);
  const int cut = 30 + std::countr_one(bits >> 29);
  if (cut > 40) return false;
  const auto high = std::bit_cast<double>(bits >> cut << cut);
  factor.high = static_cast<float>(high);
  factor.low = static_cast<float>(scale - high);
  factor.lowest = static_cast<float>(scale - high - static_cast<double>(factor.low));
  return true;
}

// The digits of numbers at which the target's result changes, and the magnitude up to which that holds.
struct Boundaries {
  int digits = 0;
  double limit = std::numeric_limits<double>::infinity();
};
Boundaries boundaries_of(const DTypeRow& to, int source_digits, const Policy& policy) {
  if (to.family == Family::floating) return {.digits = to.format.mantissa_bits + 2};  // midpoints have one more
  const int digits = 21 - source_digits;                                              // as many as short_scale() takes
  if (to.bits > 8 || digits <= to.bits) return {.digits = 64};
  if (policy.integer_range == codec::IntegerRange::saturate) return {.digits = digits};
  return {.digits = digits, .limit = std::ldexp(1.0, digits - 1)};  // multiples of one half
}

// Whether float64 makes better float32 products than float32.
bool has_quick_float64(const Pair& pair) {
  const DTypeRow& from = row(pair.from);
  return from.family == Family::integer && from.bits >= 32 &&
         find_multiply(pair.target, pair.from, ProductPath::narrowed, ProductRounding::near, false) != nullptr;
}

// Products in float32 of what it holds. False where they would not do.
bool choose_float32(const Pair& pair, const Policy& policy, bool may_be_short, Method& method) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  const double scale = policy.scale;
  const double size = std::fabs(scale);
  if (!(size >= 0x1p-60 && size <= 0x1p60)) return false;
  const bool is_floating = from.family == Family::floating;
  const bool is_long = from.bits > 16 && !is_floating;  // as far as it is below 2^24
  // Others are multiples of 2^-24, and but for long integers below 2^16.
  const bool has_range = is_floating && from.format.exponent_bits == 8;
  int digits = is_floating ? from.format.mantissa_bits + 1 : from.bits - (from.is_signed ? 1 : 0);
  // Integers whose products are all beyond the target's numbers need be no more than large: float32 keeps them so.
  const int beyond = to.family == Family::floating ? to.format.max_exponent() + 1 - std::ilogb(size) : 64;
  const bool all_long_are_beyond = is_long && beyond <= 24;
  digits = std::min({digits, 24, is_long ? std::max(beyond, 1) : 24});

  Factor& factor = method.factor;
  factor.scale = scale;
  const auto as_float = static_cast<float>(scale);
  const int zeros = std::countr_zero(std::bit_cast<std::uint32_t>(as_float) | 0x800000U);
  // A product of few digits is exact, unless it underflows or overflows. It has those of both factors, but one less
  // for a power of two.
  const bool is_exact = static_cast<double>(as_float) == scale && (digits + 24 - zeros <= 24 || zeros == 23);
  ProductRounding rounding = ProductRounding::none;
  const bool to_float32 = pair.to == DType::float32;
  if (!is_exact && may_be_short && !to_float32) {
    const Boundaries boundaries = boundaries_of(to, digits, policy);
    const bool within = is_floating || std::ldexp(size, digits) <= boundaries.limit;
    const std::optional<float> other = within ? short_scale(scale, digits, boundaries.digits) : std::optional<float>();
    method.is_short = other.has_value();
    if (other) factor.high = *other;
    if (other && is_floating && boundaries.limit < 0x1p22) set_large(factor, boundaries.limit / size);
  }
  if (!method.is_short) {
    if (!split(scale, factor)) return false;
    if (to_float32 && factor.low != 0.0F) {
      if (has_quick_float64(pair)) return false;
      rounding = ProductRounding::nearest;
    } else if (!to_float32 && !is_exact) {
      rounding = ProductRounding::odd;
    }
  }

  if (to_float32 || to.family == Family::floating) {
    // Smaller products are too near float32's subnormals for what is missing from them, where the target has those.
    const bool sees_subnormals = rounding == ProductRounding::nearest || (!to_float32 && to.format.exponent_bits == 8);
    if (has_range && sees_subnormals) set_small(factor, 0x1p-69 / size);
    // What overflows is not infinite, which some tell apart; rounded to odd it is the largest finite number.
    const bool infinity_matters =
        to.format.nonfinite == NonFinite::nan_negative_zero && policy.saturate && policy.fnuz_inf_is_nan;
    if (has_range && size > 1.0 && infinity_matters) rounding = ProductRounding::odd;
  } else if (rounding == ProductRounding::odd) {
    // Below 2^22 there are two bits more than those before the point. Targets that saturate need no more.
    const bool all_beyond_saturate = policy.integer_range == codec::IntegerRange::saturate && to.bits <= 16;
    if (has_range && !all_beyond_saturate) set_large(factor, 0x1p21 / size);
    if (!has_range && !is_long && !all_beyond_saturate && size > 0x1p5) return false;
  }
  // A power of two does not change how the integer is rounded.
  const bool keeps_all = all_long_are_beyond || (to_float32 && is_exact && zeros == 23);
  if (is_long && !keeps_all)
    set_large(factor, to.family == Family::floating ? 0x1p24 : std::min(0x1p24, 0x1p21 / size));
  method.products = DType::float32;
  method.rounding = rounding;
  method.multiply = find_multiply(pair.target, read_as(from), ProductPath::float32, rounding, factor.special != 0);
  return true;
}

// Products of integers of 32 bits and more that are near enough. False where they would not do.
bool choose_near(const Pair& pair, const Policy& policy, Method& method) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  const double size = std::fabs(policy.scale);
  if (pair.target == Target::portable || from.family != Family::integer || from.bits < 32) return false;
  if (to.family != Family::floating || to.bits > 16 || !(size >= 0x1p-60 && size <= 0x1p60)) return false;
  const int boundary_digits = to.format.mantissa_bits + 2;
  const int scale_digits = digits_of(policy.scale);
  // Where the larger numbers overflow anyway, and the others leave room for a longer scale, all are right.
  const int beyond = std::max(to.format.max_exponent() + 1 - std::ilogb(size), 1);
  if (2 * beyond + boundary_digits <= 46 && scale_digits > boundary_digits) {
    if (const std::optional<CutScale> sum = cut_scale(policy.scale, beyond, boundary_digits)) {
      method = {};
      method.factor.scale = policy.scale;
      method.factor.high = sum->high;
      method.factor.low = sum->low;
      method.factor.last = 1;
      method.products = DType::float32;
      method.rounding = ProductRounding::cut;
      method.multiply = find_multiply(pair.target, pair.from, ProductPath::float32, method.rounding, false);
      return true;
    }
  }
  int source_digits = 22 - boundary_digits;
  const std::optional<float> scale = short_cut_scale(policy.scale, source_digits, boundary_digits);
  if (!scale) return false;
  method = {};
  Factor& factor = method.factor;
  factor.scale = policy.scale;
  factor.high = *scale;
  factor.last = scale_digits > boundary_digits ? 1 : 0;
  // Products of few digits are exact.
  if (factor.last == 0) source_digits = scale_digits == 1 ? 24 : std::max(source_digits, 24 - scale_digits);
  factor.first = std::bit_cast<std::uint32_t>(std::ldexp(1.0F, source_digits));
  factor.reach = scale_digits == 1 ? 0 : 7;  // what a power of two cuts off is less than one last place, and above
  factor.width = scale_digits == 1 ? 1 : 10;
  factor.zeros = (1U << (22 - to.format.mantissa_bits)) - 1;
  // Normal numbers have midpoints for boundaries, with one more bit that is one.
  if (to.id != DType::float8_e8m0fnu && std::ldexp(size, source_digits) >= std::ldexp(2.0, to.format.min_exponent())) {
    factor.reach -= factor.zeros + 1;
    factor.zeros = factor.zeros * 2 + 1;
  }
  method.products = DType::float32;
  method.rounding = ProductRounding::near;
  method.multiply = find_multiply(pair.target, pair.from, ProductPath::float32, method.rounding, false);
  return true;
}

bool truncates_and_wraps(const DTypeRow& to, const Policy& policy) {
  return to.family == Family::integer && policy.int_rounding == IntRounding::trunc &&
         policy.integer_range != codec::IntegerRange::saturate;
}

// Products of numbers of 16 bits that are cut off, where float32 has as many digits as they before the point; or of
// integers to floats of 16 bits. False where they would not do.
bool choose_cut(const Pair& pair, const Policy& policy, std::size_t total, Factor& factor) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  const bool is_floating = from.family == Family::floating;
  const bool to_float = !is_floating && to.family == Family::floating && to.bits == 16;
  if (from.bits != 16 || !(to_float || truncates_and_wraps(to, policy))) return false;
  const double size = std::fabs(policy.scale);
  if (!(size >= 0x1p-60 && size <= 0x1p60)) return false;
  const bool has_range = is_floating && from.format.exponent_bits == 8;
  const int source_digits = is_floating ? from.format.mantissa_bits + 1 : from.bits - (from.is_signed ? 1 : 0);
  int integer_digits = 24;
  if (to_float) {  // those of boundaries
    integer_digits = to.format.mantissa_bits + 2;
    const int scale_digits = digits_of(policy.scale);
    factor.last = scale_digits > integer_digits ? 1 : 0;
    if (factor.last == 0 && source_digits + scale_digits > 24) return false;  // only some products are inexact
  } else if (!has_range) {
    const int most = 16 + std::ilogb(size) + 1;  // numbers are up to 2^16
    if (most > 24) return false;
    integer_digits = std::max(most, 1);
  }
  const std::optional<CutScale> scale = cut_scale(policy.scale, source_digits, integer_digits);
  if (!scale) return false;
  factor.scale = policy.scale;
  factor.high = scale->high;
  factor.low = scale->low;
  factor.first = has_range ? std::bit_cast<std::uint32_t>(static_cast<float>(0x1p23 / size)) : 0x7fffffffU;
  if (is_floating || to_float || to.bits > 16 || total < word_scale_pays_from) return true;
  if (const std::optional<WordScale> words = word_scale(policy.scale, from.is_signed ? 0x8000 : 0xffff)) {
    factor.word_multiplier = words->multiplier;
    factor.word_shift = words->shift;
  }
  return true;
}

// Between two codes of float4 is a midpoint, which belongs to the even one. The quotient of midpoint and scale, rounded
// down, may be off by one where it is next to an integer: the sign of a fused operation says on which side that is.
void set_float4_steps(Factor& factor) {
  constexpr double midpoints[] = {0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0};
  const double size = std::fabs(factor.scale);
  for (int code = 0; code < 7; ++code) {
    double greatest = std::floor(std::min(midpoints[code] / size, 65535.0));
    const double beyond = std::fma(greatest, size, -midpoints[code]);
    if (code % 2 == 0 ? beyond > 0.0 : beyond >= 0.0) --greatest;  // never zero, nor twice
    factor.float4_steps[code] = static_cast<std::uint16_t>(greatest);
  }
}

bool has_power_step(DType from) {
  const bool is_integer = family(from) == Family::integer;
  return from == DType::float16 || from == DType::bfloat16 || (is_integer && bit_width(from) >= 16);
}

// As Factor::power_step.
std::int32_t power_step(const Policy& policy) {
  const double size = std::fabs(policy.scale);
  const bool up = policy.e8m0_rounding == RoundMode::up;
  const bool down = policy.e8m0_rounding == RoundMode::down;
  // The least product that has the code, or the greatest that has not.
  const double boundary = up || down ? 1.0 : 1.5;
  const std::int32_t code = down ? 127 : 128;
  const auto is_before = [&](float x) {
    const double beyond = std::fma(static_cast<double>(x), size, -boundary);  // its sign is exact
    return up ? beyond <= 0.0 : beyond < 0.0;
  };
  auto least = static_cast<float>(boundary / size);
  while (!is_before(std::nextafter(least, 0.0F))) least = std::nextafter(least, 0.0F);
  while (is_before(least)) least = std::nextafter(least, std::numeric_limits<float>::infinity());
  return (code << 23) - std::bit_cast<std::int32_t>(least);
}

// Where they are faster than products in words.
bool has_code_cells(const Pair& pair) {
  const FloatFormat& to = row(pair.to).format;
  if (pair.target != Target::avx512 && pair.target != Target::avx512vbmi) return false;
  if (pair.from == DType::float16) return pair.to != DType::float8_e8m0fnu;
  return pair.from == DType::bfloat16 && (to.mantissa_bits == 1 || to.mantissa_bits == 2);
}

// The same of wider numbers, in float64.
bool choose_wide_cut(const Pair& pair, const Policy& policy, Factor& factor) {
  const DTypeRow& from = row(pair.from);
  const double size = std::fabs(policy.scale);
  if (from.bits < 32 || !truncates_and_wraps(row(pair.to), policy) || !(size >= 0x1p-900 && size <= 0x1p20))
    return false;
  factor.scale = policy.scale;
  factor.greatest = std::min(0x1p52, 0x1p52 / size);
  return true;
}

// The same of float32, in float32: where products are not so large that most are doubtful.
bool choose_between(const Pair& pair, const Policy& policy, Factor& factor) {
  const DTypeRow& to = row(pair.to);
  const double size = std::fabs(policy.scale);
  if (pair.from != DType::float32 || !truncates_and_wraps(to, policy) || !(size >= 0x1p-60 && size <= 0x1p60))
    return false;
  factor.scale = policy.scale;
  return true;
}

// Products by way of float64.
void choose_float64(const Pair& pair, const Policy& policy, Method& method) {
  const DTypeRow& from = row(pair.from);
  const DTypeRow& to = row(pair.to);
  const bool is_wide_integer = from.family == Family::integer && from.bits == 64;
  const bool is_short = from.bits <= 16 || from.id == DType::float32;
  method.factor.scale = policy.scale;
  method.products = DType::float64;
  ProductPath path = ProductPath::float64;
  ProductRounding rounding = ProductRounding::odd;
  if (pair.to == DType::float64) {
    rounding = is_wide_integer && is_power_of_two(policy.scale) ? ProductRounding::none : ProductRounding::nearest;
  } else if (to.family != Family::floating) {
    // Two bits more than those before the point; and of 64-bit integers those that float64 holds.
    method.factor.greatest = std::min(0x1p52, 0x1p50 / std::fabs(policy.scale));
  } else if (!is_short) {
    method.products = DType::float32;
    path = ProductPath::narrowed;
    if (pair.to == DType::float32) {
      const bool has_near = digits_of(policy.scale) > 25 && has_quick_float64(pair);
      rounding = has_near ? ProductRounding::near : ProductRounding::nearest;
    }
  }
  const double size = std::fabs(policy.scale);
  const bool from_float = from.family == Family::floating;
  const bool leaves_float32 = from_float || !(size > 0x1p-100 && size < 0x1p60);
  const bool sees_subnormals = to.family == Family::floating && to.format.exponent_bits == 8;
  method.multiply =
      find_multiply(pair.target, read_as(from), path, rounding, leaves_float32 && (sees_subnormals || !from_float));
}

// --- Integers times a scale, to integers, where a float64 does not hold what matters

using Uint128 = unsigned __int128;

// |scale| = factor * 2^exponent.
struct IntegerFactor {
  explicit IntegerFactor(double scale) {
    const auto bits = std::bit_cast<std::uint64_t>(scale);
    const int field = static_cast<int>(bits >> 52 & 0x7ff);
    factor = (bits & 0xfffffffffffff) | (field == 0 ? 0 : 0x10000000000000);
    exponent = std::max(field, 1) - 1075;
    is_negative = bits >> 63 != 0;
  }
  std::uint64_t factor;
  int exponent;
  bool is_negative;
};

struct IntegerLimits {
  std::uint64_t positive, negative;  // magnitudes
};

// Scales below 2, and no care about limits: with a factor of 64 bits, the integer is in the product's upper half.
template <bool is_signed>
void multiply_and_truncate(const std::byte* src, std::int64_t* result, std::size_t count, const IntegerFactor& scale,
                           const IntegerLimits&) {
  const int right = std::min(-scale.exponent, 127);
  const std::uint64_t factor = scale.factor << std::max(64 - right, 0);
  const int shift = std::max(right - 64, 0);
  const std::uint64_t scale_sign = scale.is_negative ? ~std::uint64_t{0} : 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t x;
    std::memcpy(&x, src + i * sizeof x, sizeof x);
    const std::uint64_t sign = is_signed ? 0 - (x >> 63) : 0;
    const Uint128 product = Uint128{(x ^ sign) - sign} * factor;
    const std::uint64_t magnitude = static_cast<std::uint64_t>(product >> 64) >> shift;
    const std::uint64_t negative = sign ^ scale_sign;
    result[i] = static_cast<std::int64_t>((magnitude ^ negative) - negative);
  }
}

// The low 64 bits of the products, which have up to 117 bits and a power of two; or, to saturate, the nearest number
// within the limits.
template <bool is_signed, bool to_nearest, bool saturates>
void multiply_integers(const std::byte* src, std::int64_t* result, std::size_t count, const IntegerFactor& scale,
                       const IntegerLimits& limits) {
  const int right = scale.exponent < 0 ? std::min(-scale.exponent, 127) : 0;  // below 2^117: zero either way
  const int left = scale.exponent > 0 ? std::min(scale.exponent, 127) : 0;
  const Uint128 half = right == 0 ? 0 : Uint128{1} << (right - 1);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t x;
    std::memcpy(&x, src + i * sizeof x, sizeof x);
    const std::uint64_t sign = is_signed ? 0 - (x >> 63) : 0;
    const Uint128 product = Uint128{(x ^ sign) - sign} * scale.factor;
    Uint128 whole = product >> right;
    if constexpr (to_nearest) {
      const Uint128 rest = half == 0 ? 0 : product & (half | (half - 1));
      whole += rest > half || (rest == half && half != 0 && (whole & 1) != 0) ? 1 : 0;
    }
    const std::uint64_t negative = sign ^ (scale.is_negative ? ~std::uint64_t{0} : 0);
    auto magnitude = static_cast<std::uint64_t>(left < 64 ? whole << left : 0);
    if constexpr (saturates) {
      const std::uint64_t limit = negative != 0 ? limits.negative : limits.positive;
      const bool is_beyond = whole > limit || (left != 0 && (left >= 64 ? whole != 0 : whole > limit >> left));
      magnitude = is_beyond ? limit : magnitude;
    }
    result[i] = static_cast<std::int64_t>((magnitude ^ negative) - negative);
  }
}

using MultiplyIntegersFn = void (*)(const std::byte* src, std::int64_t* result, std::size_t count,
                                    const IntegerFactor& scale, const IntegerLimits& limits);

template <bool is_signed>
MultiplyIntegersFn find_multiply_integers(const Policy& policy, const IntegerFactor& scale) {
  const bool saturates = policy.integer_range == codec::IntegerRange::saturate;
  if (policy.int_rounding == IntRounding::nearest_even) {
    return saturates ? multiply_integers<is_signed, true, true> : multiply_integers<is_signed, true, false>;
  }
  if (!saturates && scale.exponent <= -53) return multiply_and_truncate<is_signed>;
  return saturates ? multiply_integers<is_signed, false, true> : multiply_integers<is_signed, false, false>;
}

void run_in_integers(const Pair& pair, const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  Policy unscaled = policy;
  unscaled.scale = 1.0;
  const auto* const kernel = find_kernel(pair.target, DType::int64, pair.to);  // keeps the low bits
  alignas(64) std::int64_t numbers[block_count];
  const DTypeRow& to = row(pair.to);
  const std::uint64_t largest = ~std::uint64_t{0} >> (64 - to.bits + (to.is_signed ? 1 : 0));
  const IntegerFactor scale(policy.scale);
  const auto multiply = row(pair.from).is_signed ? find_multiply_integers<true>(policy, scale)
                                                 : find_multiply_integers<false>(policy, scale);
  multiply(src, numbers, count, scale, {largest, to.is_signed ? largest + 1 : 0});
  if (kernel == nullptr) {
    std::memcpy(dst, numbers, count * sizeof *numbers);
  } else {
    kernel->run(reinterpret_cast<const std::byte*>(numbers), dst, count, unscaled);
  }
}

// --- Blocks

std::size_t bytes_of(const DTypeRow& type, std::size_t count) {
  return count * static_cast<std::size_t>(type.bits) / 8;
}

}  // namespace

ScaledConversion::ScaledConversion(Target target, DType from, DType to, const Policy& policy,
                                   std::size_t total) noexcept
    : pair_{target, from, to}, policy_(policy), unscaled_(policy) {
  unscaled_.scale = 1.0;
  // A scale of zero makes NaN of infinity, whose sign the specification states. And what is left of an integer where
  // products lie near the ends of float64's range is for the reference to say.
  const double size = std::fabs(policy.scale);
  const bool is_extreme = !(size >= 0x1p-900 && size <= 0x1p900);
  const bool is_wide_integer = family(from) == Family::integer && bit_width(from) == 64;
  by_reference_ = size == 0.0 || (is_wide_integer && is_extreme);
  if (by_reference_) return;
  if (to == DType::boolean && from != DType::boolean) {  // zero stays, and nothing else becomes it
    as_unscaled_ = find_kernel(target, from, to)->run;
    return;
  }
  const bool in_float32 = to != DType::float64 && from != DType::float64 && choose_float32(pair_, policy, true, first_);
  if (!in_float32) {
    first_ = {};
    choose_float64(pair_, policy, first_);
  }
  const bool is_long_integer = family(from) == Family::integer && bit_width(from) > 16;
  // Exact products are quicker, but in two passes where some numbers are too large for them. Unsigned ones often are,
  // as negative ones were made of them.
  const bool has_near = find_multiply_and_convert(pair_, ProductRounding::near) != nullptr;
  const bool is_exact =
      first_.rounding == ProductRounding::none && (!first_.factor.special_is_large || (is_signed(from) && !has_near));
  const bool is_near = is_long_integer && in_float32 && !is_exact && choose_near(pair_, policy, first_);
  if (in_float32 && !is_near && !(is_long_integer && first_.factor.special_is_large)) {
    at_once_ = one_pass(pair_, first_.factor, first_.rounding);
    if (at_once_.run != nullptr && to == DType::float4_e2m1fn && family(from) == Family::integer)
      set_float4_steps(at_once_.factor);
    if (at_once_.run != nullptr && total >= code_cells_pay_from && has_code_cells(pair_))
      at_once_.factor.cells = make_code_cells(from, to, policy.scale, policy.saturate);
  }
  if (is_near) at_once_ = one_pass(pair_, first_.factor, first_.rounding);
  if (in_float32 && to == DType::float8_e8m0fnu && has_power_step(from)) {
    Factor steps = first_.factor;
    steps.power_step = power_step(policy);
    at_once_ = one_pass(pair_, steps, ProductRounding::none);
  }
  if (from == DType::float64 && first_.products == DType::float32 && to != DType::float32)
    at_once_ = one_pass(pair_, first_.factor, ProductRounding::odd);
  Factor factor;
  if (at_once_.run == nullptr && (choose_cut(pair_, policy, total, factor) || choose_wide_cut(pair_, policy, factor))) {
    at_once_ = one_pass(pair_, factor, ProductRounding::cut);
    OnePass between;
    if (choose_between(pair_, policy, factor)) between = one_pass(pair_, factor, ProductRounding::between);
    if (between.run != nullptr) at_once_otherwise_ = std::exchange(at_once_, between);
  }
  if (is_narrow(row(from))) decode_ = find_kernel(target, from, DType::float32)->run;
  encode_ = encoder(first_);
  may_fail_ =
      in_float32 && !is_near ? first_.factor.special_is_large : bit_width(from) == 64 || family(to) == Family::integer;
}

bool ScaledConversion::is_light() const noexcept {
  const bool is_one_product = at_once_.run != nullptr && at_once_.rounding == ProductRounding::none;
  return as_unscaled_ != nullptr || (is_one_product && pair_.from == DType::float32);
}

void ScaledConversion::run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  if (by_reference_) {
    static_cast<void>(codec::reference_cast(src, pair_.from, dst, pair_.to, count, policy_));
    return;
  }
  if (as_unscaled_ != nullptr) return as_unscaled_(src, dst, count, unscaled_);
  if (!may_fail_ && encode_ == nullptr && decode_ == nullptr) {
    static_cast<void>(first_.multiply(src, dst, count, first_.factor));
    return;
  }
  const DTypeRow& from = row(pair_.from);
  const DTypeRow& to = row(pair_.to);
  for (std::size_t step = 0; at_once_.run != nullptr && count != 0; count -= step) {
    const std::size_t done = at_once_.run(src, dst, count, unscaled_, at_once_.factor, at_once_.rounding);
    if (done == count) return;
    step = std::min(done + block_count, count);
    run_apart(src + bytes_of(from, done), dst + bytes_of(to, done), step - done);
    src += bytes_of(from, step);
    dst += bytes_of(to, step);
  }
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(block_count, count);
    if (!try_block(first_, encode_, src, dst, step)) run_otherwise(src, dst, step);
    src += bytes_of(from, step);
    dst += bytes_of(to, step);
  }
}

void ScaledConversion::run_apart(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  const DTypeRow& from = row(pair_.from);
  const OnePass& other = at_once_otherwise_;
  if (other.run != nullptr) {
    const std::size_t done = other.run(src, dst, count, unscaled_, other.factor, other.rounding);
    src += bytes_of(from, done);
    dst += bytes_of(row(pair_.to), done);
    count -= done;
  }
  const ProductRounding stopped = other.run != nullptr ? other.rounding : at_once_.rounding;
  const bool is_wide_integer = from.family == Family::integer && from.bits == 64;
  const bool has_other = (stopped == ProductRounding::cut && !is_wide_integer) || pair_.to == DType::float8_e8m0fnu;
  if (count != 0 && (!has_other || !try_block(first_, encode_, src, dst, count))) run_otherwise(src, dst, count);
}

KernelFn ScaledConversion::encoder(const Method& method) const noexcept {
  return pair_.to == method.products ? nullptr : find_kernel(pair_.target, method.products, pair_.to)->run;
}

bool ScaledConversion::try_block(const Method& method, KernelFn encode, const std::byte* src, std::byte* dst,
                                 std::size_t count) const noexcept {
  alignas(64) std::byte products[block_count * sizeof(double)];
  alignas(64) std::byte decoded[block_count * sizeof(float)];
  if (decode_ != nullptr) {
    decode_(src, decoded, count, unscaled_);
    src = decoded;
  }
  if (encode == nullptr && !may_fail_) return method.multiply(src, dst, count, method.factor);
  if (!method.multiply(src, products, count, method.factor)) return false;
  if (encode == nullptr) {
    std::memcpy(dst, products, bytes_of(row(pair_.to), count));
  } else {
    encode(products, dst, count, unscaled_);
  }
  return true;
}

void ScaledConversion::run_otherwise(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
  if (first_.is_short) {
    Method second;
    if (choose_float32(pair_, policy_, false, second) && try_block(second, encoder(second), src, dst, count)) return;
  }
  Method last = first_;
  if (first_.factor.special_is_large) {
    last = {};
    if (!choose_near(pair_, policy_, last)) choose_float64(pair_, policy_, last);
    if (try_block(last, encoder(last), src, dst, count)) return;
  }
  const DTypeRow& from = row(pair_.from);
  const DTypeRow& to = row(pair_.to);
  if (from.family == Family::integer && from.bits == 64 && to.family == Family::integer) {
    return run_in_integers(pair_, src, dst, count, policy_);
  }
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(piece_count, count);
    if (!try_block(last, encoder(last), src, dst, step)) {
      static_cast<void>(codec::reference_cast(src, pair_.from, dst, pair_.to, step, policy_));
    }
    src += bytes_of(from, step);
    dst += bytes_of(to, step);
  }
}

}  // namespace tensorcast::kernels
