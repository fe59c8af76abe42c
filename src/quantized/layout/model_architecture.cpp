// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/model_architecture.hpp"

#include <algorithm>

#include "quantized/layout/config.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::size_t most_models = 64;  // in one configuration
constexpr std::size_t deepest_value = 64;

// The keys of what sentence-transformers writes beside a Dense module, whose weight it reads itself.
constexpr std::string_view dense_keys = "in_features out_features activation_function";

// Gathers the values of "model_type", that of the root first, and counts the keys of a Dense module in the root.
class ModelTypes final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return false; }
  bool string(string_t& value) override {
    if (key_ == "model_type") (depth_ == 1 ? root : parts).push_back(value);
    key_.clear();
    return parts.size() < most_models;
  }
  bool key(string_t& key) override {
    if (depth_ == 1 && lists(dense_keys, key)) ++dense;
    key_ = std::move(key);
    return true;
  }
  bool start_object(std::size_t /*size*/) override { return ++depth_ < deepest_value; }
  bool start_array(std::size_t /*size*/) override {
    key_.clear();
    return ++depth_ < deepest_value;
  }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const Json::exception& /*error*/) override {
    return false;
  }

  std::vector<std::string> root, parts;
  std::size_t dense = 0;

 private:
  bool leave() {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  std::string key_;
};

// Whether some part of a name matches a word whose dots match any character.
bool has_part(std::string_view name, std::string_view word) {
  const auto is_same = [](char in_name, char in_word) { return in_word == '.' || in_name == in_word; };
  return !std::ranges::search(name, word, is_same).empty();
}

bool has_any_part(std::string_view name, std::string_view list) {
  return std::ranges::any_of(list_words(list), [&](std::string_view word) { return has_part(name, word); });
}

}  // namespace

ModelArchitecture ModelArchitecture::of(std::span<const ConfigText> texts) {
  ModelArchitecture model;
  ModelTypes types;
  for (const ConfigText& config : texts) {
    if (config.name == "config.json") Json::sax_parse(with_finite_numbers(config.text), &types);
  }
  if (!types.root.empty()) model.model_type_ = types.root.front();
  model.is_dense_module_ = types.root.empty() && types.dense == list_words(dense_keys).size();
  for (const std::vector<std::string>* list : {&types.root, &types.parts}) {
    for (const std::string& type : *list) {
      const Architecture* row = find_architecture(type);
      if (row != nullptr && std::ranges::find(model.rows_, row) == model.rows_.end()) model.rows_.push_back(row);
    }
  }
  return model;
}

std::string_view ModelArchitecture::keeps_float32(std::string_view tensor, DType to) const {
  if (!is_castable(to) || family(to) != Family::floating || bit_width(to) >= 32) return {};
  for (const Architecture* row : rows_) {
    const bool stays =
        has_any_part(tensor, row->float32) || (to != DType::bfloat16 && has_any_part(tensor, row->float32_in_float16));
    if (stays) return row->model_type;
  }
  return {};
}

std::vector<std::string> ModelArchitecture::tied_heads() const {
  std::vector<std::string> heads = {"lm_head"};
  for (const Architecture* row : rows_) {
    for (const std::string_view head : list_words(row->tied_heads)) {
      if (std::ranges::find(heads, head) == heads.end()) heads.emplace_back(head);
    }
  }
  return heads;
}

bool ModelArchitecture::is_conv1d(std::string_view module) const {
  const std::string_view last = module.substr(module.rfind('.') + 1);
  return std::ranges::any_of(rows_, [&](const Architecture* row) { return lists(row->conv1d, last); });
}

bool ModelArchitecture::reads_weight(std::string_view module) const {
  const auto is_end = [&](std::string_view word) {
    return word == "*" || module == word || (module.ends_with(word) && module[module.size() - word.size() - 1] == '.');
  };
  return std::ranges::any_of(
      rows_, [&](const Architecture* row) { return std::ranges::any_of(list_words(row->reads_weight), is_end); });
}

}  // namespace tensorcast::quantized
