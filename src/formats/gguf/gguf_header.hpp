// SPDX-License-Identifier: Apache-2.0
// The header of a GGUF file: metadata, tensors and where their data are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats::gguf {

inline constexpr std::string_view magic = "GGUF";
inline constexpr std::size_t max_rank = 4;         // ggml's
inline constexpr std::size_t max_name_bytes = 63;  // ggml's

struct Header {
  std::vector<TensorInfo> tensors;
  std::vector<std::uint64_t> offsets;  // of each tensor's data in the file
  Metadata metadata;
  std::string native_metadata;        // the file's own bytes; see NativeMetadata
  std::vector<std::string> warnings;  // Reader::warnings()
};

// Reads and checks the header. Tensors lie inside the file and do not overlap. Those of types that are not known here
// have all bytes up to the next tensor. Errors: parse, unsupported, io.
[[nodiscard]] Result<Header> read_header(const io::InputFile& file);

// Gives tensors the shapes that ComfyUI's loader gives them: those of the keys comfy.gguf.orig_shape.NAME, for weights
// whose rows are no whole blocks or that have more than four dimensions; takes these keys out of the metadata.
void apply_original_shapes(Header& header, const io::InputFile& file);

// What Reader::native_metadata() holds: the alignment, the place of the value of general.file_type in `bytes` (0: it is
// not there), and the file's bytes from the number of keys to the last value.
struct NativeMetadata {
  std::uint32_t alignment = 0;
  std::uint32_t file_type_at = 0;
  std::string_view bytes;
};
[[nodiscard]] std::string pack_native(const NativeMetadata& native);
[[nodiscard]] NativeMetadata unpack_native(std::string_view packed);

// Returns the bytes of a file up to the first tensor's data. Tensors have types of GGUF. general.file_type names the
// type that most bytes have, unless some are of block formats or none of ggml's numbers is for that type; not 0: it is
// `file_type`.
[[nodiscard]] std::string format_header(std::span<const TensorInfo> tensors, const NativeMetadata& native,
                                        std::uint32_t file_type = 0);

// Returns the bytes to add to `size` to make it a multiple of `alignment`.
[[nodiscard]] constexpr std::uint64_t padding(std::uint64_t size, std::uint64_t alignment) noexcept {
  return (alignment - size % alignment) % alignment;
}

}  // namespace tensorcast::formats::gguf
