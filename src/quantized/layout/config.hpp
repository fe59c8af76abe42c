// SPDX-License-Identifier: Apache-2.0
// What the files of a model say about its quantization: config.json, hf_quant_config.json and the like, metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quantized/layout/config_text.hpp"

namespace tensorcast::quantized {

using Json = nlohmann::json;

// One description, of the whole model.
struct Description {
  std::string source;       // for messages: "config.json"
  std::string method;       // in lower case: "fp8", "compressed-tensors", "modelopt"; "" if it has no name
  Json section;             // an object
  bool is_in_file = false;  // ModelOpt put one into the metadata of the tensors' file
};

// The name that this library has for a method, whose case and dashes files choose: "compressed-tensors".
[[nodiscard]] std::string usual_method(std::string_view name);

// Replaces NaN and infinities, which Python's json writes and JSON does not have, by numbers of the same length.
[[nodiscard]] std::string with_finite_numbers(std::string_view text);

// Reads all descriptions, nearest to the root first. Text that parse_description() refuses describes nothing. A
// configuration without a method or sizes, such as an empty one, is no description.
[[nodiscard]] std::vector<Description> read_descriptions(std::span<const ConfigText> texts);

// Calls `visit` for the sections of a configuration, and then for those of configurations inside such as text_config.
// Takes them out of it, so that a large one is in memory once.
void for_each_section(Json& config, const std::function<void(Json section, std::string_view key)>& visit,
                      int depth = 0);

// Members of a section that list modules that are not quantized: names, and patterns of some tools.
inline constexpr std::string_view unquantized_lists[] = {
    "ignore", "exclude_modules", "exclude", "modules_to_not_convert", "llm_int8_skip_modules", "ignored_layers"};
// Returns the entries of all these lists.
[[nodiscard]] std::vector<std::string> unquantized_in(const Json& section);
// Returns the targets of all config_groups.
[[nodiscard]] std::vector<std::string> targets_in(const Json& section);

// Returns a whole number of a section: nullopt if it is not there or null. A number that is not whole, or not from
// `least` to 2^31 - 1, gives -2 to the power of 62, which fits no tensor.
inline constexpr std::int64_t not_a_size = std::int64_t{-1} << 62;
[[nodiscard]] std::optional<std::int64_t> size_in(const Json& section, std::string_view key, std::int64_t least = 1);
// The same of each value of an array; nothing if it is none.
[[nodiscard]] std::vector<std::int64_t> sizes_in(const Json& section, std::string_view key, std::int64_t least = 1);
// Returns text of a section, "" if there is none.
[[nodiscard]] std::string text_in(const Json& section, std::string_view key);
[[nodiscard]] bool is_true(const Json& section, std::string_view key, bool otherwise = false);
// Returns a member that is an object; null otherwise.
[[nodiscard]] const Json* object_in(const Json& section, std::string_view key);
// Returns the strings of an array.
[[nodiscard]] std::vector<std::string> texts_in(const Json& section, std::string_view key);

}  // namespace tensorcast::quantized
