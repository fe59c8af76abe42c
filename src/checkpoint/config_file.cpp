#include "checkpoint/config_file.hpp"

#include <algorithm>
#include <array>

#include "checkpoint/json_text.hpp"

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

}  // namespace

bool is_loadable(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 || dtype == DType::float64;
}

Result<std::string> with_dtype(std::string_view text, DType dtype) {
  std::vector<JsonEdit> edits;
  Result<void> visited = visit_json(text, [&](const JsonPath& keys, const JsonValue& value) {
    if (keys.empty() || value.kind != JsonKind::string) return;
    if (keys.back() != "torch_dtype" && keys.back() != "dtype") return;
    if (!std::all_of(keys.begin(), keys.end() - 1, is_inner_config)) return;
    const std::string word = unquoted(value.text);
    if (!names_a_float(word)) return;
    const std::string prefix(word.starts_with(torch_prefix) ? torch_prefix : "");
    edits.push_back(
        {.begin = value.begin, .length = value.text.size(), .text = json_quoted(prefix + std::string(name(dtype)))});
  });
  if (!visited) return std::move(visited).error();
  return edited(text, std::move(edits));
}

}  // namespace tensorcast::checkpoint
