// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/config.hpp"

#include <algorithm>
#include <array>

#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/layout/description_json.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto size_keys = std::to_array<std::string_view>({"bits", "w_bit", "group_size", "q_group_size",
                                                            "config_groups", "weight_block_size", "load_in_4bit",
                                                            "load_in_8bit", "quant_algo", "format", "qformat_weight"});

bool describes(const Json& section) {
  if (!section.is_object() || section.empty()) return false;
  if (!text_in(section, "quant_method").empty() || !text_in(section, "method").empty()) return true;
  return std::ranges::any_of(size_keys, [&](std::string_view key) {
    const auto found = section.find(key);
    return found != section.end() && !found->is_null() && *found != false && *found != "";
  });
}

// The method of a section that names none, from where it stands and what it has.
std::string method_of(const Json& section, std::string_view key, std::string_view file) {
  std::string method = usual_method(text_in(section, "quant_method"));
  if (method.empty() && section.contains("method")) method = usual_method(text_in(section, "method"));  // Nunchaku's
  if (!method.empty()) return method;
  if (section.contains("qformat_weight")) return "mistral";
  if (file == "hf_quant_config.json" || section.contains("quant_algo")) return "modelopt";
  if (section.contains("config_groups")) return "compressed-tensors";
  if (key == "quantization" && section.contains("group_size")) return "mlx";
  if (is_true(section, "load_in_4bit") || is_true(section, "load_in_8bit")) return "bitsandbytes";
  if (section.contains("w_bit") || section.contains("q_group_size") || file == "quant_config.json") return "awq";
  if (file == "quantize_config.json") return "gptq";
  return method;
}

std::int64_t size_of(const Json& value, std::int64_t least) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  if (!value.is_number_integer()) return not_a_size;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) return not_a_size;
  const auto size = value.get<std::int64_t>();
  return size < least || size > most ? not_a_size : size;
}

// What is no JSON becomes a description of no type, which is refused.
Json torchao_description(const Json& text) {
  Result<Json> parsed =
      text.is_string() ? parse_description(text.get_ref<const std::string&>(), KeptValues::all) : Json::object();
  return parsed ? *std::move(parsed) : Json::object();
}

}  // namespace

void for_each_section(Json& config, const std::function<void(Json section, std::string_view key)>& visit, int depth) {
  if (!config.is_object()) return;
  for (const std::string_view key : section_keys) {
    const auto found = config.find(key);
    if (found == config.end()) continue;
    Json section = std::move(*found);
    if (section.is_object() && object_in(section, "quantization_config") != nullptr) {
      // compressed-tensors wrote one into another, beside an empty sparsity_config.
      Json inner = std::move(section["quantization_config"]);
      if (section.contains("sparsity_config")) inner["sparsity_config"] = std::move(section["sparsity_config"]);
      section = std::move(inner);
    }
    visit(std::move(section), key);
  }
  for (auto& [key, value] : config.items()) {
    const bool is_inner = !contains(section_keys, key) && is_inner_config(key);
    if (depth < deepest_config && is_inner) for_each_section(value, visit, depth + 1);
  }
}

std::string usual_method(std::string_view name) {
  std::string method = lower_case(name);
  if (method == "compressed_tensors") return "compressed-tensors";
  if (method == "auto_round" || method == "intel/auto-round") return "auto-round";
  return method;
}

std::string with_finite_numbers(std::string_view text) {
  constexpr auto words = std::to_array<std::string_view>({"NaN", "-Infinity", "Infinity"});
  std::string plain(text);
  bool in_string = false;
  for (std::size_t at = 0; at < plain.size(); ++at) {
    if (plain[at] == '"') in_string = !in_string;
    if (in_string) {
      at += plain[at] == '\\' ? 1 : 0;
      continue;
    }
    for (const std::string_view word : words) {
      if (std::string_view(plain).substr(at, word.size()) == word) plain.replace(at, word.size(), word.size(), '1');
    }
  }
  return plain;
}

std::vector<Description> read_descriptions(std::span<const ConfigText> texts) {
  std::vector<Description> found;
  for (const ConfigText& config : texts) {
    const bool is_config = config.name == "config.json";
    Result<Json> parsed = parse_description(config.text, is_config ? KeptValues::sections : KeptValues::all);
    if (!parsed || !parsed->is_object()) continue;
    Json& json = *parsed;
    if (config.name == "_quantization_metadata") {
      found.push_back({.source = std::string(metadata_source), .method = "comfyui", .section = std::move(json)});
      continue;
    }
    if (config.name == torchao_text) {
      for (Json& description : json) description = torchao_description(description);
      found.push_back({.source = std::string(metadata_source), .method = "torchao", .section = std::move(json)});
      continue;
    }
    const auto add = [&found](const std::string& source, Json section, std::string_view key, std::string_view file) {
      if (!describes(section)) return;
      std::string method = method_of(section, key, file);
      found.push_back({.source = source, .method = std::move(method), .section = std::move(section)});
    };
    if (config.name == "quantization_config") {
      add(std::string(metadata_source), std::move(json), config.name, "");
      continue;
    }
    const std::size_t before = found.size();
    for_each_section(
        json, [&](Json section, std::string_view key) { add(config.name, std::move(section), key, config.name); });
    const bool own_file = config.name == "quantize_config.json" || config.name == "quant_config.json";
    if (found.size() == before && own_file) add(config.name, std::move(json), "", config.name);
  }
  const bool in_file = std::ranges::any_of(found, [](const Description& one) {
    const Json* const producer = object_in(one.section, "producer");  // which has no version if this library wrote it
    return one.source == metadata_source && producer != nullptr && producer->contains("version");
  });
  for (Description& description : found) description.is_in_file = in_file;
  return found;
}

std::vector<std::string> unquantized_in(const Json& section) {
  std::vector<std::string> entries;
  for (const std::string_view key : unquantized_lists) {
    for (std::string& entry : texts_in(section, key)) entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<std::string> targets_in(const Json& section) {
  std::vector<std::string> targets;
  const Json* const groups = object_in(section, "config_groups");
  if (groups == nullptr) return targets;
  for (const Json& group : *groups) {
    if (!group.is_object()) continue;
    for (std::string& target : texts_in(group, "targets")) targets.push_back(std::move(target));
  }
  return targets;
}

std::optional<std::int64_t> size_in(const Json& section, std::string_view key, std::int64_t least) {
  const auto found = section.find(key);
  if (found == section.end() || found->is_null()) return std::nullopt;
  return size_of(*found, least);
}

std::vector<std::int64_t> sizes_in(const Json& section, std::string_view key, std::int64_t least) {
  std::vector<std::int64_t> sizes;
  const auto found = section.find(key);
  if (found == section.end() || !found->is_array()) return sizes;
  for (const Json& value : *found) sizes.push_back(size_of(value, least));
  return sizes;
}

std::string text_in(const Json& section, std::string_view key) {
  const auto found = section.find(key);
  return found != section.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_true(const Json& section, std::string_view key, bool otherwise) {
  const auto found = section.find(key);
  return found != section.end() && found->is_boolean() ? found->get<bool>() : otherwise;
}

const Json* object_in(const Json& section, std::string_view key) {
  const auto found = section.find(key);
  return found != section.end() && found->is_object() ? &*found : nullptr;
}

std::vector<std::string> texts_in(const Json& section, std::string_view key) {
  std::vector<std::string> texts;
  const auto found = section.find(key);
  if (found == section.end() || !found->is_array()) return texts;
  for (const Json& text : *found) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

}  // namespace tensorcast::quantized
