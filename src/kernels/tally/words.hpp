// What a conversion did to integers of 16 bits. Whatever type they become, each result is an integer again (or too far
// out to be finite), and so is each error: sums of squares are exact, and the same in any order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/real.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

struct WordRules {
  // Where errors come from, and so how they are found.
  enum class Errors : std::uint8_t {
    none,        // the target has all numbers
    wrapped,     // it keeps the low bits: what is lost are the bits above, and the result is not looked at
    rounded,     // all errors are of rounding, and at most 2^15
    saturated,   // beyond `limit`, numbers become the extreme
    overflowed,  // beyond `limit`, they become infinite or NaN
    lifted,      // zero and below become a tiny number, which counts for 0; of others, as `rounded`
    refused,     // zero and below become NaN; of others, as `rounded`
  };

  bool is_signed = false;  // the source
  Errors errors = Errors::none;
  std::uint16_t limit = UINT16_MAX;  // the largest magnitude that is not beyond the range
  // Of wrapped ones: the error in units of what the target cannot hold is (x >> above) + (x >> below & carry).
  int above = 0, below = 0;
  std::uint16_t carry = 0;
};

struct WordTally {
  std::uint64_t inexact = 0, beyond = 0, zeros = 0;  // `beyond` of wrapped ones are the inexact; zeros only of `lifted`
  codec::uint128 signal = 0, noise = 0;
  std::uint16_t max_error = 0;
  std::uint16_t ratio_error = 0, ratio_source = 1;  // of the greatest relative error

  void merge(const WordTally& other) noexcept;
};

// `result` holds the results as integers modulo 2^16, of the source's sign; it is not read where errors are `none` or
// `wrapped`.
void tally_words(Target target, const std::byte* source, const std::byte* result, std::size_t count,
                 const WordRules& rules, WordTally& tally) noexcept;

}  // namespace tensorcast::kernels
