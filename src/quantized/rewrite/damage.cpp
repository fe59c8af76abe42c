// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/damage.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "codec/reference_cast.hpp"
#include "dtype/errors.hpp"

namespace tensorcast {
namespace {

constexpr double least_snr_db = 3.0;
constexpr std::uint64_t out_of_range_percent = 1;

// Counts elements whose code has bits other than `ignored`.
template <class Code>
std::uint64_t count_codes(std::span<const std::byte> data, std::size_t count, std::uint64_t ignored) noexcept {
  const auto* const codes = reinterpret_cast<const Code*>(data.data());  // blocks are aligned
  const auto mask = static_cast<Code>(~ignored);
  std::uint64_t nonzero = 0;
  for (std::size_t i = 0; i < count; ++i) nonzero += (codes[i] & mask) != 0 ? 1 : 0;
  return nonzero;
}

std::uint64_t count_packed(DType dtype, std::span<const std::byte> data, std::size_t count) noexcept {
  std::uint64_t nonzero = 0;
  for (std::size_t i = 0; i < count; ++i) {
    nonzero += codec::decode(dtype, codec::load_code(dtype, data.data(), i)).kind != codec::Real::Kind::zero ? 1 : 0;
  }
  return nonzero;
}

// Returns the bits that a zero of `dtype` may have: the sign bit if the type has -0.
std::uint64_t sign_of_zero(DType dtype) noexcept {
  const std::uint64_t sign = std::uint64_t{1} << (bit_width(dtype) - 1);
  return codec::decode(dtype, sign).kind == codec::Real::Kind::zero ? sign : 0;
}

std::string remedy_of(const CastReport& report, DType from, DType to) {
  const bool from_real = family(from) == Family::floating;
  if (report.wrapped != 0 && !from_real) return "a wider type would help";
  if (report.wrapped != 0) return "`scale`, a wider type or `out_of_range` saturate would help";
  // Users of quantized models call their scheme by the type of its codes.
  if (from_real && to == DType::int8) return "`scale`, a floating-point type or the scheme int8-channel would help";
  if (from_real && to == DType::int4) return "`scale`, a floating-point type or the scheme int4-group would help";
  if (family(to) == Family::integer) return "`scale` or a floating-point type would help";
  return "`scale`, a wider type or a block scheme would help";
}

bool is_mostly_noise(const CastReport& report) { return report.signal_power > 0.0 && report.snr_db() < least_snr_db; }

std::string noise_text(const CastReport& report) {
  constexpr double shown_as_zero = 0.05;  // "-0.0 dB" would look like a mistake
  const double decibels = std::fabs(report.snr_db()) < shown_as_zero ? 0.0 : report.snr_db();
  return fmt::format("the signal to noise ratio is {:.1f} dB", decibels);
}

std::string zeros_text(const NonzeroCounts& nonzero) {
  return fmt::format("{} of {} nonzero elements became zero", nonzero.before - nonzero.after, nonzero.before);
}

// Whether more than half of the nonzero elements became zero.
bool became_mostly_zero(const NonzeroCounts& nonzero) noexcept { return nonzero.after * 2 < nonzero.before; }

}  // namespace

inline namespace TENSORCAST_ABI {

bool may_damage(DType from, DType to, const CastOptions& options) noexcept {
  if (family(to) == Family::boolean || family(to) == Family::text || family(from) == Family::text) return false;
  if (options.scale != 1.0) return true;
  const DTypeFacts& source = facts(from);
  const DTypeFacts& target = facts(to);
  return source.lowest < target.lowest || source.largest > target.largest ||
         source.smallest_positive < target.smallest_positive || (source.has_infinity && !target.has_infinity) ||
         (source.has_nan && !target.has_nan);
}

std::optional<Damage> find_damage(const CastReport& report, const NonzeroCounts& nonzero, DType from, DType to) {
  if (family(to) == Family::boolean) return std::nullopt;
  const auto damage = [&](std::string what) { return Damage{std::move(what), remedy_of(report, from, to)}; };
  if (became_mostly_zero(nonzero)) {
    Damage zeroed = damage(zeros_text(nonzero));
    zeroed.destroys = true;
    return zeroed;
  }
  if (report.wrapped != 0) {
    return damage(fmt::format("{} of {} elements wrapped around", report.wrapped, report.count));
  }
  // A single new infinity spoils every sum that it enters.
  const std::uint64_t out_of_range = report.saturated + report.overflowed;
  if (report.overflowed != 0 || out_of_range * 100 > report.count * out_of_range_percent) {
    return damage(fmt::format("{} of {} elements are out of range", out_of_range, report.count));
  }
  if (report.sign_lost != 0) {
    return Damage{fmt::format("{} of {} elements were below zero and lost their sign", report.sign_lost, report.count),
                  "a type with a sign would help"};
  }
  if (report.nan_lost != 0) {
    return damage(fmt::format("{} of {} elements were NaN and became numbers", report.nan_lost, report.count));
  }
  if (is_mostly_noise(report)) return damage(noise_text(report));
  return std::nullopt;
}

}  // namespace TENSORCAST_ABI

namespace file_conversion {

bool may_damage(const formats::Magnitudes& numbers, DType to) noexcept {
  const DTypeFacts& target = facts(to);
  const double smallest_normal = std::ldexp(target.smallest_positive, target.mantissa_bits);
  return numbers.least < smallest_normal || numbers.most > target.largest || !target.has_nan || !target.has_infinity;
}

std::uint64_t count_nonzero(DType dtype, std::span<const std::byte> data, std::size_t count) noexcept {
  const std::uint64_t sign = sign_of_zero(dtype);
  if (codec::decode(dtype, 0).kind != codec::Real::Kind::zero) return count;  // float8_e8m0fnu has no zero
  switch (bit_width(dtype)) {
    case 64:
      return count_codes<std::uint64_t>(data, count, sign);
    case 32:
      return count_codes<std::uint32_t>(data, count, sign);
    case 16:
      return count_codes<std::uint16_t>(data, count, sign);
    case 8:
      return count_codes<std::uint8_t>(data, count, sign);
    default:
      return count_packed(dtype, data, count);
  }
}

std::optional<Damage> find_quantizing_damage(const CastReport& report, const NonzeroCounts& nonzero, bool was_finite) {
  const auto damage = [](std::string what, bool destroys) {
    return Damage{std::move(what), "another scheme or `exclude` would help", destroys};
  };
  if (became_mostly_zero(nonzero)) return damage(zeros_text(nonzero), true);
  const std::uint64_t made = report.nan_made + report.overflowed;
  if (was_finite && made != 0) {
    return damage(fmt::format("{} of {} elements became NaN or infinite", made, report.count), true);
  }
  if (is_mostly_noise(report)) return damage(noise_text(report), false);
  return std::nullopt;
}

std::optional<Damage> find_loss(const CastReport& report, const NonzeroCounts& nonzero, DType from, DType to,
                                double zero_limit) {
  if (std::optional<Damage> damage = find_damage(report, nonzero, from, to)) return damage;
  if (family(to) == Family::boolean) return std::nullopt;
  const auto loss = [&](std::string what) { return Damage{std::move(what), remedy_of(report, from, to)}; };
  if (report.saturated != 0) {
    return loss(fmt::format("{} of {} elements are out of range", report.saturated, report.count));
  }
  if (report.nan_made != 0) return loss(fmt::format("{} of {} elements became NaN", report.nan_made, report.count));
  const std::uint64_t zeros = nonzero.before > nonzero.after ? nonzero.before - nonzero.after : 0;
  if (static_cast<double>(zeros) > zero_limit * static_cast<double>(nonzero.before)) {
    Damage damage = loss(fmt::format("{}, which is more than the share of {}", zeros_text(nonzero), zero_limit));
    damage.remedy += "; `zero_limit` allows more";
    return damage;
  }
  return std::nullopt;
}

Result<std::optional<Damage>> judge(const ConversionSettings& settings, std::optional<Damage> damage) {
  if (!damage) return damage;
  const bool is_strict = settings.on_loss == OnLoss::fail;
  if (is_strict || (settings.refuse_zeroed && damage->destroys)) {
    if (!is_strict) damage->remedy += "; `allow_loss` converts all the same";
    return out_of_range(std::move(damage->what), std::move(damage->remedy));
  }
  if (settings.on_loss == OnLoss::ignore) damage.reset();
  return damage;
}

}  // namespace file_conversion
}  // namespace tensorcast
