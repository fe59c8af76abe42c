// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <algorithm>
#include <cmath>

#include "exact.hpp"
#include "rounding.hpp"

namespace oracle {
namespace {

// Positive numbers at which the result of a conversion to `to` may change.
class Thresholds {
 public:
  explicit Thresholds(Type to, bool dense) {
    const TypeInfo& target = info(to);
    if (is_integer(to)) {
      add_integers(target.bits);
    } else if (to == e8m0) {
      add_powers();
    } else if (target.kind == Kind::floating && target.bits <= 16) {
      add_small_float(to, dense);
    } else if (target.kind == Kind::floating) {
      add_wide_float(to);
    }
  }

  [[nodiscard]] const std::vector<mpq_class>& values() const { return values_; }

 private:
  void add_integers(int bits) {
    for (int k = 0; k <= 12; ++k) add_with_halves(k);
    for (int k = 1; k <= 70; ++k) add_with_halves(mpz_class(1) << k);
    for (int multiple = 1; multiple <= 5; ++multiple) add_with_halves(multiple * (mpz_class(1) << (bits - 1)));
  }

  void add_with_halves(const mpz_class& integer) {
    values_.emplace_back(integer);
    values_.push_back(integer - mpq_class(1, 2));
    values_.push_back(integer + mpq_class(1, 2));
    values_.push_back(integer + mpq_class(3, 2));
  }

  void add_powers() {
    for (const mpq_class& power : magnitudes(e8m0)) {
      values_.push_back(power);
      values_.push_back(power * 3 / 2);
      values_.push_back(power * 5 / 4);
    }
    values_.push_back(magnitudes(e8m0).front() / 2);
  }

  void add_small_float(Type to, bool dense) {
    const std::vector<mpq_class>& middles = midpoints(to);
    const bool wide = info(to).bits > 8;
    const std::size_t step = wide && !dense ? 97 : 1;
    for (std::size_t i = 0; i < middles.size(); i += step) values_.push_back(middles[i]);
    const std::vector<mpq_class>& values = magnitudes(to);
    for (std::size_t i = 0; i < values.size(); i += wide ? 61 : 1) values_.push_back(values[i]);
    for (std::size_t i : {std::size_t{0}, std::size_t{1}, middles.size() - 2, middles.size() - 1}) {
      values_.push_back(middles[i]);
      values_.push_back(values[i]);
    }
    values_.push_back(values.back() * 2);
    values_.push_back(values[1] / 4);
  }

  void add_wide_float(Type to) {
    const int mantissa_bits = to == f64 ? 52 : 23;
    const std::uint64_t ones = (std::uint64_t{1} << mantissa_bits) - 1;
    const std::uint64_t exponents = to == f64 ? 2047 : 255;
    Random random(exponents);
    for (std::uint64_t exponent = 0; exponent < exponents; ++exponent) {
      for (const std::uint64_t mantissa :
           {std::uint64_t{0}, std::uint64_t{1}, ones / 2, ones - 1, ones, random.next() & ones, random.next() & ones}) {
        const std::uint64_t code = (exponent << mantissa_bits) | mantissa;
        const mpq_class value = decode(to, code).value;
        values_.push_back(value);
        const Exact after = decode(to, code + 1);
        const mpq_class before = code == 0 ? mpq_class(0) : decode(to, code - 1).value;
        values_.push_back(after.finite() ? mpq_class((value + after.value) / 2)
                                         : mpq_class(value + (value - before) / 2));
      }
    }
  }

