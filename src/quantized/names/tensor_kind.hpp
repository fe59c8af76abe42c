// SPDX-License-Identifier: Apache-2.0
// What the names of tensors tell beside tensor_kind().
#pragma once

#include <cstddef>
#include <string_view>

namespace tensorcast::file_conversion {

// Returns false for vectors, and for biases, tables and tokens of layers that have several rows, as of experts.
[[nodiscard]] bool is_matrix(std::string_view tensor, std::size_t rank) noexcept;

// Whether a matrix is a parameter of its module other than "weight", such as attn.in_proj_weight: files of quantized
// models have no names for its scales. Experts in one tensor have more dimensions, and layouts of their own.
[[nodiscard]] bool is_other_parameter(std::string_view tensor, std::size_t rank) noexcept;

// Whether a module is a table of embeddings or a norm, whose matrix no layer multiplies. Not what is only inside or
// beside one, such as embed_vision.embedding_projection, patch_embedding or norm1.linear, which are linear layers in
// some models.
[[nodiscard]] bool is_table_or_norm(std::string_view module) noexcept;

// A tower of a multimodal model, or a projector beside one.
struct Tower {
  std::string_view part;  // of a name, "vision_tower" of "model.vision_tower.layers.0.fc1.weight"; "": there is none
  std::string_view kind;  // "vision tower", "audio tower" or "projector"
};
// Returns that of a tensor or a module.
[[nodiscard]] Tower tower_of(std::string_view name) noexcept;

}  // namespace tensorcast::file_conversion
