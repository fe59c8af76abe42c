// SPDX-License-Identifier: Apache-2.0
// JSON of a description as values in memory, which are in proportion to its bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

// Which values of a document are kept.
enum class KeptValues {
  all,
  sections,  // those of descriptions, in the root and in configurations inside it
};

// Where Hugging Face, MLX and ModelOpt put the description of a model: "quantization_config".
inline constexpr std::string_view section_keys[] = {"quantization_config", "compression_config", "quantization"};
// Whether a member is a configuration inside another, such as text_config.
[[nodiscard]] bool is_inner_config(std::string_view key) noexcept;
inline constexpr int deepest_config = 3;  // configurations that are looked at in one another

// Takes NaN and infinities, as Python's json writes them, for 1. Memory: six times the text, or 32 MiB.
// Errors: parse (no JSON, or deeper than 64 levels), unsupported (more values than fit into that memory, or more than
// 64 sections).
[[nodiscard]] Result<nlohmann::json> parse_description(std::string_view text, KeptValues kept);

}  // namespace tensorcast::quantized
