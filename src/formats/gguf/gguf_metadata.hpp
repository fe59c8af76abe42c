// SPDX-License-Identifier: Apache-2.0
// The metadata of GGUF: keys with values of 13 types.
#pragma once

#include <cstdint>
#include <string>

#include "formats/bytes/window_reader.hpp"
#include "formats/format.hpp"

namespace tensorcast::formats::gguf {

inline constexpr std::string_view quantization_version_key = "general.quantization_version";
inline constexpr std::string_view block_version = "2";  // GGML_QNT_VERSION, since before there was GGUF
inline constexpr std::uint32_t default_alignment = 32;
// A larger alignment would make files of padding.
inline constexpr std::uint32_t max_alignment = 1 << 20;

struct HeaderMetadata {
  Metadata texts;  // values as text: strings as they are, numbers in decimal, arrays in JSON
  std::uint32_t alignment = default_alignment;
  std::uint64_t file_type_at = 0;  // where the value of general.file_type is in the file; 0: it is not there
};

// Appends the bytes of a number.
template <class Number>
void put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// The error for a header that contradicts itself or the file.
[[nodiscard]] Error malformed(std::string what, const std::string& tensor = {});

// Reads a length of 8 bytes and as many bytes of text. Errors: parse, unsupported (memory), io.
[[nodiscard]] Result<std::string> read_text(WindowReader& reader);

// Reads `count` keys and values. Errors: parse, unsupported (an alignment that is too large, memory), io.
[[nodiscard]] Result<HeaderMetadata> read_metadata(WindowReader& reader, std::uint64_t count);

// Returns `native`, a number of keys and as many keys and values, with more keys that have strings.
// Errors: unsupported (a key that occurs twice).
[[nodiscard]] Result<std::string> with_added(std::string_view native, const Metadata& added);

// Returns `native` with general.quantization_version, ggml's number for how blocks are laid out, which a file with
// block formats must have. Precondition: it is not there.
[[nodiscard]] std::string with_quantization_version(std::string_view native);

// Returns the number of keys, and keys and strings, as a file has them. An alignment is left out, as each file has its
// own. Errors: unsupported (a key that occurs twice).
[[nodiscard]] Result<std::string> format_metadata(const Metadata& texts);

}  // namespace tensorcast::formats::gguf