  std::vector<mpq_class> values_;
};

std::uint64_t infinity_code(Type wide_float) { return wide_float == f64 ? 0x7FF0000000000000 : 0x7F800000; }

// Floats and their negatives, up to infinity, at most `steps` codes from the one nearest to a positive number.
void add_float_neighbours(Type from, const mpq_class& center, std::vector<std::uint64_t>& codes) {
  const NearestFloat nearest = nearest_float(center, from);
  const std::uint64_t infinity = infinity_code(from);
  const std::uint64_t sign = infinity == 0x7F800000 ? 0x80000000 : 0x8000000000000000;
  const std::uint64_t middle = nearest.beyond ? infinity : nearest.magnitude;
  const std::uint64_t first = middle < 3 ? 0 : middle - 3;
  for (std::uint64_t code = first; code <= std::min(middle + 3, infinity); ++code) {
    codes.push_back(code);
    codes.push_back(code | sign);
  }
}

void add_integer_neighbours(Type from, const mpq_class& center, std::vector<std::uint64_t>& codes) {
  for (const mpq_class& signed_center : {center, mpq_class(-center)}) {
    const mpz_class middle = nearest_even(signed_center);
    for (int step = -2; step <= 2; ++step) {
      const IntegerPart part = fit(middle + step, from);
      if (part.side == 0) codes.push_back(part.low_bits);
    }
  }
}

void add_specials(Type from, std::vector<std::uint64_t>& codes) {
  if (is_integer(from)) {
    for (std::uint64_t step = 0; step < 4; ++step) {
      for (const bool lowest : {false, true}) {
        codes.push_back((integer_extreme(from, lowest) + step) & code_mask(from));
        codes.push_back((integer_extreme(from, lowest) - step) & code_mask(from));
      }
    }
    for (int bit = 0; bit < info(from).bits; ++bit) {
      const std::uint64_t power = std::uint64_t{1} << bit;
      for (const std::uint64_t code : {power, power - 1, ~power, std::uint64_t{0} - power}) {
        codes.push_back(code & code_mask(from));
      }
    }
    return;
  }
  const std::uint64_t infinity = infinity_code(from);
  const int mantissa_bits = from == f64 ? 52 : 23;
  const std::uint64_t quiet = std::uint64_t{1} << (mantissa_bits - 1);
  const std::uint64_t sign = code_mask(from) ^ (code_mask(from) >> 1);
  std::vector<std::uint64_t> magnitudes = {
      0, 1, 2, infinity - 1, infinity, infinity | quiet, infinity | (2 * quiet - 1)};
  for (int bit = 0; bit < mantissa_bits; ++bit) {  // payloads, signalling and quiet
    magnitudes.push_back(infinity | std::uint64_t{1} << bit);
    magnitudes.push_back(infinity | quiet | std::uint64_t{1} << bit);
    magnitudes.push_back(infinity | ((std::uint64_t{1} << bit) + (std::uint64_t{1} << bit) - 1));
  }
  for (std::uint64_t code = 0; code < infinity; code += infinity & (~infinity + 1)) {  // binade ends
    magnitudes.push_back(code);
    magnitudes.push_back(code + 1);
    if (code > 0) magnitudes.push_back(code - 1);
  }
  for (const std::uint64_t magnitude : magnitudes) {
    codes.push_back(magnitude);
    codes.push_back(magnitude | sign);
  }
}

void make_unique(std::vector<std::uint64_t>& codes) {
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
  return mixed ^ (mixed >> 31);
}

std::vector<std::uint64_t> boundary_codes(Type from, Type to, double scale, bool dense) {
  std::vector<std::uint64_t> codes;
  if (info(from).bits <= 16) {
    for (std::uint64_t code = 0; code <= code_mask(from); ++code) codes.push_back(code);
    return codes;
  }
  add_specials(from, codes);
  const Thresholds thresholds(to, dense);
  for (const mpq_class& threshold : thresholds.values()) {
    const mpq_class center = scale == 1.0 || scale == 0.0 ? threshold : mpq_class(abs(threshold / mpq_class(scale)));
    if (is_float(from)) {
      add_float_neighbours(from, center, codes);
    } else {
      add_integer_neighbours(from, center, codes);
    }
  }
  make_unique(codes);
  return codes;
}

std::vector<std::uint64_t> random_codes(Type from, Type to, std::uint64_t seed, std::size_t count) {
  Random random(seed ^ (static_cast<std::uint64_t>(from) << 40) ^ (static_cast<std::uint64_t>(to) << 32));
  const long reach = is_integer(to) || to == boolean         ? info(to).bits + 2
                     : to == f64                             ? 1080
                     : to == f32 || to == bf16 || to == e8m0 ? 150
                                                             : 26;
  std::vector<std::uint64_t> codes;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t code = random.next() & code_mask(from);
    if (i % 2 == 1 && (from == f32 || from == f64)) {  // the random mantissa under an exponent that `to` nearly has
      const int mantissa_bits = from == f64 ? 52 : 23;
      const long bias = from == f64 ? 1023 : 127;
      const long exponent = bias - reach + static_cast<long>(random.below(static_cast<std::uint64_t>(2 * reach)));
      const std::uint64_t field = static_cast<std::uint64_t>(std::clamp(exponent, 0L, 2 * bias)) << mantissa_bits;
      code = (code & ~(infinity_code(from))) | field;
    } else if (i % 2 == 1 && info(from).bits > 16) {  // an integer of a random length
      const auto length = random.below(static_cast<std::uint64_t>(info(from).bits)) + 1;
      const std::uint64_t magnitude = code >> (static_cast<std::uint64_t>(info(from).bits) - length);
      code = (random.next() % 2 == 0 ? magnitude : std::uint64_t{0} - magnitude) & code_mask(from);
    }
    codes.push_back(code);
  }
  return codes;
}

std::vector<std::uint64_t> thinned(const std::vector<std::uint64_t>& codes, std::size_t count) {
  if (codes.size() <= count) return codes;
  std::vector<std::uint64_t> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(codes[i * (codes.size() - 1) / (count - 1)]);
  return some;
}

}  // namespace oracle
