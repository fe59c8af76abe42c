// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/json_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/config.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr int max_depth = 100;
constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view between_values = " \t\r\n,:";

// Returns where a string ends that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return at + 1;
}

std::string unquoted(std::string_view text) {
  if (text.find('\\') == std::string_view::npos) return std::string(text.substr(1, text.size() - 2));
  return nlohmann::json::parse(text).get<std::string>();
}

JsonKind kind_of(char first) {
  switch (first) {
    case '{':
      return JsonKind::object;
    case '[':
      return JsonKind::array;
    case '"':
      return JsonKind::string;
    default:
      return JsonKind::other;
  }
}

bool has_members(JsonKind kind) { return kind == JsonKind::object || kind == JsonKind::array; }

}  // namespace

std::string json_quoted(std::string_view text) { return nlohmann::json(text).dump(); }

Result<JsonTree> JsonTree::parse(std::string_view text) {
  if (text.size() >= std::numeric_limits<std::uint32_t>::max()) return parse_error("JSON of 4 GiB or more");
  // nlohmann would treat a zero byte as the end and ignore the rest.
  const std::string plain = quantized::with_finite_numbers(text);
  const bool valid = plain.find('\0') == std::string::npos && nlohmann::json::accept(plain.begin(), plain.end());
  if (!valid) return parse_error("the file is not valid JSON");
  JsonTree tree;
  tree.text_ = text;
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  const std::size_t before = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  // A bracket or a comma stands before each but the first, or before its key: a vector that grows would need twice as
  // much.
  const auto begins_value = [](char c) { return c == ',' || c == '[' || c == '{'; };
  tree.nodes_.reserve(1 + static_cast<std::size_t>(std::ranges::count_if(text, begins_value)));
  TRY(tree.add_value({}, text.find_first_not_of(blanks, before), 0));
  return tree;
}

// Adds the value that begins there, and before it what is inside. Precondition: the text is JSON.
Result<void> JsonTree::add_value(Range key, std::size_t begin, int depth) {
  const auto range = [](std::size_t first, std::size_t end) {
    return Range{static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end)};
  };
  NodeData node{.key = key, .value = {}, .first = static_cast<Node>(nodes_.size()), .kind = kind_of(text_[begin])};
  std::size_t end = begin + 1;
  if (node.kind == JsonKind::string) {
    end = end_of_string(text_, begin);
  } else if (node.kind == JsonKind::other) {
    end = std::min(text_.find_first_of(",]} \t\r\n", begin), text_.size());
  } else {
    if (depth == max_depth) return parse_error(fmt::format("JSON deeper than {} levels", max_depth));
    for (;;) {
      end = text_.find_first_not_of(between_values, end);
      if (text_[end] == '}' || text_[end] == ']') break;
      Range member = range(end, end);
      if (node.kind == JsonKind::object) {
        member = range(end, end_of_string(text_, end));
        end = text_.find_first_not_of(between_values, member.end);
      }
      TRY(add_value(member, end, depth + 1));
      end = nodes_.back().value.end;
    }
    ++end;
  }
  node.value = range(begin, end);
  nodes_.push_back(node);
  return {};
}

std::string_view JsonTree::text(Range range) const noexcept {
  return text_.substr(range.begin, range.end - range.begin);
}
std::string JsonTree::string(Node node) const { return unquoted(text(node)); }

std::string JsonTree::key(Node node) const {
  const std::string_view quoted = text(nodes_[node].key);
  return quoted.empty() ? std::string() : unquoted(quoted);
}

std::vector<JsonTree::Node> JsonTree::members(Node node) const {
  std::vector<Node> members;
  for (Node after = node; after > nodes_[node].first; after = nodes_[members.back()].first) {
    members.push_back(after - 1);
  }
  std::ranges::reverse(members);
  return members;
}

std::optional<JsonTree::Node> JsonTree::find(Node node, std::string_view key) const {
  std::optional<Node> found;
  for (const Node member : members(node)) {
    if (this->key(member) == key) found = member;
  }
  return found;
}

void JsonTree::prepend(Node node, std::string_view key, std::string_view value) {
  prepend_element(node, fmt::format("{}: {}", json_quoted(key), value));
}

