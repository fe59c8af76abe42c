// SPDX-License-Identifier: Apache-2.0
#include "kernels/scaled.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;

constexpr std::size_t piece_count = 1024;           // elements whose products stay in the first-level cache
constexpr std::size_t smallest_piece = 64;          // elements that the reference converts if one of them needs it
constexpr std::size_t search_pays_from = 1U << 16;  // elements: the search takes some microseconds

std::size_t bytes_of(const DTypeRow& type, std::size_t count) {
  return count * static_cast<std::size_t>(type.bits) / 8;
}

// --- Products in float32

constexpr std::uint64_t leading_bit = 0x10000000000000;  // of a float64's significand
constexpr std::uint64_t mantissa = leading_bit - 1;

std::uint64_t significand_of(double x) { return (std::bit_cast<std::uint64_t>(x) & mantissa) | leading_bit; }

// To nearest even.
std::uint64_t round_to_float32(std::uint64_t x) {
  const int dropped_bits = std::bit_width(x) - 24;
  if (dropped_bits <= 0) return x;
  const std::uint64_t nearly_half = (std::uint64_t{1} << (dropped_bits - 1)) - 1;
  return (x + nearly_half + (x >> dropped_bits & 1)) >> dropped_bits << dropped_bits;
}

// The position of an integer among the numbers of at most `digits` binary digits: its first digits, and whether more
// digits follow that are not zero.
struct Place {
  std::uint64_t first_digits;
  bool has_more;
  friend bool operator==(const Place&, const Place&) = default;
};
Place place_of(std::uint64_t x, int digits) {
  const std::uint64_t aligned = x << std::countl_zero(x);
  return {aligned >> (64 - digits), aligned << digits != 0};
}

// Finds a float32 that gives the same results as the scale, by trying every number of `source_digits` digits, at most
// 11: the float32 product has the same position among the numbers of `boundary_digits` digits as the exact product.
std::optional<double> nearby_float32(double scale, int source_digits, int boundary_digits) {
  constexpr int dropped_bits = 53 - 24;
  const std::uint64_t exact = significand_of(scale);
  const auto is_equivalent = [&](std::uint64_t other) {
    for (std::uint64_t x = std::uint64_t{1} << (source_digits - 1); x >> source_digits == 0; ++x) {
      const std::uint64_t product = round_to_float32(x * other);
      if (std::bit_width(product) + dropped_bits != std::bit_width(x * exact)) return false;
      if (place_of(product, boundary_digits) != place_of(x * exact, boundary_digits)) return false;
    }
    return true;
  };
  for (const int step : {0, 1, -1, 2}) {
    const std::uint64_t other = (exact >> dropped_bits) + static_cast<std::uint64_t>(step);
    if (std::bit_width(other) != 24 || !is_equivalent(other)) continue;
    return std::bit_cast<double>((std::bit_cast<std::uint64_t>(scale) & ~mantissa) |
                                 (other << dropped_bits & mantissa));
  }
  return std::nullopt;
}

bool wraps(const DTypeRow& to, const Policy& policy) {
  return to.family == Family::integer && policy.range != codec::RangeRule::saturate;
}

// Reports whether infinity and a finite product that overflows float32 or float64 have different results.
bool tells_infinity(const DTypeRow& to, const Policy& policy) {
  if (to.family != Family::floating || !to.format.has_nan()) return false;
  if (to.format.obeys_saturate()) return policy.saturate && policy.keeps_infinity;
  return policy.range == codec::RangeRule::saturate;
}

std::uint64_t float32_bits(double x) { return std::bit_cast<std::uint32_t>(static_cast<float>(x)); }

// For targets of 16 bits or fewer. An integer that wraps depends on all bits before the point and on two more, so its
// products must be below `limit`.
Multiplication in_float32(const DTypeRow& to, const Policy& policy, double scale, double limit = 0x1p22) {
  constexpr std::uint64_t infinity = 0x7f800000;
  if (wraps(to, policy)) return {.scale = scale, .first = float32_bits(limit), .end = infinity};
  if (!tells_infinity(to, policy)) return {.scale = scale};
  return {.scale = scale, .first = float32_bits(0x1p127), .end = infinity + 1};
}

// Near float32's subnormals, products lack bits that a target with float32's exponents has. Returns false if products
// in two ranges would have to be rejected.
bool reject_subnormals(const DTypeRow& from, const DTypeRow& to, const Policy& policy, Multiplication& by) {
  const auto has_exponents = [](const DTypeRow& type) {
    return type.family == Family::floating && type.format.exponent_bits == 8;
  };
  if (!has_exponents(from) || !has_exponents(to)) return true;
  if (tells_infinity(to, policy)) return false;
  by.first = 1;
  by.end = float32_bits(0x1p-100);
  return true;
}

