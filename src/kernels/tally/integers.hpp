// What a conversion did to a block of integers of 16, 32 or 64 bits that were not scaled. Whatever type they become,
// each result is an integer again, or too far out to be finite, or the tiny number that zeros become in
// float8_e8m0fnu; and so is each error.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/real.hpp"
#include "kernels/tally/tally.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

struct IntegerRules {
  // Where errors come from, and so how they are found.
  enum class Errors : std::uint8_t {
    none,        // the target has all numbers
    wrapped,     // it keeps the low bits: what is lost are the bits above, and the result is not looked at
    rounded,     // all errors are of rounding; of 16 bits, at most 2^15, of 32, 2^31
    saturated,   // beyond `limit`, numbers become the extreme
    overflowed,  // beyond `limit`, they become infinite or NaN
    lifted,      // zero and below become a tiny number; of others, as `rounded`
    refused,     // zero and below become NaN; of others, as `rounded`
    truth,       // of 16 and 32 bits: all but zero become one, and the result is not looked at
  };

  int bits = 16;  // of the source
  bool is_signed = false;
  Errors errors = Errors::none;
  double limit = 0.0;    // the largest magnitude that is not beyond the range; of 16 and 32 bits, an integer of as many
  double extreme = 0.0;  // what larger ones become where they saturate
  // Of wrapped ones: the error in units of what the target cannot hold is (x >> above) + (x >> below & carry).
  int above = 0, below = 0;
  int carry = 0;
  // No element that is not beyond `limit` has an error (in those units) of more than its magnitude divided by this; 0:
  // not known. Of 16 and 32 bits, for speed only.
  std::uint32_t least_ratio = 0;
};

// Of 16 and 32 bits: integers, which add up in any order.
struct IntegerTally {
  std::uint64_t inexact = 0, beyond = 0;  // `beyond` of wrapped ones are the inexact
  std::uint64_t zeros = 0;                // of `lifted`, where they count for exact
  codec::uint128 signal = 0, noise = 0;
  std::uint32_t max_error = 0;
  std::uint32_t ratio_error = 0, ratio_source = 1;  // of the greatest relative error

  void merge(const IntegerTally& other) noexcept;
  void see_ratio(std::uint32_t error, std::uint32_t source) noexcept {
    if (std::uint64_t{error} * ratio_source <= std::uint64_t{ratio_error} * source) return;
    ratio_error = error;
    ratio_source = source;
  }
};

// Of 64 bits: float64, element i in chain i % 16. Sources and errors are rounded to that first, and so are their
// squares.
struct LongTally {
  std::uint64_t inexact = 0, beyond = 0;
  double max_error = 0.0, max_ratio = 0.0;
  double signal[tally_chains] = {};
  double noise[tally_chains] = {};
};

[[nodiscard]] constexpr bool reads_result(IntegerRules::Errors errors) noexcept {
  using Errors = IntegerRules::Errors;
  return errors != Errors::none && errors != Errors::wrapped && errors != Errors::truth;
}

// Whether tally_integers() takes results as float32: where they are small or not finite.
[[nodiscard]] constexpr bool takes_floats(int bits, IntegerRules::Errors errors) noexcept {
  return bits == 32 && (errors == IntegerRules::Errors::saturated || errors == IntegerRules::Errors::overflowed);
}

// `result` is not read unless reads_result(rules.errors). Then it holds the results as float32, or as integers of
// the source's type, modulo its range.
void tally_integers(Target target, const std::byte* source, const std::byte* result, std::size_t count,
                    const IntegerRules& rules, IntegerTally& tally) noexcept;

// The same for sources of 64 bits, and results as float32 or float64, of any alignment. `count` is a multiple of 16,
// except in the last call for a tally.
void tally_long_integers(Target target, const std::byte* source, const std::byte* result, bool is_result_double,
                         std::size_t count, const IntegerRules& rules, LongTally& tally) noexcept;

}  // namespace tensorcast::kernels
