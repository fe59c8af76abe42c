// SPDX-License-Identifier: Apache-2.0
// The element types of PyTorch and of NumPy arrays in its checkpoints.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast::formats::pytorch {

struct TorchType {
  std::string_view name;     // torch.NAME
  std::string_view storage;  // torch.STORAGE; "" if untyped storages hold it
  std::string_view numpy;    // kind and bytes of NumPy's descriptor; "" if there is none
  DType dtype = DType::undefined;
  std::string_view foreign;      // TensorInfo::foreign_dtype
  std::uint32_t item_bytes = 1;  // of an item of the storage
  std::uint32_t word_bytes = 1;  // of what the other byte order swaps
  std::uint32_t packed = 1;      // elements in an item
};

[[nodiscard]] inline bool is_complex(const TorchType& type) noexcept { return type.name.starts_with("complex"); }

// Return null for an unknown type.
[[nodiscard]] const TorchType* find_torch_type(std::string_view name) noexcept;        // "float32"
[[nodiscard]] const TorchType* find_storage_type(std::string_view storage) noexcept;   // "FloatStorage"
[[nodiscard]] const TorchType* find_numpy_type(std::string_view descriptor) noexcept;  // "f4"

}  // namespace tensorcast::formats::pytorch
