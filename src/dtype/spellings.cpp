#include "dtype/spellings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dtype/dtype_table.hpp"

namespace tensorcast {
namespace {

constexpr std::array<std::string_view, 2> uint1_spellings = {"u1", "uint1"};  // has no row: no type of casts

// A type's canonical name, then its other spellings.
using Names = std::array<std::string_view, 1 + std::tuple_size_v<decltype(DTypeRow::spellings)>>;

struct Group {
  DType dtype;
  std::span<const std::string_view> names;
};

const std::vector<Group>& groups() {
  static const auto names_of_rows = [] {
    std::array<Names, dtype_table.size()> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i][0] = dtype_table[i].name;
      std::copy(dtype_table[i].spellings.begin(), dtype_table[i].spellings.end(), all[i].begin() + 1);
    }
    return all;
  }();
  static const std::vector<Group> all = [] {
    std::vector<Group> list;
    for (std::size_t i = 0; i < dtype_table.size(); ++i) {
      const Names& names = names_of_rows[i];
      const auto count = static_cast<std::size_t>(std::find(names.begin(), names.end(), "") - names.begin());
      list.push_back({dtype_table[i].id, std::span(names).first(count)});
    }
    list.push_back({DType::uint1, uint1_spellings});
    return list;
  }();
  return all;
}

constexpr std::size_t longest_spelling = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool consume_prefix(std::string& text, std::string_view prefix) {
  if (text.size() <= prefix.size() || text.compare(0, prefix.size(), prefix) != 0) return false;
  text.erase(0, prefix.size());
  return true;
}

// What must agree for two spellings to be one.
std::string key_of(std::string_view spelling) {
  while (!spelling.empty() && (spelling.front() == ' ' || spelling.front() == '\t')) spelling.remove_prefix(1);
  while (!spelling.empty() && (spelling.back() == ' ' || spelling.back() == '\t')) spelling.remove_suffix(1);
  std::string key;
  for (const char c : spelling) {
    if (c != '_') key += lower(c);
  }
  if (consume_prefix(key, "tensor(")) {
    if (key.back() != ')') return "(";  // matches nothing
    key.pop_back();
  }
  for (const std::string_view module :
       {"onnx.", "tensorproto.", "torch.", "numpy.", "np.", "mldtypes.", "jnp.", "tensorcast."}) {
    consume_prefix(key, module);
  }
  if (!key.empty() && (key[0] == '|' || key[0] == '=')) key[0] = '<';  // one byte, or this machine's order
  return key;
}

struct Key {
  std::string text;
  std::string_view shown;
  DType dtype;
};
const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> list;
    for (const Group& group : groups()) {
      for (const std::string_view spelling : group.names) list.push_back({key_of(spelling), spelling, group.dtype});
    }
    return list;
  }();
  return all;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// Canonical names of the three types with the nearest spellings.
std::vector<std::string_view> nearest_names(const std::string& key) {
  std::vector<std::pair<std::size_t, DType>> ranked;
  for (const Group& group : groups()) {
    std::size_t best = longest_spelling;
    for (const Key& known : keys()) {
      if (known.dtype == group.dtype) best = std::min(best, edit_distance(key, known.text));
    }
    ranked.emplace_back(best, group.dtype);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < 3; ++i) names.push_back(name(ranked[i].second));
  return names;
}

}  // namespace

std::span<const std::string_view> spellings(DType dtype) noexcept {
  for (const Group& group : groups()) {
    if (group.dtype == dtype) return group.names;
  }
  return {};
}

Result<DType> parse_dtype(std::string_view spelling) {
  const std::string_view shown = spelling.substr(0, longest_spelling);
  const std::string key = key_of(shown);
  if (spelling.size() <= longest_spelling) {
    for (const Key& known : keys()) {
      if (known.text == key) return known.dtype;
    }
    int number = 0;
    const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), number);
    if (status == std::errc{} && end == key.data() + key.size() && is_castable(static_cast<DType>(number))) {
      return static_cast<DType>(number);
    }
  }
  return Error{.code = ErrorCode::invalid_argument,
               .message = fmt::format("unknown dtype \"{}\"", shown),
               .hint = fmt::format("did you mean {}?", fmt::join(nearest_names(key), ", "))};
}

}  // namespace tensorcast
