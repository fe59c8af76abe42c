// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/config_file.hpp"

#include <algorithm>
#include <array>

#include "checkpoint/source/json_text.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::string_view torch_prefix = "torch.";

bool names_a_float(std::string_view word) {
  constexpr auto words =
      std::to_array<std::string_view>({"float16", "bfloat16", "float32", "float64", "half", "float", "double"});
  if (word.starts_with(torch_prefix)) word.remove_prefix(torch_prefix.size());
  return std::ranges::find(words, word) != words.end() || word.starts_with("float8_");
}

bool is_inner_config(std::string_view key) {
  if (key == "quantization_config" || key == "compression_config") return false;
  return key.ends_with("config") || key.ends_with("_cfg") || key == "encoder" || key == "decoder" ||
         key == "generator" || key == "question_encoder";
}

bool is_section(std::string_view key) {
  return key == "quantization_config" || key == "compression_config" || key == "quantization";
}

// Descriptions stand at the top, and in configs inside.
bool is_description(const JsonPath& keys, const JsonValue& value) {
  if (!is_section(keys.back()) || value.kind != JsonKind::object) return false;
  return std::all_of(keys.begin(), keys.end() - 1, is_inner_config);
}

// Lists of modules that are not quantized.
bool is_module_list(std::string_view key) {
  return key == "modules_to_not_convert" || key == "ignore" || key == "exclude_modules" ||
         key == "llm_int8_skip_modules" || key == "ignored_layers";
}

// The name of such a list in a description that has none.
std::string list_key(std::string_view description) {
  if (description.find("\"compressed-tensors\"") != std::string_view::npos) return "ignore";
  if (description.find("\"modelopt\"") != std::string_view::npos) return "ignore";
  if (description.find("\"bitsandbytes\"") != std::string_view::npos) return "llm_int8_skip_modules";
  if (description.find("\"quant_method\"") == std::string_view::npos) return "exclude_modules";
  return "modules_to_not_convert";
}

// Removes a member of an object, with its key and one comma.
JsonEdit removal(std::string_view text, std::string_view key, const JsonValue& value) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t colon = text.find_last_of(':', value.begin);
  const std::size_t key_end = text.find_last_of('"', colon);
  std::size_t begin = text.find_last_of('"', key_end - 1);
  begin = std::min(begin, key_end - std::min(key_end, key.size()) - 1);
  std::size_t end = value.begin + value.text.size();
  const std::size_t next = text.find_first_not_of(space, end);
  if (next != std::string_view::npos && text[next] == ',') {
    end = std::min(text.find_first_not_of(space, next + 1), text.size());
  } else {
    const std::size_t before = text.find_last_not_of(space, begin - 1);
    if (before != std::string_view::npos && text[before] == ',') begin = before;
  }
  return {.begin = begin, .length = end - begin, .text = ""};
}

}  // namespace

bool is_loadable(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 || dtype == DType::float64;
}

Result<std::string> with_dtype(std::string_view text, DType dtype) {
  std::vector<JsonEdit> edits;
  TRY(visit_json(text, [&](const JsonPath& keys, const JsonValue& value) {
    if (keys.empty() || value.kind != JsonKind::string) return;
    if (keys.back() != "torch_dtype" && keys.back() != "dtype") return;
    if (!std::all_of(keys.begin(), keys.end() - 1, is_inner_config)) return;
    const std::string word = unquoted(value.text);
    if (!names_a_float(word)) return;
    const std::string prefix(word.starts_with(torch_prefix) ? torch_prefix : "");
    edits.push_back(
        {.begin = value.begin, .length = value.text.size(), .text = json_quoted(prefix + std::string(name(dtype)))});
  }));
  return edited(text, std::move(edits));
}

Result<std::string> without_quantization(std::string_view text) {
  std::vector<JsonEdit> edits;
  TRY(visit_json(text, [&](const JsonPath& keys, const JsonValue& value) {
    if (keys.empty() || !is_description(keys, value)) return;
    edits.push_back(removal(text, keys.back(), value));
  }));
  return edited(text, std::move(edits));
}

Result<std::string> with_section(std::string_view text, std::string_view section) {
  std::string plain = TRY(without_quantization(text));
  const std::size_t end = plain.find_last_of('}');
  const std::size_t last = end == std::string::npos ? end : plain.find_last_not_of(" \t\r\n", end - 1);
  if (last == std::string::npos) return parse_error("it is not an object of JSON");
  const bool empty = plain[last] == '{';
  plain.insert(last + 1, (empty ? "\n  " : ",\n  ") + json_quoted("quantization_config") + ": " + std::string(section) +
                             (empty ? "\n" : ""));
  return plain;
}

bool names_modules(std::string_view method) {
  constexpr auto methods =
      std::to_array<std::string_view>({"fp8", "mxfp8", "mxfp4", "compressed-tensors", "modelopt", "metal",
                                       "bitsandbytes", "bitsandbytes_4bit", "bitsandbytes_8bit", "awq"});
  return std::ranges::find(methods, method) != methods.end();
}

Result<std::string> with_unquantized(std::string_view text, std::span<const std::string> modules) {
  std::vector<JsonEdit> edits;
  std::string names;
  for (const std::string& module : modules) {
    // Loaders match parts of names: the root's, "", is a part of all.
    if (!module.empty()) names += (names.empty() ? "" : ", ") + json_quoted(module);
  }
  if (names.empty()) return std::string(text);
  std::vector<std::size_t> listed;  // where descriptions begin that have a list
  TRY(visit_json(text, [&](const JsonPath& keys, const JsonValue& value) {
    const bool inside = keys.size() >= 2 && is_section(keys[keys.size() - 2]);
    if (inside && value.kind == JsonKind::array && is_module_list(keys.back())) {
      const bool empty = value.text.find_first_not_of(" \t\r\n", 1) == value.text.size() - 1;
      edits.push_back({.begin = value.begin + 1, .length = 0, .text = names + (empty ? "" : ", ")});
      listed.push_back(value.begin);
    }
    if (keys.empty() || !is_description(keys, value)) return;
    const auto own = [&](std::size_t at) { return at > value.begin && at < value.begin + value.text.size(); };
    if (std::ranges::any_of(listed, own)) return;
    const std::string key = list_key(value.text);
    edits.push_back({.begin = value.begin + 1, .length = 0, .text = json_quoted(key) + ": [" + names + "], "});
  }));
  return edited(text, std::move(edits));
}

Result<std::string> rewritten_config(std::string_view text, const PlannedConfig& config) {
  Result<std::string> rewritten = std::string(text);
  if (config.dtype != DType::undefined) rewritten = with_dtype(*rewritten, config.dtype);
  if (rewritten && !config.section.empty()) rewritten = with_section(*rewritten, config.section);
  if (rewritten && config.unquantized) rewritten = without_quantization(*rewritten);
  if (rewritten && !config.decoded.empty()) rewritten = with_unquantized(*rewritten, config.decoded);
  return rewritten;
}

}  // namespace tensorcast::checkpoint
