// SPDX-License-Identifier: Apache-2.0
#include "exact.hpp"

#include <bit>
#include <cmath>
#include <cstdio>
#include <map>

namespace oracle {
namespace {

Exact finite(mpq_class value, bool negative) {
  Exact x;
  x.value = std::move(value);
  x.negative = negative;
  return x;
}

Exact infinite(bool negative) {
  Exact x;
  x.kind = Exact::Kind::infinite;
  x.negative = negative;
  return x;
}

Exact not_a_number(bool negative, std::uint64_t payload) {
  Exact x;
  x.kind = Exact::Kind::nan;
  x.negative = negative;
  x.payload = payload;
  return x;
}

// Floats that the hardware has: it decodes them.
Exact from_double(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const bool negative = std::signbit(x);
  if (std::isnan(x)) return not_a_number(negative, bits << 13);
  if (std::isinf(x)) return infinite(negative);
  return finite(mpq_class(x), negative);
}

Exact from_float(float x) {
  if (std::isnan(x)) return not_a_number(std::signbit(x), std::uint64_t{std::bit_cast<std::uint32_t>(x)} << 42);
  return from_double(x);
}

// value = (-1)^s * 2^(e - bias) * 1.m, or 2^(1 - bias) * 0.m where e is 0.
mpq_class small_float_value(unsigned e, unsigned m, int mantissa_bits, int bias) {
  const long exponent = (e == 0 ? 1 : static_cast<long>(e)) - bias - mantissa_bits;
  const unsigned long significand = e == 0 ? m : m + (1UL << mantissa_bits);
  return mpq_class(significand) * power_of_two(exponent);
}

Exact small_float(unsigned code, const TypeInfo& type) {
  const int magnitude_bits = type.mantissa_bits + type.exponent_bits;
  const unsigned m = code & ((1U << type.mantissa_bits) - 1);
  const unsigned e = (code >> type.mantissa_bits) & ((1U << type.exponent_bits) - 1);
  const bool negative = (code >> magnitude_bits) != 0;
  const bool highest_exponent = e == (1U << type.exponent_bits) - 1;
  switch (type.special) {
    case Special::ieee:
      if (highest_exponent && m == 0) return infinite(negative);
      if (highest_exponent) return not_a_number(negative, std::uint64_t{m} << (64 - type.mantissa_bits) << 1);
      break;
    case Special::fn:
      if (highest_exponent && m == (1U << type.mantissa_bits) - 1) return not_a_number(negative, 0);
      break;
    case Special::fnuz:
      if (code == 1U << magnitude_bits) return not_a_number(true, 0);
      break;
    case Special::p3109:
      if (code == 1U << magnitude_bits) return not_a_number(true, 0);
      if (highest_exponent && m == (1U << type.mantissa_bits) - 1) return infinite(negative);
      break;
    case Special::none:
      break;
  }
  mpq_class value = small_float_value(e, m, type.mantissa_bits, type.bias);
  if (negative) value = -value;
  return finite(std::move(value), negative);
}

mpq_class integer_value(std::uint64_t code, int bits, bool is_signed) {
  mpz_class value = static_cast<unsigned long>(code);
  if (is_signed && ((code >> (bits - 1)) & 1) != 0) value -= mpz_class(1) << bits;
  return value;
}

}  // namespace

mpq_class power_of_two(long exponent) {
  mpq_class power = 1;
  if (exponent >= 0) {
    power <<= static_cast<unsigned long>(exponent);
  } else {
    power >>= static_cast<unsigned long>(-exponent);
  }
  return power;
}

Exact decode(Type type, std::uint64_t code) {
  const auto small = static_cast<unsigned>(code);
  switch (type) {
    case f64:
      return from_double(std::bit_cast<double>(code));
    case f32:
      return from_float(std::bit_cast<float>(static_cast<std::uint32_t>(code)));
    case e8m0:
      if (small == 0xFF) return not_a_number(false, 0);
      return finite(power_of_two(static_cast<long>(small) - 127), false);
    case boolean:
      return finite(code == 0 ? 0 : 1, false);
    default: {
      if (is_float(type)) return small_float(small, info(type));
      mpq_class value = integer_value(code, info(type).bits, info(type).kind == Kind::signed_integer);
      const bool negative = sgn(value) < 0;
      return finite(std::move(value), negative);
    }
  }
}

Exact product(const Exact& x, double factor) {
  if (x.nan() || factor == 1.0) return x;
  const bool negative = x.negative != std::signbit(factor);
  if (!x.finite()) return factor == 0.0 ? not_a_number(false, 0) : infinite(negative);
  return finite(x.value * mpq_class(factor), negative);
}

const std::vector<Exact>& all_codes(Type type) {
  static std::map<Type, std::vector<Exact>> cache;
  std::vector<Exact>& codes = cache[type];
  if (codes.empty()) {
    const std::uint64_t count = code_mask(type) + 1;
    codes.reserve(count);
    for (std::uint64_t code = 0; code < count; ++code) codes.push_back(decode(type, code));
  }
  return codes;
}

const std::vector<mpq_class>& magnitudes(Type type) {
  static std::map<Type, std::vector<mpq_class>> cache;
  std::vector<mpq_class>& values = cache[type];
  if (values.empty()) {
    for (const Exact& x : all_codes(type)) {
      if (!x.finite() || x.negative) break;
      values.push_back(x.value);
    }
  }
  return values;
}

std::string describe(const Exact& x) {
  const std::string sign = x.negative ? "-" : "";
  if (x.kind == Exact::Kind::infinite) return sign + "inf";
  if (x.nan()) {
    char payload[32];
    std::snprintf(payload, sizeof payload, "nan(0x%016llx)", static_cast<unsigned long long>(x.payload));
    return sign + payload;
  }
  if (x.zero()) return sign + "0";
  return x.value.get_str() + " (about " + std::to_string(x.value.get_d()) + ")";
}

}  // namespace oracle
