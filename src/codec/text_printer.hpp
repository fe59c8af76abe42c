// SPDX-License-Identifier: Apache-2.0
// The writers under append_text() and print_strings().
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/policy.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::codec {

// Bytes that any element's text fits. The longest is float64's in plain notation: a sign, "0.", 323 zeros, 17 digits.
inline constexpr std::size_t longest_text = 352;

// Each writes D9's text at `out`, which has room for longest_text bytes, and returns the text's end.
[[nodiscard]] char* write_float(float value, FloatString style, char* out);
[[nodiscard]] char* write_float(double value, FloatString style, char* out);
[[nodiscard]] char* write_integer(std::int64_t value, char* out);
[[nodiscard]] char* write_integer(std::uint64_t value, char* out);
// Precondition: the type is numeric or bool.
[[nodiscard]] char* write_code(DType from, std::uint64_t bits, FloatString style, char* out);

}  // namespace tensorcast::codec
