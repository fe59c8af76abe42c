// SPDX-License-Identifier: Apache-2.0
// What the descriptions of a layout may say. A key that is not in its table is refused by name, so that no word that
// changes how codes are read is passed over; so is a value of a type that the tool does not write, and one that changes
// them in a way that is not decoded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quantized/layer/model_tensors.hpp"
#include "quantized/layout/config.hpp"

namespace tensorcast::quantized {

enum class KeyType : std::uint8_t {
  any,
  text,
  flag,
  integer,
  list,
  object,
  groups,  // an object of objects, under names of the user's
  object_or_flag,
};

// As the name of a key: all that are not in the table, such as names of modules.
inline constexpr std::string_view every_other = "*";

struct KnownKey {
  std::string_view name;
  KeyType type = KeyType::any;             // null is of every type: the tool's default
  std::string_view means = {};             // the key that this is another name of
  bool decides = false;                    // how codes are read: descriptions may not contradict in it
  std::span<const KnownKey> members = {};  // of an object, or of each object of `groups`; empty: any
  std::string_view only = {};  // the values that are decoded, between single spaces, text without quotes; "": any
};

// Names between single spaces.
template <std::size_t size>
struct KeyNames {
  char text[size] = {};

  consteval KeyNames(const char (&names)[size]) { std::ranges::copy(names, text); }  // implicit, as a literal is one
};

// Keys of one type.
template <KeyNames names>
[[nodiscard]] consteval auto keys_of(KeyType type, bool decide = false) {
  constexpr std::string_view text(names.text, sizeof names.text - 1);
  std::array<KnownKey, 1 + std::ranges::count(text, ' ')> keys{};
  std::string_view rest = text;
  for (KnownKey& key : keys) {
    key = {.name = rest.substr(0, rest.find(' ')), .type = type, .decides = decide};
    rest.remove_prefix(std::min(key.name.size() + 1, rest.size()));
  }
  return keys;
}
template <KeyNames names>
[[nodiscard]] consteval auto deciding_keys(KeyType type) {
  return keys_of<names>(type, true);
}

// Keys of which a layout reads one value, or some: keys_with_only<"ch_axis">(KeyType::integer, "-1").
template <KeyNames names>
[[nodiscard]] consteval auto keys_with_only(KeyType type, std::string_view values) {
  auto keys = deciding_keys<names>(type);
  for (KnownKey& key : keys) key.only = values;
  return keys;
}

// For a table of some keys, beside another that refuses unknown ones.
inline constexpr auto all_other_keys = keys_of<"*">(KeyType::any);

// All tables as one.
template <std::size_t... counts>
[[nodiscard]] constexpr auto joined(const std::array<KnownKey, counts>&... tables) {
  std::array<KnownKey, (counts + ...)> all{};
  auto* to = all.data();
  ((to = std::ranges::copy(tables, to).out), ...);
  return all;
}

[[nodiscard]] bool is_accepted(AcceptedWords accepted, std::string_view word);
// The end of a message that names an unknown word.
[[nodiscard]] std::string accept_hint(std::string_view word);

// Returns what is wrong with the first key that is not known, or whose value is of another type or not decoded; "":
// nothing.
[[nodiscard]] std::string key_problem(const Json& section, std::span<const KnownKey> keys, std::string_view source,
                                      AcceptedWords accepted);

// Gives keys that have several names the usual one. Returns the contradiction of two names; "": there is none.
[[nodiscard]] std::string use_usual_names(Json& section, std::span<const KnownKey> keys, std::string_view source);

// Moves what `other` says and `whole` does not. Returns the first contradiction in a key that decides; "": there is
// none.
[[nodiscard]] std::string merge(Description& whole, Description& other, std::span<const KnownKey> keys);

}  // namespace tensorcast::quantized
