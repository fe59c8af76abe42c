// SPDX-License-Identifier: Apache-2.0
// Looks for rows in tables, and words in lists.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>
#include <vector>

namespace tensorcast {

// Returns the first row whose `member` is `key`; null if there is none.
template <std::ranges::forward_range Rows, class Member, class Key>
[[nodiscard]] constexpr auto* find_row(Rows& rows, Member member, const Key& key) {
  const auto found = std::ranges::find(rows, key, member);
  return found == std::ranges::end(rows) ? nullptr : &*found;
}

template <std::ranges::forward_range Range, class Value>
[[nodiscard]] constexpr bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

// Returns a text that occurs twice; nullopt if there is none.
[[nodiscard]] inline std::optional<std::string_view> find_repeated(std::vector<std::string_view> texts) {
  std::ranges::sort(texts);
  const auto twice = std::ranges::adjacent_find(texts);
  return twice == texts.end() ? std::nullopt : std::optional(*twice);
}

// The same of the `member` of rows.
template <std::ranges::forward_range Rows, class Member>
[[nodiscard]] std::optional<std::string_view> find_repeated(const Rows& rows, Member member) {
  std::vector<std::string_view> texts;
  for (const auto& row : rows) texts.push_back(std::invoke(member, row));
  return find_repeated(std::move(texts));
}

}  // namespace tensorcast
