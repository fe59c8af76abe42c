// SPDX-License-Identifier: Apache-2.0
// The types of tensors in GGUF: ggml's numbers, names and block sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast::formats::gguf {

struct TensorType {
  std::uint32_t number = 0;
  std::string_view name;           // "Q4_K"
  DType dtype = DType::undefined;  // undefined: a block format, which is copied only
  std::uint32_t block_elements = 1;
  std::uint32_t block_bytes = 0;
};

// Return null for a type that ggml does not have.
[[nodiscard]] const TensorType* find_type(std::uint32_t number) noexcept;
[[nodiscard]] const TensorType* find_type(DType dtype) noexcept;
[[nodiscard]] const TensorType* find_type(std::string_view name) noexcept;

}  // namespace tensorcast::formats::gguf
