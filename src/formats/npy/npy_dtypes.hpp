// SPDX-License-Identifier: Apache-2.0
// NumPy's array protocol strings ("<f4", "|V1", "<U12") and the layout of an element of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::formats::npy {

enum class Text : std::uint8_t {
  none,   // numbers
  utf32,  // <U: code points of four bytes, padded with NUL
  bytes,  // |S: bytes, padded with NUL
};

struct ElementLayout {
  DType dtype = DType::undefined;
  std::uint64_t item_bytes = 0;  // in the file; types under 8 bits take a whole byte
  bool big_endian = false;
  Text text = Text::none;
};

// Returns the bytes of one number or bool in a .npy.
[[nodiscard]] std::uint64_t item_bytes(DType dtype) noexcept;

// `from` is the type of an opaque descriptor (|V1, <V2), as NumPy writes the types of ml_dtypes.
// Errors: unsupported (types that are not castable); invalid_argument (`from` missing, of another width, or
// contradicting a descriptor that names its type); parse.
[[nodiscard]] Result<ElementLayout> parse_descr(std::string_view descr, DType from);

// Reports whether NumPy writes `dtype` as an opaque descriptor, so that readers need `from`.
[[nodiscard]] bool is_opaque(DType dtype) noexcept;

// Returns NumPy's descriptor. For strings, `characters` is the length of the longest.
[[nodiscard]] std::string format_descr(DType dtype, std::uint64_t characters = 0);

}  // namespace tensorcast::formats::npy