struct Float32Way {
  Products products;
  Multiplication by;
};

// Multiplies in float32 without float64, if that can be right. float32 holds all numbers of `from`; `to` has at most 16
// bits.
std::optional<Float32Way> quick_way(const DTypeRow& from, const DTypeRow& to, const Policy& policy, std::size_t total) {
  const double scale = policy.scale;
  const double size = std::fabs(scale);
  if (to.family == Family::boolean || !(size >= 0x1p-60 && size <= 0x1p60)) return std::nullopt;
  const bool is_floating = from.family == Family::floating;
  const int source_digits = is_floating ? from.format.mantissa_bits + 1 : from.bits;
  const int scale_digits = 53 - std::countr_zero(significand_of(scale));
  // Results change only at numbers of at most this many digits: values and midpoints of a float, multiples of one half
  // below `limit` for an integer.
  const bool to_floating = to.family == Family::floating;
  const int boundary_digits = to_floating ? to.format.mantissa_bits + 2 : to.bits + 3;
  const double limit = std::ldexp(1.0, boundary_digits - 1);

  Float32Way way;
  if (scale_digits == 1 || scale_digits + source_digits <= 24) {  // exact products
    way = {Products::float32_nearest, in_float32(to, policy, scale)};
  } else if (scale_digits <= 24) {
    way = {Products::float32_odd, in_float32(to, policy, scale)};
  } else if (boundary_digits > 12) {
    return std::nullopt;
  } else if (from.id == DType::float32) {
    way = {Products::float32_close, in_float32(to, policy, scale, limit)};
    way.by.zeros = (1U << (24 - boundary_digits)) - 1;
  } else if (is_floating && source_digits <= 11 && total >= search_pays_from) {
    const std::optional<double> other = nearby_float32(scale, source_digits, boundary_digits);
    if (!other) return std::nullopt;
    way = {Products::float32_nearest, in_float32(to, policy, *other, limit)};
  } else {
    return std::nullopt;
  }
  if (!reject_subnormals(from, to, policy, way.by)) return std::nullopt;
  return way;
}

// --- Products in float64

Multiplication in_float64(const DTypeRow& from, const DTypeRow& to, const Policy& policy) {
  constexpr std::uint64_t infinity = 0x7ff0000000000000;
  const bool is_long = from.family == Family::integer && from.bits == 64;
  const bool needs_all_digits = to.family == Family::integer && (wraps(to, policy) || to.bits == 64);
  double limit = needs_all_digits ? 0x1p51 : HUGE_VAL;
  if (is_long) limit = std::min(limit, 0x1p53 * std::fabs(policy.scale));  // larger numbers may be inexact in float64
  // Rounded to odd, a finite product stays finite; the nearest one may not.
  const bool needs_finite = is_long || (to.id == DType::float64 && tells_infinity(to, policy));
  return {.scale = policy.scale,
          .first = std::bit_cast<std::uint64_t>(limit),
          .end = needs_finite ? infinity + 1 : infinity};
}

}  // namespace

std::optional<Multiplication> products_for_words(const DTypeRow& from, const DTypeRow& to, const Policy& policy) {
  const bool has_word = policy.has_word(to), is_stochastic = policy.rounding == Rounding::stochastic;
  if (from.family == Family::integer && from.bits == 64) return std::nullopt;
  // The products of float64 may underflow.
  if (from.id == DType::float64 && (has_word || to.family == Family::boolean)) return std::nullopt;
  if (to.id == DType::float64 && has_word) return std::nullopt;
  // Of a number that is stochastically rounded, 32 bits below the last that is kept count.
  if (is_stochastic && to.family == Family::floating && to.format.mantissa_bits > 18) return std::nullopt;
  const double limit = to.family != Family::integer ? HUGE_VAL : is_stochastic ? 0x1p18 : 0x1p51;
  const bool needs_finite = to.id == DType::float64 && tells_infinity(to, policy);
  constexpr std::uint64_t infinity = 0x7ff0000000000000;
  return Multiplication{.scale = policy.scale,
                        .first = std::bit_cast<std::uint64_t>(limit),
                        .end = needs_finite ? infinity + 1 : infinity};
}

std::optional<Multiplication> products_in_float32(const DTypeRow& from, const DTypeRow& to, const Policy& policy) {
  const bool is_held = from.bits <= 16 || from.id == DType::float32;
  if (!is_held || to.bits > 16 || to.family == Family::boolean) return std::nullopt;
  if (policy.has_word(to) || policy.demands_errors()) return std::nullopt;
  Multiplication by = in_float32(to, policy, policy.scale);
  if (!reject_subnormals(from, to, policy, by)) return std::nullopt;
  return by;
}

