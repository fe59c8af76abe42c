// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare/config_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/names/module_name.hpp"
#include "quantized/names/name_list.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {
namespace {

using quantized::Description;
using quantized::Json;
using quantized::NameList;

// The modules that a description does not take as quantized.
class Excluded {
 public:
  explicit Excluded(const Description& description)
      : entries_(quantized::unquantized_in(description.section)), names_(entries_) {
    for (const std::string_view key : quantized::unquantized_lists) {
      const auto list = description.section.find(key);
      if (list != description.section.end() && list->is_array()) key_ = key;
    }
  }

  // The list's key; "": there is none.
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

  // Tools match whole names, or parts of them.
  [[nodiscard]] bool may_have(const std::string& module) const {
    return names_.has(module) || std::ranges::any_of(entries_, [&](const std::string& entry) {
             return !entry.empty() && module.find(entry) != std::string::npos;
           });
  }

 private:
  std::string key_;
  std::vector<std::string> entries_;
  NameList names_;
};

// The modules that compressed-tensors' groups, or ModelOpt's list of layers, are for.
class Targets {
 public:
  explicit Targets(const Description& description) : names_(entries_of(description, is_limited_)) {}

  [[nodiscard]] bool has(const std::string& module) const { return !is_limited_ || names_.has(module); }

 private:
  static std::vector<std::string> entries_of(const Description& description, bool& is_limited) {
    std::vector<std::string> entries;
    is_limited = false;
    if (const Json* layers = quantized::object_in(description.section, "quantized_layers")) {
      is_limited = true;
      for (const auto& [module, how] : layers->items()) entries.push_back(module);
    }
    if (quantized::object_in(description.section, "config_groups") == nullptr ||
        description.method != "compressed-tensors") {
      return entries;
    }
    is_limited = true;
    for (std::string& target : quantized::targets_in(description.section)) {
      if (target == "Linear") is_limited = false;  // the class of them all
      entries.push_back(std::move(target));
    }
    return entries;
  }

  bool is_limited_ = false;
  NameList names_;
};

// The module of a weight that every loader takes for that of a linear layer, or of experts in one tensor; "": it is
// none.
std::string linear_module(const formats::TensorInfo& tensor) {
  if (!quantized::is_plain_float(tensor.dtype) || tensor.shape.size() < 2) return {};
  if (tensor.shape.size() > 2) return quantized::experts_module(tensor.name);
  std::string module = quantized::module_with(tensor.name, "weight").value_or("");
  const bool is_linear = quantized::is_head(module) || is_quantized_matrix(tensor.name, tensor.shape.size()) ||
                         module.ends_with("linear") || module.ends_with("proj") || module.ends_with("projection");
  return is_linear ? module : std::string();
}

void add_unlisted(const Description& description, const quantized::Method& method, const quantized::FoundLayers& found,
                  std::span<const formats::TensorInfo> tensors, bool any_list, std::vector<Contradiction>& all) {
  const Excluded excluded(description);
  if (excluded.key().empty() && !any_list) return;
  const Targets targets(description);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string module = found.layer_of[i] ? std::string() : linear_module(tensors[i]);
    if (module.empty()) continue;
    if (!targets.has(module) || excluded.may_have(module) || (method.skips_head && quantized::is_head(module)))
      continue;
    const std::string list = excluded.key().empty() ? std::string(method.list) : excluded.key();
    all.push_back(
        {.source = description.source,
         .tensor = tensors[i].name,
         .module = module,
         .message = fmt::format("{} names this weight's module as quantized, and it has no codes", description.source),
         .list = list});
  }
}

}  // namespace

std::vector<Contradiction> contradictions_of(const quantized::FoundLayers& found,
                                             std::span<const formats::TensorInfo> tensors,
                                             std::span<const quantized::ConfigText> texts, bool any_list) {
  std::vector<Contradiction> all;
  if (!found.any() || found.method.empty() || !found.refusal.empty()) return all;
  for (const std::string& weight : found.excluded) {
    all.push_back({.source = found.source,
                   .tensor = weight,
                   .module = quantized::module_of(weight),
                   .message = fmt::format("{} lists this weight's module as not quantized, and its codes are there",
                                          found.source),
                   .list = {}});
  }
  for (const Description& description : quantized::read_descriptions(texts)) {
    const quantized::Method* const method = quantized::find_method(description.method);
    if (method == nullptr || !method->rest_is_quantized) continue;
    add_unlisted(description, *method, found, tensors, any_list, all);
  }
  return all;
}

}  // namespace tensorcast::checkpoint
