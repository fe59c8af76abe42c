// SPDX-License-Identifier: Apache-2.0
// The types of tensors in GGUF: ggml's numbers, names and block sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "block/format/gguf_block.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::formats::gguf {

struct TensorType {
  std::uint32_t number = 0;
  std::string_view name;           // "Q4_K"
  DType dtype = DType::undefined;  // undefined: a block format, which is copied only
  std::uint32_t block_elements = 1;
  std::uint32_t block_bytes = 0;
  block::GgufFileTypes files = {};
};

// Return null for a type that is not known here.
[[nodiscard]] const TensorType* find_type(std::uint32_t number) noexcept;
[[nodiscard]] const TensorType* find_type(DType dtype) noexcept;
[[nodiscard]] const TensorType* find_type(std::string_view name) noexcept;
// By TensorInfo::foreign_dtype, or by its DType if that is empty.
[[nodiscard]] const TensorType* find_type(DType dtype, std::string_view foreign_dtype) noexcept;

// A type of a later ggml, such as "type 42": its tensors are copied, and nothing else is known about it.
[[nodiscard]] std::string unknown_type_name(std::uint32_t number);

// Returns ggml's number for a type, unknown ones included; nullopt: it is no type of GGUF.
[[nodiscard]] std::optional<std::uint32_t> type_number(DType dtype, std::string_view foreign_dtype) noexcept;

}  // namespace tensorcast::formats::gguf
