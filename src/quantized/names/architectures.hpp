// SPDX-License-Identifier: Apache-2.0
// What transformers' models say of their modules, by the model_type of config.json.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace tensorcast::quantized {

// Lists are words between spaces. Models that the table lacks say nothing of these.
struct Architecture {
  std::string_view model_type;
  // Modules whose weight is that of an embedding, and mostly in no file, beside "lm_head".
  std::string_view tied_heads = {};
  // Parts of names of tensors that stay in float32 in models of fewer bits, and in models of float16 alone; a dot
  // matches any character.
  std::string_view float32 = {};
  std::string_view float32_in_float16 = {};
  std::string_view conv1d = {};        // modules whose weight lies as [inputs, outputs]
  std::string_view reads_weight = {};  // modules whose weight the model reads itself; "*": all
};

// In the order of model_type. The rows are in architecture_table.cpp, which scripts/make/architectures writes.
[[nodiscard]] std::span<const Architecture> all_architectures() noexcept;
// Null: the table lacks it.
[[nodiscard]] const Architecture* find_architecture(std::string_view model_type) noexcept;
// The words of a list.
[[nodiscard]] std::vector<std::string_view> list_words(std::string_view list);
// Whether a list has the word.
[[nodiscard]] bool lists(std::string_view list, std::string_view word);

}  // namespace tensorcast::quantized
