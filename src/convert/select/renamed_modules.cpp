// SPDX-License-Identifier: Apache-2.0
#include "convert/select/renamed_modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/names/name_list.hpp"

namespace tensorcast::file_conversion {
namespace {

using quantized::Description;
using quantized::Json;
using quantized::NameList;

constexpr const char* hint = "decode the model, whose configuration then names no modules; or rename before quantizing";

// ModelOpt's, auto-round's, Quark's, GPTQ's and ComfyUI's.
constexpr auto keyed =
    std::to_array<std::string_view>({"quantized_layers", "extra_config", "layer_quant_config", "dynamic", "layers"});

std::string_view module_of_tensor(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

class Following {
 public:
  explicit Following(std::span<const std::pair<std::string, std::string>> names) {
    for (const auto& [was, is] : names) {
      modules_[std::string(module_of_tensor(was))].insert(std::string(module_of_tensor(is)));
      new_modules_.insert(std::string(module_of_tensor(is)));
    }
  }

  Result<NewEntries> run(std::span<const quantized::ConfigText> texts) {
    for (const Description& description : quantized::read_descriptions(texts)) TRY(follow(description));
    return std::move(entries_);
  }

 private:
  Result<void> follow(const Description& description) {
    const Json& section = description.section;
    for (const std::string& entry : quantized::unquantized_in(section)) TRY(add(entry, true));
    for (const std::string& entry : quantized::targets_in(section)) TRY(add(entry, false));
    for (const auto& [key, value] : section.items()) {
      if (value.is_object() && has_modules_as_keys(key)) {
        for (const auto& [module, how] : value.items()) TRY(key == "dynamic" ? check_pattern(module) : add_key(module));
      } else if (value.is_object() || value.is_boolean()) {
        TRY(add_key(key));  // MLX has modules beside its own members
      }
    }
    return {};
  }

  Result<void> add_key(const std::string& key) {
    TRY(add(key, false));
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.size() == 1) return {};
    return unsupported(fmt::format("the configuration has \"{}\" for several modules, whose new names differ", key),
                       hint);
  }

  // GPTQ's: "+:" or "-:" before a regular expression.
  Result<void> check_pattern(const std::string& key) const {
    const bool has_sign = key.starts_with("+:") || key.starts_with("-:");
    const std::string pattern = "re:" + (has_sign ? key.substr(2) : key);
    if (TRY(new_names(pattern, false)) == std::vector{pattern}) return {};
    return unsupported(fmt::format("the configuration has the pattern \"{}\" for modules, whose new names differ", key),
                       hint);
  }

  // `by_parts`: loaders may match parts of names.
  Result<void> add(const std::string& entry, bool by_parts) {
    if (entries_.contains(entry)) return {};
    std::vector<std::string> now = TRY(new_names(entry, by_parts));
    if (now.size() != 1 || now.front() != entry) entries_.emplace(entry, std::move(now));
    return {};
  }

  Result<std::string> new_name(const std::string& module) const {
    const std::set<std::string>& names = modules_.at(module);
    if (names.size() == 1) return *names.begin();
    return unsupported(
        fmt::format("the configuration names the module \"{}\", whose tensors would be in several", module), hint);
  }

  Result<std::vector<std::string>> new_names(const std::string& entry, bool by_parts) const {
    if (entry.empty()) return std::vector{entry};
    if (modules_.contains(entry)) return std::vector{TRY(new_name(entry))};
    std::vector<std::string> named;  // modules, by their old names
    const std::string prefix = entry + ".";
    for (auto module = modules_.lower_bound(prefix); module != modules_.end(); ++module) {
      if (!module->first.starts_with(prefix)) break;
      named.push_back(module->first);
    }
    if (!named.empty()) return names_inside(entry, named);
    const NameList list({entry});
    const auto has = [&](const std::string& module) {
      return list.has(module) || (by_parts && module.find(entry) != std::string::npos);
    };
    std::set<std::string> wanted;
    for (const auto& [module, names] : modules_) {
      if (has(module)) wanted.insert(TRY(new_name(module)));
    }
    std::set<std::string> matched;
    for (const std::string& module : new_modules_) {
      if (has(module)) matched.insert(module);
    }
    if (wanted.empty() || wanted == matched) return std::vector{entry};
    return std::vector<std::string>(wanted.begin(), wanted.end());
  }

  // Of an entry that has all these modules inside: the same, if it is renamed as a whole.
  Result<std::vector<std::string>> names_inside(const std::string& entry, const std::vector<std::string>& named) const {
    std::set<std::string> outer;
    std::vector<std::string> each;
    for (const std::string& module : named) {
      const std::string name = TRY(new_name(module)), rest = module.substr(entry.size());
      outer.insert(name.ends_with(rest) ? name.substr(0, name.size() - rest.size()) : std::string());
      each.push_back(name);
    }
    if (outer.size() == 1 && !outer.begin()->empty()) return std::vector{*outer.begin()};
    return each;
  }

  std::map<std::string, std::set<std::string>> modules_;  // and their new names
  std::set<std::string> new_modules_;
  NewEntries entries_;
};

}  // namespace

bool has_modules_as_keys(std::string_view key) noexcept { return std::ranges::find(keyed, key) != keyed.end(); }

Result<NewEntries> new_entries(std::span<const quantized::ConfigText> texts,
                               std::span<const std::pair<std::string, std::string>> names) {
  return Following(names).run(texts);
}

}  // namespace tensorcast::file_conversion
