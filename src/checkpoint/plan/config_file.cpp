// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/config_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>

#include "checkpoint/source/json_tree.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/description_json.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::string_view torch_prefix = "torch.";

bool names_a_float(std::string_view word) {
  constexpr auto words =
      std::to_array<std::string_view>({"float16", "bfloat16", "float32", "float64", "half", "float", "double"});
  if (word.starts_with(torch_prefix)) word.remove_prefix(torch_prefix.size());
  return std::ranges::find(words, word) != words.end() || word.starts_with("float8_");
}

// Calls `visit` for the configuration and for those inside it.
void for_each_config(const JsonTree& tree, JsonTree::Node config, const std::function<void(JsonTree::Node)>& visit) {
  if (tree.kind(config) != JsonKind::object) return;
  visit(config);
  for (const JsonTree::Node member : tree.members(config)) {
    const std::string key = tree.key(member);
    if (!contains(quantized::section_keys, key) && quantized::is_inner_config(key))
      for_each_config(tree, member, visit);
  }
}

// Calls `visit` for the members of configurations.
void for_each_member(const JsonTree& tree, const std::function<void(JsonTree::Node, const std::string& key)>& visit) {
  for_each_config(tree, tree.root(), [&](JsonTree::Node config) {
    for (const JsonTree::Node member : tree.members(config)) visit(member, tree.key(member));
  });
}

// Returns the descriptions of the quantization, at the top and in configurations inside.
std::vector<JsonTree::Node> descriptions_of(const JsonTree& tree) {
  std::vector<JsonTree::Node> found;
  for_each_member(tree, [&](JsonTree::Node member, const std::string& key) {
    if (contains(quantized::section_keys, key) && tree.kind(member) == JsonKind::object) found.push_back(member);
  });
  return found;
}

// Also removes what is no description, such as a text, where only one can be.
void remove_descriptions(JsonTree& tree) {
  for_each_member(tree, [&](JsonTree::Node member, const std::string& key) {
    const bool is_none = tree.text(member) == "null" || tree.text(member) == "false";
    const bool describes = key == "quantization" ? tree.kind(member) == JsonKind::object
                                                 : contains(quantized::section_keys, key) && !is_none;
    if (describes) tree.remove(member);
  });
}

bool is_module_list(std::string_view key) { return contains(quantized::unquantized_lists, key); }

// The name of the list of modules that are not quantized, in a description that has none.
std::string_view list_key(const JsonTree& tree, JsonTree::Node description) {
  std::string method;
  bool groups = false, bitsandbytes = false;
  for (const JsonTree::Node member : tree.members(description)) {
    const std::string key = tree.key(member);
    if (key == "quant_method" && tree.kind(member) == JsonKind::string) method = tree.string(member);
    groups = groups || key == "config_groups";
    bitsandbytes = bitsandbytes || ((key == "load_in_4bit" || key == "load_in_8bit") && tree.text(member) == "true");
  }
  if (!method.empty()) {
    const quantized::Method* const known = quantized::find_method(quantized::usual_method(method));
    return known == nullptr || known->list.empty() ? "modules_to_not_convert" : known->list;
  }
  if (groups) return "ignore";
  return bitsandbytes ? "llm_int8_skip_modules" : "exclude_modules";
}

Error no_list(const std::string& key, std::string_view value) {
  constexpr std::size_t most = 40;
  return parse_error(fmt::format("\"{}\" is {}, and must be a list of modules", key, value.substr(0, most)),
                     "correct it, or decode all layers");
}

// Adds modules to the lists of one description; to a new one if it has none. `names`: with quotes.
Result<void> add_unquantized(JsonTree& tree, JsonTree::Node description, const std::vector<std::string>& names) {
  const std::string_view own = list_key(tree, description);
  const std::string all = fmt::format("[{}]", fmt::join(names, ", "));
  bool listed = false;
  for (const JsonTree::Node member : tree.members(description)) {
    const std::string key = tree.key(member);
    if (!is_module_list(key)) continue;
    const bool is_null = tree.text(member) == "null";
    if (!is_null && tree.kind(member) != JsonKind::array) return no_list(key, tree.text(member));
    if (is_null) tree.replace(member, all);
    std::set<std::string_view> there;
    for (const JsonTree::Node element : tree.members(member)) there.insert(tree.text(element));
    for (const std::string& name : names) {
      if (!is_null && !there.contains(name)) tree.prepend_element(member, name);
    }
    listed = listed || !is_null || key == own;
  }
  if (!listed) tree.prepend(description, own, all);
  return {};
}

// Puts the new entries in the places of those of a list.
void rename_entries(JsonTree& tree, JsonTree::Node list, const file_conversion::NewEntries& renamed) {
  if (tree.kind(list) != JsonKind::array) return;
  for (const JsonTree::Node element : tree.members(list)) {
    if (tree.kind(element) != JsonKind::string) continue;
    const auto found = renamed.find(tree.string(element));
    if (found == renamed.end() || found->second.empty()) continue;
    std::vector<std::string> entries;
    for (const std::string& entry : found->second) entries.push_back(json_quoted(entry));
    tree.replace_element(element, std::move(entries));
  }
}

