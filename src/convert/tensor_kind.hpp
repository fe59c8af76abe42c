// What the names of tensors tell beside tensor_kind().
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <string_view>

namespace tensorcast::file_conversion {

// Returns false for vectors, and for biases, tables and tokens of layers that have several rows, as of experts.
[[nodiscard]] bool is_matrix(std::string_view tensor, std::size_t rank) noexcept;

// Returns the part of a name that names a tower of a multimodal model, or a projector beside one: "vision_tower" of
// "model.vision_tower.layers.0.fc1.weight". Empty: the tensor or module is of neither.
[[nodiscard]] std::string_view tower_of(std::string_view name) noexcept;

}  // namespace tensorcast::file_conversion
