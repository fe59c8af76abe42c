// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/known_keys.hpp"

#include <fmt/format.h>

#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/names/architectures.hpp"

namespace tensorcast::quantized {
namespace {

// What descriptions of all layouts may say.
constexpr auto common_keys =
    joined(keys_of<"quant_method method quantization_status">(KeyType::text),
           keys_of<"ignore exclude_modules exclude modules_to_not_convert llm_int8_skip_modules ignored_layers "
                   "producer provider kv_cache_scheme kv_cache_quant_algo">(KeyType::any),
           keys_of<"dequantize run_compressed">(KeyType::flag));

const KnownKey* find_key(std::span<const KnownKey> keys, std::string_view name) {
  for (const std::span<const KnownKey> some : {keys, std::span<const KnownKey>(common_keys)}) {
    const auto found = std::ranges::find(some, name, &KnownKey::name);
    if (found != some.end()) return &*found;
  }
  const auto others = std::ranges::find(keys, every_other, &KnownKey::name);
  return others == keys.end() ? nullptr : &*others;
}

// Whether values are of a type, and what they must be.
struct TypeRow {
  KeyType type;
  bool (*has)(const Json& value);
  std::string_view words;
};
constexpr TypeRow type_rows[] = {
    {KeyType::any, [](const Json& /*value*/) { return true; }, ""},
    {KeyType::text, [](const Json& value) { return value.is_string(); }, "text"},
    {KeyType::flag, [](const Json& value) { return value.is_boolean(); }, "true or false"},
    {KeyType::integer, [](const Json& value) { return value.is_number_integer(); }, "a whole number"},
    {KeyType::list, [](const Json& value) { return value.is_array(); }, "a list"},
    {KeyType::object, [](const Json& value) { return value.is_object(); }, "an object"},
    {KeyType::groups, [](const Json& value) { return value.is_object(); }, "an object"},
    {KeyType::object_or_flag, [](const Json& value) { return value.is_object() || value.is_boolean(); }, "an object"}};

std::string shown(const Json& value) {
  constexpr std::size_t most = 40;
  return value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, most);
}

bool is_one_of(std::string_view words, const Json& value) {
  const std::string text = value.is_string() ? lower_case(value.get_ref<const std::string&>()) : value.dump();
  return std::ranges::any_of(list_words(words), [&](std::string_view word) { return word == text; });
}

bool is_same(const Json& one, const Json& two) {
  if (one.is_string() && two.is_string()) {
    return lower_case(one.get_ref<const std::string&>()) == lower_case(two.get_ref<const std::string&>());
  }
  return one == two;
}

}  // namespace

bool is_accepted(AcceptedWords accepted, std::string_view word) { return contains(accepted, word); }

std::string accept_hint(std::string_view word) { return fmt::format("`accept` {} takes it as harmless", word); }

std::string key_problem(const Json& section, std::span<const KnownKey> keys, std::string_view source,
                        AcceptedWords accepted) {
  for (const auto& [name, value] : section.items()) {
    if (value.is_null() || is_accepted(accepted, name)) continue;
    const KnownKey* key = find_key(keys, name);
    if (key == nullptr) {
      return fmt::format("{} has the key \"{}\" ({}), which is not known and may change what its codes mean; {}",
                         source, name, shown(value), accept_hint(name));
    }
    if (const TypeRow& type = *find_row(type_rows, &TypeRow::type, key->type); !type.has(value)) {
      return fmt::format("{} has \"{}\": {}, which must be {}", source, name, shown(value), type.words);
    }
    if (!key->only.empty() && !is_one_of(key->only, value)) {
      return fmt::format("{} has \"{}\": {}, of which only {} is decoded; {}", source, name, shown(value),
                         fmt::join(list_words(key->only), " or "), accept_hint(name));
    }
    if (key->members.empty() || !value.is_object()) continue;
    if (key->type == KeyType::object) {
      if (std::string problem = key_problem(value, key->members, source, accepted); !problem.empty()) return problem;
      continue;
    }
    for (const auto& [group, member] : value.items()) {
      if (!member.is_object()) {
        return fmt::format("{} has \"{}\": {} in \"{}\", which must be an object", source, group, shown(member), name);
      }
      if (std::string problem = key_problem(member, key->members, source, accepted); !problem.empty()) return problem;
    }
  }
  return {};
}

std::string use_usual_names(Json& section, std::span<const KnownKey> keys, std::string_view source) {
  for (const KnownKey& key : keys) {
    const auto other = section.find(key.name);
    if (key.means.empty() || other == section.end()) continue;
    Json value = *other;
    section.erase(other);
    Json& usual = section[std::string(key.means)];
    if (usual.is_null()) {
      usual = std::move(value);
    } else if (!value.is_null() && !is_same(usual, value)) {
      return fmt::format("{} names {} {} and {} {}", source, key.means, shown(usual), key.name, shown(value));
    }
  }
  return {};
}

std::string merge(Description& whole, Description& other, std::span<const KnownKey> keys) {
  for (auto& [name, value] : other.section.items()) {
    Json& there = whole.section[name];
    if (there.is_null()) {
      there = std::move(value);
      continue;
    }
    const KnownKey* key = find_key(keys, name);
    if (value.is_null() || (key != nullptr && !key->decides) || is_same(there, value)) continue;
    return fmt::format("{} names {} {}, and {} names {} {}", whole.source, name, shown(there), other.source, name,
                       shown(value));
  }
  return {};
}

}  // namespace tensorcast::quantized
