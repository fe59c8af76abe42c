// SPDX-License-Identifier: Apache-2.0
// D0: every element is an exact rational number, an infinity, or a NaN with a sign and a payload.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <string>
#include <vector>

#include "types.hpp"

namespace oracle {

struct Exact {
  enum class Kind : std::uint8_t { finite, infinite, nan };

  Kind kind = Kind::finite;
  bool negative = false;      // also of zero, infinity and NaN
  mpq_class value;            // finite only
  std::uint64_t payload = 0;  // NaN only: the fraction below the quiet bit, first bit on top of the 64

  [[nodiscard]] bool finite() const { return kind == Kind::finite; }
  [[nodiscard]] bool nan() const { return kind == Kind::nan; }
  [[nodiscard]] bool zero() const { return finite() && sgn(value) == 0; }
};

// Decodes a code of a numeric type.
Exact decode(Type type, std::uint64_t code);

// x * factor in real arithmetic; signs multiply (NaN keeps its own), infinity times zero is NaN.
Exact product(const Exact& x, double factor);

mpq_class power_of_two(long exponent);

// Returns decode() of every code of a type of 16 bits or fewer, computed once.
const std::vector<Exact>& all_codes(Type type);

// Finite magnitudes of a float of 16 bits or fewer, ascending: element i is the value of code i. e8m0 included.
const std::vector<mpq_class>& magnitudes(Type type);

// For messages: "1.5", "nan(negative, payload 0x...)".
std::string describe(const Exact& x);

}  // namespace oracle