void JsonTree::append(Node node, std::string_view key, std::string_view value) {
  changes_[node].appended.push_back(fmt::format("{}: {}", json_quoted(key), value));
}

const JsonTree::Change& JsonTree::change(Node node) const noexcept {
  static const Change none;
  const auto found = changes_.find(node);
  return found == changes_.end() ? none : found->second;
}

// Of the value itself, or of something in it.
bool JsonTree::changes_inside(Node node) const noexcept {
  const auto found = changes_.lower_bound(nodes_[node].first);
  return found != changes_.end() && found->first <= node;
}

// What is to be before the value of a node: its key, and the colon.
std::string JsonTree::new_head(Node node) const {
  const auto& [key, value, first, kind] = nodes_[node];
  return change(node).key.value_or(std::string(text(key))).append(text(Range{key.end, value.begin}));
}

void JsonTree::write(Node node, std::string& out) const {
  if (has_members(kind(node)) && changes_inside(node)) {
    write_members(node, out);
  } else {
    out += text(node);
  }
}

// A comma and the blanks after it stay with the member before them.
void JsonTree::write_members(Node node, std::string& out) const {
  const Change& changed = change(node);
  const std::vector<Node> all = members(node);
  const Range value = nodes_[node].value;
  bool empty = true;
  const auto comma = [&](std::string_view text) { return std::exchange(empty, false) ? std::string_view() : text; };
  out += text_[value.begin];
  for (const std::string& member : changed.prepended) out.append(comma(", ")).append(member);
  bool any_kept = false;
  Range gap{value.begin + 1, 0};  // before the next member that is kept; ends at the next one that was there
  for (const Node member : all) {
    if (gap.end == 0) gap.end = nodes_[member].key.begin;
    const std::optional<std::vector<std::string>>& values = change(member).values;
    if (values && values->empty()) continue;
    if (!any_kept) out += comma(", ");
    out.append(text(gap)).append(new_head(member));
    if (values) {
      out += fmt::format("{}", fmt::join(*values, ", "));
    } else {
      write(member, out);
    }
    gap = {nodes_[member].value.end, 0};
    any_kept = true;
  }
  for (const std::string& member : changed.appended) out.append(comma(",")).append("\n  ").append(member);
  const bool only_new = !any_kept && !changed.appended.empty();
  if (only_new) out += '\n';
  const bool blanks_left = all.empty() || !only_new;  // else those of members that are gone
  const std::uint32_t end = all.empty() ? value.begin + 1 : nodes_[all.back()].value.end;
  if (blanks_left) out += text(Range{end, value.end - 1});
  out += text_[value.end - 1];
}

bool JsonTree::is_meant(Node node, const JsonTree& result, Node other) const {
  if (!has_members(kind(node)) || !changes_inside(node)) return result.text(other) == text(node);
  if (result.kind(other) != kind(node)) return false;
  const std::vector<Node> found = result.members(other);
  auto next = found.begin();
  const auto is_next = [&](const std::string& member) {
    if (next == found.end()) return false;
    const NodeData& at = result.nodes_[*next++];
    return result.text(Range{at.key.begin, at.value.end}) == member;
  };
  const auto is_as_meant = [&](Node member) {
    const std::string head = new_head(member);
    if (const auto& values = change(member).values) {
      return std::ranges::all_of(*values, [&](const std::string& value) { return is_next(head + value); });
    }
    if (next == found.end()) return false;
    const Node at = *next++;
    return result.new_head(at) == head && is_meant(member, result, at);
  };
  const Change& changed = change(node);
  return std::ranges::all_of(changed.prepended, is_next) && std::ranges::all_of(members(node), is_as_meant) &&
         std::ranges::all_of(changed.appended, is_next) && next == found.end();
}

Result<std::string> JsonTree::changed() const {
  if (changes_.empty()) return std::string(text_);
  std::string out(text_.substr(0, nodes_.back().value.begin));
  write(root(), out);
  out += text_.substr(nodes_.back().value.end);
  const Result<JsonTree> result = parse(out);
  if (result && is_meant(root(), *result, result->root())) return out;
  return internal_error("its edited text is not the JSON that was meant, so nothing is written",
                        "this is a bug: report it with the file");
}

}  // namespace tensorcast::checkpoint
