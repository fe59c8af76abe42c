// SPDX-License-Identifier: Apache-2.0
// What the files of a model say about its quantization.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "quantized/layout/config_text.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::file_conversion {

// Reports whether a file with this name, without its folder, may say that a model is quantized.
[[nodiscard]] bool may_claim_quantization(std::string_view file_name);

// The same, of a model whose files begin with `stem`: Mistral's folders hold it twice, and consolidated.safetensors is
// described by params.json alone.
[[nodiscard]] bool may_describe(std::string_view file_name, std::string_view stem);

// Returns what such a file says, such as `config.json names the quantization "fp8"`; "" if it says nothing, or is not
// JSON. Only a configuration with a method or sizes counts: an empty one, or one with a type alone, claims nothing.
[[nodiscard]] std::string claim_of_text(std::string_view file_name, std::string_view text);

// The same, of the metadata inside a file of tensors.
[[nodiscard]] std::string claim_of_metadata(const formats::Metadata& metadata);

// The same, of the configuration files that stand beside a file of tensors. Files that cannot be read claim nothing.
[[nodiscard]] std::string claim_beside(const std::string& path);

// The texts of the configuration files that stand beside a file of tensors, without those that cannot be read; and of
// the metadata inside.
[[nodiscard]] std::vector<quantized::ConfigText> config_texts_beside(const std::string& path);
void add_config_texts(const formats::Metadata& metadata, std::vector<quantized::ConfigText>& texts);
// Adds the keys and ends of tensors' names that the user takes as harmless.
void add_accepted(const std::vector<std::string>& words, std::vector<quantized::ConfigText>& texts);
// Removes what describes the quantization of a file whose layers are decoded.
void remove_config_texts(formats::Metadata& metadata);
// Adds the configuration of written layers to the metadata of a file that has no config.json beside it.
void add_config_text(const quantized::WrittenConfig& config, formats::Metadata& metadata);

}  // namespace tensorcast::file_conversion
