// SPDX-License-Identifier: Apache-2.0
// Component core. Shows one number in any type: its bits, its exact value, and what the conversion did to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct Explanation {
  DType dtype = DType::undefined;
  std::string error = {};  // why there is no result; the fields below are then empty
  std::uint64_t code = 0;  // the element's bits, right-aligned
  std::string sign_bits = {}, exponent_bits = {}, mantissa_bits = {};  // floating; integers: all bits in mantissa_bits
  std::string exact_value = {};     // the code's value as an exact decimal: "0.100000001490116119384765625"
  std::string shortest_value = {};  // the fewest digits that read back as this code, as a cast to string prints them
  std::string exact_error = {};     // exact_value - (input * scale), exact decimal, "0" when equal; empty if not finite
  double relative_error = 0.0;
  std::vector<std::string> events = {};  // of "exact", "rounded", "overflowed", "saturated", "underflowed", "wrapped",
                                         // "truncated", "sign lost", "NaN made", "NaN lost"
};

// Converts the number `literal` to `to` and explains the result.
//
// Literal  a decimal number, inf or nan as casts from string read it, or a code of `from` as 0x... or 0b...
// From     the literal is first rounded to `from`; undefined: it keeps its exact decimal value.
// Errors   parse; invalid_argument for a code that `from` does not have. If the options demand an error for this
//          number, there is a result, and its `error` says why.
// Cost     exact arithmetic on all digits; a literal that has more than 100,000 when written out is an error.
[[nodiscard]] TENSORCAST_API Result<Explanation> explain(std::string_view literal, DType from, DType to,
                                                         const CastOptions& options = {});

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
