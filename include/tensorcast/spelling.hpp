// SPDX-License-Identifier: Apache-2.0
// Component files. Quantized weights as the tensors of a checkpoint: the names, types and packing of the tool whose
// spelling it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/block.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// A tensor of a layer, with its memory.
struct SpelledTensor {
  std::string suffix;  // of the module's name: "weight_packed" for "model.layers.0.mlp.up_proj.weight_packed"
  DType dtype = DType::undefined;
  Shape shape = {};
  std::vector<std::byte> bytes = {};
};

// The spellings that spell() writes.
[[nodiscard]] TENSORCAST_API std::vector<std::string_view> written_spellings();

// Writes a weight as one of written_spellings() has it, such as "compressed-tensors", "deepseek", "modelopt", "gptq",
// "awq" or "gguf"; empty: as the scheme's default says. A tensor scale becomes its reciprocal, rounded to float32, if
// the spelling stores the other one. `weights` is the type that the recipe computed in: compressed-tensors has float32
// scales in it, where the recipe rounded them to it; undefined: float32. Errors: invalid_argument: no such spelling;
// unsupported: the spelling does not have such a weight.
[[nodiscard]] TENSORCAST_API Result<std::vector<SpelledTensor>> spell(const QuantizedTensor& weight,
                                                                      std::string_view spelling = {},
                                                                      DType weights = DType::undefined);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