void rename_key(JsonTree& tree, JsonTree::Node member, const file_conversion::NewEntries& renamed) {
  const auto found = renamed.find(tree.key(member));
  if (found != renamed.end() && found->second.size() == 1) tree.rename(member, found->second.front());
}

void rename_modules(JsonTree& tree, JsonTree::Node description, const file_conversion::NewEntries& renamed) {
  for (const JsonTree::Node member : tree.members(description)) {
    const std::string key = tree.key(member);
    const bool is_object = tree.kind(member) == JsonKind::object;
    if (is_module_list(key)) {
      rename_entries(tree, member, renamed);
    } else if (is_object && key == "config_groups") {
      for (const JsonTree::Node group : tree.members(member)) {
        for (const JsonTree::Node of_group : tree.members(group)) {
          if (tree.key(of_group) == "targets") rename_entries(tree, of_group, renamed);
        }
      }
    } else if (is_object && file_conversion::has_modules_as_keys(key)) {
      for (const JsonTree::Node module : tree.members(member)) rename_key(tree, module, renamed);
    } else if (is_object || tree.text(member) == "true" || tree.text(member) == "false") {
      rename_key(tree, member, renamed);
    }
  }
}

// quantize_config.json of GPTQ and quant_config.json of AWQ are descriptions as a whole, as are entries of metadata.
bool is_description(std::string_view path) {
  const std::string name = last_component(std::string(path));
  return name == "quantize_config.json" || name == "quant_config.json" || name == "quantization_config" ||
         name == "_quantization_metadata";
}

std::vector<JsonTree::Node> descriptions_of(const JsonTree& tree, std::string_view file_name) {
  std::vector<JsonTree::Node> descriptions = descriptions_of(tree);
  const bool whole = is_description(file_name) && tree.kind(tree.root()) == JsonKind::object;
  if (descriptions.empty() && whole) descriptions.push_back(tree.root());
  return descriptions;
}

}  // namespace

bool is_loadable(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32 || dtype == DType::float64;
}

Result<std::string> with_dtype(std::string_view text, DType dtype) {
  JsonTree tree = TRY(JsonTree::parse(text));
  for_each_member(tree, [&](JsonTree::Node member, const std::string& key) {
    if (tree.kind(member) != JsonKind::string || (key != "torch_dtype" && key != "dtype")) return;
    const std::string word = tree.string(member);
    if (!names_a_float(word)) return;
    const std::string prefix(word.starts_with(torch_prefix) ? torch_prefix : "");
    tree.replace(member, json_quoted(prefix + std::string(name(dtype))));
  });
  return tree.changed();
}

Result<std::string> without_quantization(std::string_view text) {
  JsonTree tree = TRY(JsonTree::parse(text));
  remove_descriptions(tree);
  return tree.changed();
}

Result<std::string> with_section(std::string_view text, std::string_view section) {
  JsonTree tree = TRY(JsonTree::parse(text));
  if (tree.kind(tree.root()) != JsonKind::object) return parse_error("it is not an object of JSON");
  remove_descriptions(tree);
  for (const JsonTree::Node member : tree.members(tree.root())) {
    if (tree.key(member) == quantized::section_keys[0]) tree.remove(member);  // null, of a model that was not quantized
  }
  tree.append(tree.root(), quantized::section_keys[0], std::string(section));
  return tree.changed();
}

bool names_modules(std::string_view method) {
  const quantized::Method* const known = quantized::find_method(method);
  return known != nullptr && known->list_is_open;
}

Result<std::string> with_unquantized(std::string_view text, std::span<const std::string> modules,
                                     std::string_view file_name) {
  std::vector<std::string> names;
  for (const std::string& module : modules) {
    // Loaders match parts of names: the root's, "", is a part of all.
    if (!module.empty()) names.push_back(json_quoted(module));
  }
  if (names.empty()) return std::string(text);
  JsonTree tree = TRY(JsonTree::parse(text));
  for (const JsonTree::Node description : descriptions_of(tree, file_name)) {
    TRY(add_unquantized(tree, description, names));
  }
  return tree.changed();
}

Result<std::string> with_new_entries(std::string_view text, const file_conversion::NewEntries& renamed,
                                     std::string_view file_name) {
  JsonTree tree = TRY(JsonTree::parse(text));
  for (const JsonTree::Node description : descriptions_of(tree, file_name)) {
    rename_modules(tree, description, renamed);
  }
  return tree.changed();
}

Result<std::string> rewritten_config(std::string_view text, const PlannedConfig& config) {
  Result<std::string> rewritten = std::string(text);
  if (config.dtype != DType::undefined) rewritten = with_dtype(*rewritten, config.dtype);
  if (rewritten && !config.section.empty()) rewritten = with_section(*rewritten, config.section);
  if (rewritten && config.unquantized) rewritten = without_quantization(*rewritten);
  if (rewritten && !config.renamed.empty()) rewritten = with_new_entries(*rewritten, config.renamed, config.name);
  if (rewritten && !config.decoded.empty()) rewritten = with_unquantized(*rewritten, config.decoded, config.name);
  return rewritten;
}

}  // namespace tensorcast::checkpoint
