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

Exact small_float(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
  const unsigned m = code & ((1U << mantissa_bits) - 1);
  const unsigned e = (code >> mantissa_bits) & ((1U << exponent_bits) - 1);
  const bool negative = (code >> (mantissa_bits + exponent_bits)) != 0;
  mpq_class value = small_float_value(e, m, mantissa_bits, bias);
  if (negative) value = -value;
  return finite(std::move(value), negative);
}

// As small_float, with infinity and NaN where the exponent is all ones.
Exact ieee_float(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
  const unsigned m = code & ((1U << mantissa_bits) - 1);
  const unsigned e = (code >> mantissa_bits) & ((1U << exponent_bits) - 1);
  if (e != (1U << exponent_bits) - 1) return small_float(code, exponent_bits, mantissa_bits, bias);
  const bool negative = (code >> (mantissa_bits + exponent_bits)) != 0;
  if (m == 0) return infinite(negative);
  return not_a_number(negative, std::uint64_t{m} << (64 - mantissa_bits) << 1);
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
    case f16:
      return ieee_float(small, 5, 10, 15);
    case bf16:
      return ieee_float(small, 8, 7, 127);
    case e5m2:
      return ieee_float(small, 5, 2, 15);
    case e4m3fn:
      if ((small & 0x7F) == 0x7F) return not_a_number(small == 0xFF, 0);
      return small_float(small, 4, 3, 7);
    case e4m3fnuz:
      if (small == 0x80) return not_a_number(true, 0);
      return small_float(small, 4, 3, 8);
    case e5m2fnuz:
      if (small == 0x80) return not_a_number(true, 0);
      return small_float(small, 5, 2, 16);
    case e8m0:
      if (small == 0xFF) return not_a_number(false, 0);
      return finite(power_of_two(static_cast<long>(small) - 127), false);
    case e2m1:
      return small_float(small, 2, 1, 1);
    case boolean:
      return finite(code == 0 ? 0 : 1, false);
    default: {
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
