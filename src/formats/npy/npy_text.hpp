// SPDX-License-Identifier: Apache-2.0
// Converts NumPy's strings of fixed width to and from UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/npy/npy_dtypes.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npy {

// Appends one element to `utf8`, without its padding. Errors: parse (not Unicode text).
[[nodiscard]] Result<void> decode_text(std::span<const std::byte> item, const ElementLayout& layout,
                                       std::vector<char>& utf8);

[[nodiscard]] bool is_utf8(std::string_view text);

// Returns the number of code points. Errors: parse (not UTF-8); unsupported (a final NUL, which would be read as
// padding).
[[nodiscard]] Result<std::uint64_t> count_characters(std::string_view utf8);

// Appends `utf8`, whose code points were counted, as little-endian UTF-32, padded to `characters`.
void encode_text(std::string_view utf8, std::uint64_t characters, std::vector<std::byte>& utf32);

}  // namespace tensorcast::formats::npy
