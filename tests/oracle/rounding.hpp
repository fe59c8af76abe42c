// SPDX-License-Identifier: Apache-2.0
// Rounds an exact number to a type before any option applies. Floats of 16 bits or fewer search the sorted list of all
// their values, wider ones use MPFR, integers GMP's integer division.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <vector>

#include "types.hpp"

namespace oracle {

// Nearest float, ties to even, in the type's own precision but without an upper end.
struct NearestFloat {
  std::uint64_t magnitude = 0;  // undefined if beyond is set
  bool beyond = false;          // rounded beyond the largest finite value
};
NearestFloat nearest_float(const mpq_class& magnitude, Type type);

// Whether a number between two neighbours becomes the one of greater magnitude by a word of D16 (TC_ROUNDING_...; not
// stochastic). `part`: its place between them, above 0 and below 1; `lower_is_odd`: the code of the smaller one is.
bool goes_up(int word, const mpq_class& part, bool lower_is_odd, bool is_negative);
// Reports whether numbers beyond the largest become the largest.
bool leads_to_zero(int word, bool is_negative);
// As nearest_float(), by a word.
NearestFloat float_by_word(const mpq_class& magnitude, Type type, int word, bool is_negative);
// The code of a positive number within the range of float8_e8m0fnu.
std::uint64_t power_by_word(const mpq_class& x, int word);
mpz_class integer_by_word(const mpq_class& x, int word);

// The place of a number among the powers of two of float8_e8m0fnu.
struct PowerOfTwo {
  int side = 0;  // -1 below 2^-127, 1 above 2^127, 0 between; the codes are defined only between
  std::uint64_t down = 0, up = 0, nearest = 0;
};
PowerOfTwo nearest_power(const mpq_class& x);

// The low bits of a rounded number, and its side: -1 below the type's range, 0 inside, 1 above.
struct IntegerPart {
  std::uint64_t low_bits = 0;
  int side = 0;
};
mpz_class truncated(const mpq_class& x);
mpz_class nearest_even(const mpq_class& x);
IntegerPart fit(const mpz_class& integer, Type type);
std::uint64_t integer_extreme(Type type, bool lowest);  // as a code

// The thresholds at which nearest_float() of a float of 16 bits or fewer changes: element i lies between magnitudes i
// and i + 1, the last one between the largest value and the one that would follow.
const std::vector<mpq_class>& midpoints(Type type);

}  // namespace oracle
