// SPDX-License-Identifier: Apache-2.0
#include "rounding.hpp"

#include <mpfr.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <stdexcept>

#include "exact.hpp"
#include "tensorcast/c_api.h"

namespace oracle {
namespace {

// MPFR counts exponents of significands in [1/2, 1).
NearestFloat nearest_by_mpfr(const mpq_class& magnitude, int precision, mpfr_exp_t emin, mpfr_exp_t emax, Type type) {
  const mpfr_exp_t old_emin = mpfr_get_emin();
  const mpfr_exp_t old_emax = mpfr_get_emax();
  mpfr_set_emin(emin);
  mpfr_set_emax(emax);
  mpfr_t rounded;
  mpfr_init2(rounded, precision);
  const int ternary = mpfr_set_q(rounded, magnitude.get_mpq_t(), MPFR_RNDN);
  mpfr_subnormalize(rounded, ternary, MPFR_RNDN);
  const bool beyond = mpfr_inf_p(rounded) != 0;
  const double value = mpfr_get_d(rounded, MPFR_RNDN);
  mpfr_clear(rounded);
  mpfr_set_emin(old_emin);
  mpfr_set_emax(old_emax);
  const std::uint64_t code =
      type == f64 ? std::bit_cast<std::uint64_t>(value) : std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return {.magnitude = code, .beyond = beyond};
}

}  // namespace

const std::vector<mpq_class>& midpoints(Type type) {
  static std::map<Type, std::vector<mpq_class>> cache;
  std::vector<mpq_class>& middles = cache[type];
  if (middles.empty()) {
    const std::vector<mpq_class>& values = magnitudes(type);
    const std::size_t last = values.size() - 1;
    for (std::size_t i = 0; i < last; ++i) middles.push_back((values[i] + values[i + 1]) / 2);
    middles.push_back(values[last] + (values[last] - values[last - 1]) / 2);
  }
  return middles;
}

NearestFloat nearest_float(const mpq_class& magnitude, Type type) {
  if (type == f64) return nearest_by_mpfr(magnitude, 53, -1073, 1024, type);
  if (type == f32) return nearest_by_mpfr(magnitude, 24, -148, 128, type);
  const std::vector<mpq_class>& middles = midpoints(type);
  const auto middle = std::lower_bound(middles.begin(), middles.end(), magnitude);
  auto code = static_cast<std::uint64_t>(middle - middles.begin());
  // Neighbouring codes differ by one, so the even one of a tie is the one with an even significand.
  if (middle != middles.end() && *middle == magnitude && code % 2 == 1) ++code;
  return {.magnitude = code, .beyond = code == middles.size()};
}

bool goes_up(int word, const mpq_class& part, bool lower_is_odd, bool is_negative) {
  const int half = cmp(part, mpq_class(1, 2));
  switch (word) {
    case TC_ROUNDING_NEAREST_EVEN:
      return half > 0 || (half == 0 && lower_is_odd);
    case TC_ROUNDING_NEAREST_AWAY:
      return half >= 0;
    case TC_ROUNDING_TOWARD_ZERO:
      return false;
    case TC_ROUNDING_TOWARD_POSITIVE:
      return !is_negative;
    case TC_ROUNDING_TOWARD_NEGATIVE:
      return is_negative;
    case TC_ROUNDING_TO_ODD:
      return !lower_is_odd;
    default:
      throw std::invalid_argument("a word that the oracle does not know");
  }
}

bool leads_to_zero(int word, bool is_negative) {
  return word == TC_ROUNDING_TOWARD_ZERO || word == TC_ROUNDING_TO_ODD ||
         word == (is_negative ? TC_ROUNDING_TOWARD_POSITIVE : TC_ROUNDING_TOWARD_NEGATIVE);
}

NearestFloat float_by_word(const mpq_class& magnitude, Type type, int word, bool is_negative) {
  if (magnitude == 0) return {};
  const TypeInfo& target = info(type);
  const int least_exponent = 1 - target.bias;
  // 2^exponent <= magnitude < 2^(exponent + 1)
  auto exponent = static_cast<long>(mpz_sizeinbase(magnitude.get_num_mpz_t(), 2)) -
                  static_cast<long>(mpz_sizeinbase(magnitude.get_den_mpz_t(), 2));
  const auto power = [](long n) {
    mpq_class result(1);
    if (n >= 0) mpq_mul_2exp(result.get_mpq_t(), result.get_mpq_t(), static_cast<mp_bitcnt_t>(n));
    if (n < 0) mpq_div_2exp(result.get_mpq_t(), result.get_mpq_t(), static_cast<mp_bitcnt_t>(-n));
    return result;
  };
  if (magnitude < power(exponent)) --exponent;
  if (exponent > 20'000) return {.beyond = true};
  const long binade = std::max<long>(exponent, least_exponent);
  const mpq_class steps = magnitude / power(binade - target.mantissa_bits);
  mpz_class below;
  mpz_fdiv_q(below.get_mpz_t(), steps.get_num_mpz_t(), steps.get_den_mpz_t());
  const mpq_class part = steps - below;
  if (part != 0 && goes_up(word, part, mpz_odd_p(below.get_mpz_t()) != 0, is_negative)) ++below;
  // Codes count on from binade to binade, subnormal numbers included.
  const mpz_class code = (mpz_class(binade - least_exponent) << target.mantissa_bits) + below;
  const std::uint64_t largest = type == f64   ? 0x7FEFFFFFFFFFFFFF
                                : type == f32 ? 0x7F7FFFFF
                                              : magnitudes(type).size() - 1;
  if (code > mpz_class(largest)) return {.beyond = true};
  return {.magnitude = code.get_ui()};
}

std::uint64_t power_by_word(const mpq_class& x, int word) {
  const PowerOfTwo place = nearest_power(x);
  if (place.up == place.down) return place.down;
  const mpq_class below = magnitudes(e8m0)[place.down];
  return goes_up(word, (x - below) / below, place.down % 2 == 1, false) ? place.up : place.down;
}

mpz_class integer_by_word(const mpq_class& x, int word) {
  mpz_class below;
  const mpq_class size = abs(x);
  mpz_fdiv_q(below.get_mpz_t(), size.get_num_mpz_t(), size.get_den_mpz_t());
  const mpq_class part = size - below;
  if (part != 0 && goes_up(word, part, mpz_odd_p(below.get_mpz_t()) != 0, x < 0)) ++below;
  return x < 0 ? mpz_class(-below) : below;
}

PowerOfTwo nearest_power(const mpq_class& x) {
  const std::vector<mpq_class>& powers = magnitudes(e8m0);
  if (x < powers.front()) return {.side = -1};
  if (x > powers.back()) return {.side = 1};
  PowerOfTwo result;
  result.down = static_cast<std::uint64_t>(std::upper_bound(powers.begin(), powers.end(), x) - powers.begin() - 1);
  const mpq_class& below = powers[result.down];
  result.up = below == x ? result.down : result.down + 1;
  result.nearest = x - below < below / 2 ? result.down : result.up;
  return result;
}

mpz_class truncated(const mpq_class& x) {
  mpz_class quotient;
  mpz_tdiv_q(quotient.get_mpz_t(), x.get_num_mpz_t(), x.get_den_mpz_t());
  return quotient;
}

mpz_class nearest_even(const mpq_class& x) {
  mpz_class below;
  mpz_fdiv_q(below.get_mpz_t(), x.get_num_mpz_t(), x.get_den_mpz_t());
  const int against_half = cmp(mpq_class(x - below), mpq_class(1, 2));
  if (against_half > 0 || (against_half == 0 && mpz_odd_p(below.get_mpz_t()))) ++below;
  return below;
}

IntegerPart fit(const mpz_class& integer, Type type) {
  const TypeInfo& target = info(type);
  const bool is_signed = target.kind == Kind::signed_integer;
  const int value_bits = target.bits - (is_signed ? 1 : 0);
  const mpz_class end = mpz_class(1) << value_bits;
  IntegerPart part;
  if (integer >= end) part.side = 1;
  if (integer < (is_signed ? mpz_class(-end) : mpz_class(0))) part.side = -1;
  mpz_class low;
  mpz_fdiv_r_2exp(low.get_mpz_t(), integer.get_mpz_t(), static_cast<mp_bitcnt_t>(target.bits));
  part.low_bits = low.get_ui();
  return part;
}

std::uint64_t integer_extreme(Type type, bool lowest) {
  const TypeInfo& target = info(type);
  const std::uint64_t top = std::uint64_t{1} << (target.bits - 1);
  if (target.kind == Kind::unsigned_integer) return lowest ? 0 : code_mask(type);
  return lowest ? top : top - 1;
}

}  // namespace oracle
