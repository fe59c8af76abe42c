// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/quantization_claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "io/input_file.hpp"
#include "io/path_name.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/description_json.hpp"

namespace tensorcast::file_conversion {
namespace {

using Json = nlohmann::json;

// Hugging Face's and MLX's, ModelOpt's, GPTQ's and AWQ's, and Mistral's.
constexpr auto claiming_files = std::to_array<std::string_view>(
    {"config.json", "hf_quant_config.json", "quantize_config.json", "quant_config.json", "params.json"});
constexpr auto methods = std::to_array<std::string_view>(
    {"quant_method", "method", "qformat_weight", "quant_algo", "kv_cache_quant_algo", "format", "quantization_status"});
constexpr auto sizes = std::to_array<std::string_view>({"bits", "w_bit", "group_size", "q_group_size", "config_groups",
                                                        "weight_block_size", "load_in_4bit", "load_in_8bit"});
// ComfyUI's; and what a writer may copy from config.json.
constexpr auto metadata_keys = std::to_array<std::string_view>({"_quantization_metadata", "quantization_config"});

// torchao lists the tensors, and describes each under its name, also those that are not quantized.
constexpr std::string_view torchao_names = "tensor_names";

bool is_of_torchao(const std::pair<std::string, std::string>& entry) {
  return entry.second.starts_with('{') && entry.second.find(R"("_type")") != std::string::npos;
}

// Whether torchao wrote the metadata, and some tensor is one of its subclasses.
bool has_torchao(const formats::Metadata& metadata) {
  const auto is_quantized = [](const auto& entry) {
    return is_of_torchao(entry) && entry.second.find(R"("_tensor_data_names")") != std::string::npos;
  };
  return std::ranges::any_of(metadata, [](const auto& entry) { return entry.first == torchao_names; }) &&
         std::ranges::any_of(metadata, is_quantized);
}

std::string torchao_descriptions(const formats::Metadata& metadata) {
  Json texts = Json::object();
  for (const auto& entry : metadata) {
    if (is_of_torchao(entry)) texts[entry.first] = entry.second;
  }
  return texts.dump(-1, ' ', true, Json::error_handler_t::replace);
}

Json parsed(std::string_view text) { return Json::parse(text, nullptr, false); }

// Returns the method that a section names, "" if it is a quantization without a name; nullopt if it is none.
std::optional<std::string> method_of(const Json& section) {
  if (!section.is_object()) return std::nullopt;
  for (const std::string_view key : methods) {
    const auto found = section.find(key);
    if (found != section.end() && found->is_string() && !found->get_ref<const std::string&>().empty()) {
      return found->get<std::string>();
    }
  }
  for (const std::string_view key : sizes) {
    const auto found = section.find(key);
    if (found != section.end() && !found->is_null() && *found != false) return std::string();
  }
  return std::nullopt;
}

std::string claim(std::string_view source, const std::string& method) {
  if (method.empty()) return fmt::format("{} says that the model is quantized", source);
  return fmt::format("{} names the quantization \"{}\"", source, method);
}

}  // namespace

bool may_claim_quantization(std::string_view file_name) {
  return std::ranges::find(claiming_files, file_name) != claiming_files.end();
}

bool may_describe(std::string_view file_name, std::string_view stem) {
  return may_claim_quantization(file_name) && (file_name == "params.json") == stem.starts_with("consolidated");
}

std::string claim_of_text(std::string_view file_name, std::string_view text) {
  using quantized::KeptValues;
  const bool is_config = file_name == "config.json";
  Result<Json> parsed = quantized::parse_description(text, is_config ? KeptValues::sections : KeptValues::all);
  if (!parsed) {
    const Error& error = parsed.error();
    return error.code == ErrorCode::unsupported ? fmt::format("{} is not read: {}", file_name, error.message) : "";
  }
  std::optional<std::string> method;
  quantized::for_each_section(*parsed, [&](const Json& section, std::string_view /*key*/) {
    if (!method) method = method_of(section);
  });
  const bool is_quantizers = file_name == "quantize_config.json" || file_name == "quant_config.json";
  if (!method && is_quantizers) method = method_of(*parsed);
  return method ? claim(file_name, *method) : std::string();
}

std::string claim_of_metadata(const formats::Metadata& metadata) {
  if (has_torchao(metadata)) return claim(quantized::metadata_source, "torchao");
  for (const auto& [key, value] : metadata) {
    if (std::ranges::find(metadata_keys, key) == metadata_keys.end()) continue;
    const Json section = parsed(value);
    if (!section.is_object() || section.empty()) continue;
    const std::optional<std::string> method = method_of(section);
    if (method || key == metadata_keys[0]) return claim(quantized::metadata_source, method.value_or(""));
  }
  return {};
}

std::vector<quantized::ConfigText> config_texts_beside(const std::string& path) {
  std::vector<quantized::ConfigText> texts;
  const std::string stem = std::filesystem::path(path).stem().string();
  for (const std::string_view name : claiming_files) {
    if (!may_describe(name, stem)) continue;
    const std::string beside = (std::filesystem::path(path).parent_path() / name).string();
    std::error_code ignored;
    if (!io::is_url(path) && !std::filesystem::is_regular_file(beside, ignored)) continue;
    const Result<io::InputFile> file = io::InputFile::open(beside);
    if (!file || file->size() > quantized::max_config_bytes) continue;
    std::string text(file->size(), '\0');
    if (!file->read(0, std::as_writable_bytes(std::span(text)))) continue;
    texts.push_back({.name = std::string(name), .text = std::move(text)});
  }
  return texts;
}

void add_config_texts(const formats::Metadata& metadata, std::vector<quantized::ConfigText>& texts) {
  for (const auto& [key, value] : metadata) {
    if (std::ranges::find(metadata_keys, key) != metadata_keys.end()) texts.push_back({.name = key, .text = value});
  }
  if (!has_torchao(metadata)) return;
  texts.push_back({.name = std::string(quantized::torchao_text), .text = torchao_descriptions(metadata)});
}

void add_accepted(const std::vector<std::string>& words, std::vector<quantized::ConfigText>& texts) {
  if (words.empty()) return;
  texts.push_back({.name = std::string(quantized::accepted_words), .text = fmt::format("{}", fmt::join(words, "\n"))});
}

void remove_config_texts(formats::Metadata& metadata) {
  if (has_torchao(metadata)) {
    std::erase_if(metadata, [](const auto& entry) { return entry.first == torchao_names || is_of_torchao(entry); });
  }
  std::erase_if(metadata,
                [](const auto& entry) { return std::ranges::find(metadata_keys, entry.first) != metadata_keys.end(); });
}

void add_config_text(const quantized::WrittenConfig& config, formats::Metadata& metadata) {
  if (!config.metadata_key.empty()) {
    metadata.emplace_back(config.metadata_key, config.metadata_text);
  } else if (!config.section.empty()) {
    metadata.emplace_back(std::string(metadata_keys[1]), config.section);
  }
}

std::string claim_beside(const std::string& path) {
  for (const quantized::ConfigText& config : config_texts_beside(path)) {
    if (std::string found = claim_of_text(config.name, config.text); !found.empty()) return found;
  }
  return {};
}

}  // namespace tensorcast::file_conversion