ScaledConversion::ScaledConversion(Target target, DType from_type, DType to_type, const Policy& policy,
                                   std::size_t total) noexcept
    : target_(target), from_(from_type), to_(to_type), policy_(policy), unscaled_(policy) {
  unscaled_.scale = 1.0;
  // Infinity times zero is a NaN with the sign that the specification states, which the CPU's product may lack.
  if (policy.scale == 0.0) return;
  const DTypeRow& from = row(from_);
  const DTypeRow& to = row(to_);
  if (policy.has_word(to) && takes(policy, to)) {
    const bool is_usual = std::fabs(policy.scale) >= 0x1p-500 && std::fabs(policy.scale) <= 0x1p500;
    const std::optional<Multiplication> by = products_for_words(from, to, policy);
    if (!is_usual || !by) return;
    add_way(DType::float64, Products::float64_odd, DType::float64, *by);
    rounded_.emplace(target, DType::float64, to_, unscaled_);
    return;
  }
  if (to.family == Family::boolean && from_ != to_) {  // no other number becomes zero
    as_unscaled_ = find_kernel(target, from_, to_)->run;
    return;
  }
  if ((from.bits <= 16 || from_ == DType::float32) && to.bits <= 16) {
    const bool is_loaded = from.family == Family::floating && from.bits >= 16;
    const DType read_as = is_loaded ? from_ : DType::float32;
    const std::optional<Float32Way> quick = quick_way(from, to, policy, total);
    if (quick) add_way(read_as, quick->products, DType::float32, quick->by);
    add_way(read_as, Products::float32_from_float64, DType::float32, in_float32(to, policy, policy.scale));
  }
  const bool is_result = to_ == DType::float64;
  add_way(DType::float64, is_result ? Products::float64_nearest : Products::float64_odd, DType::float64,
          in_float64(from, to, policy));
}

void ScaledConversion::add_way(DType read_as, Products products, DType product_type,
                               const Multiplication& by) noexcept {
  Way& way = ways_[way_count_++];
  if (read_as != from_) way.decode = find_kernel(target_, from_, read_as)->run;
  way.multiply = ops_of(target_).find_multiply(read_as, products);
  way.by = by;
  if (product_type != to_) way.encode = find_kernel(target_, product_type, to_)->run;
}

void ScaledConversion::run(const std::byte* src, std::byte* dst, std::size_t count,
                           std::uint64_t first) const noexcept {
  if (as_unscaled_ != nullptr) return as_unscaled_(src, dst, count, unscaled_);
  run_in_pieces(piece_count, src, dst, count, first);
}

void ScaledConversion::run_in_pieces(std::size_t piece, const std::byte* src, std::byte* dst, std::size_t count,
                                     std::uint64_t first) const noexcept {
  const auto ways = std::span(ways_).first(way_count_);
  for (std::size_t step = 0; count != 0; count -= step, first += step) {
    step = std::min(piece, count);
    const bool done = std::ranges::any_of(ways, [&](const Way& way) { return try_way(way, src, dst, step, first); });
    if (!done && step > smallest_piece) {
      run_in_pieces(smallest_piece, src, dst, step, first);
    } else if (!done) {
      static_cast<void>(codec::reference_cast(src, from_, dst, to_, step, policy_, first));
    }
    src += bytes_of(row(from_), step);
    dst += bytes_of(row(to_), step);
  }
}

bool ScaledConversion::try_way(const Way& way, const std::byte* src, std::byte* dst, std::size_t count,
                               std::uint64_t first) const noexcept {
  alignas(64) std::byte read[piece_count * sizeof(double)];
  alignas(64) std::byte products[piece_count * sizeof(double)];
  const std::size_t whole = (count + 63) / 64 * 64;
  if (way.decode != nullptr || whole != count) {
    if (whole != count) std::memset(read, 0, whole * sizeof(double));
    if (way.decode != nullptr) {
      way.decode(src, read, count, unscaled_);
    } else {
      std::memcpy(read, src, bytes_of(row(from_), count));
    }
    src = read;
  }
  if (!way.multiply(src, products, whole, way.by)) return false;
  if (rounded_) {
    rounded_->run(products, dst, count, first);
  } else if (way.encode != nullptr) {
    way.encode(products, dst, count, unscaled_);
  } else {
    std::memcpy(dst, products, bytes_of(row(to_), count));
  }
  return true;
}

}  // namespace tensorcast::kernels
