// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/json_tree.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {
namespace {

Error not_as_meant() {
  return internal_error("its edited text is not the JSON that was meant, so nothing is written",
                        "this is a bug: report it with the file");
}

}  // namespace

Result<JsonTree> JsonTree::parse(std::string_view text) {
  if (text.size() >= std::numeric_limits<std::uint32_t>::max()) return parse_error("JSON of 4 GiB or more");
  JsonTree tree;
  tree.text_ = text;
  TRY(visit_json(text, [&](const JsonPath&, const JsonValue& value) {
    if (value.inside_array) return;
    const auto range = [](std::size_t begin, std::string_view part) {
      return Range{static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + part.size())};
    };
    NodeData node{.key = range(value.key_begin, value.key),
                  .value = range(value.begin, value.text),
                  .first = static_cast<Node>(tree.nodes_.size()),
                  .kind = value.kind};
    // What is inside came before.
    while (node.first > 0 && tree.nodes_[node.first - 1].value.begin > node.value.begin) {
      node.first = tree.nodes_[node.first - 1].first;
    }
    tree.nodes_.push_back(node);
  }));
  return tree;
}

std::string_view JsonTree::text(Range range) const noexcept {
  return text_.substr(range.begin, range.end - range.begin);
}
std::string_view JsonTree::text(Node node) const noexcept { return text(nodes_[node].value); }
std::string JsonTree::key(Node node) const { return node == root() ? std::string() : unquoted(text(nodes_[node].key)); }

std::vector<JsonTree::Node> JsonTree::members(Node node) const {
  std::vector<Node> members;
  for (Node after = node; after > nodes_[node].first; after = nodes_[members.back()].first) {
    members.push_back(after - 1);
  }
  std::ranges::reverse(members);
  return members;
}

void JsonTree::prepend(Node node, std::string_view key, std::string value) {
  changes_[node].prepended.push_back({.key = json_quoted(key), .value = std::move(value)});
}

void JsonTree::append(Node node, std::string_view key, std::string value) {
  changes_[node].appended.push_back({.key = json_quoted(key), .value = std::move(value)});
}

const JsonTree::Change* JsonTree::change(Node node) const noexcept {
  const auto found = changes_.find(node);
  return found == changes_.end() ? nullptr : &found->second;
}

std::string_view JsonTree::key_text(Node node) const noexcept {
  const Change* const changed = change(node);
  return changed != nullptr && changed->key ? std::string_view(*changed->key) : text(nodes_[node].key);
}

// Of the object itself, or of something in it.
bool JsonTree::changes_inside(Node node) const noexcept {
  const auto found = changes_.lower_bound(nodes_[node].first);
  return found != changes_.end() && found->first <= node;
}

std::vector<JsonTree::Node> JsonTree::kept_members(Node node) const {
  std::vector<Node> kept = members(node);
  std::erase_if(kept, [&](Node member) {
    const Change* const changed = change(member);
    return changed != nullptr && changed->removed;
  });
  return kept;
}

void JsonTree::write(Node node, std::string& out) const {
  const Change* const changed = change(node);
  if (changed != nullptr && changed->value) {
    out += *changed->value;
  } else if (kind(node) == JsonKind::object && changes_inside(node)) {
    write_object(node, out);
  } else {
    out += text(node);
  }
}

// A comma and the blanks after it stay with the member before them.
void JsonTree::write_object(Node node, std::string& out) const {
  static const Change none;
  const Change* const found = change(node);
  const Change& changed = found == nullptr ? none : *found;
  const std::vector<Node> all = members(node);
  const Range value = nodes_[node].value;
  bool empty = true;
  const auto comma = [&](std::string_view text) { return std::exchange(empty, false) ? std::string_view() : text; };
  out += '{';
  for (const NewMember& member : changed.prepended) {
    out += fmt::format("{}{}: {}", comma(", "), member.key, member.value);
  }
  bool any_kept = false;
  Range gap{value.begin + 1, 0};  // before the next member that is kept; ends at the next one that was there
  for (const Node member : all) {
    if (gap.end == 0) gap.end = nodes_[member].key.begin;
    if (const Change* own = change(member); own != nullptr && own->removed) continue;
    if (!any_kept) out += comma(", ");
    out += text(gap);
    out += key_text(member);
    out += text(Range{nodes_[member].key.end, nodes_[member].value.begin});
    write(member, out);
    gap = {nodes_[member].value.end, 0};
    any_kept = true;
  }
  for (const NewMember& member : changed.appended) {
    out += fmt::format("{}\n  {}: {}", comma(","), member.key, member.value);
  }
  const bool only_new = !any_kept && !changed.appended.empty();
  if (only_new) out += '\n';
  const bool blanks_left = all.empty() || !only_new;  // else those of members that are gone
  const std::uint32_t end = all.empty() ? value.begin + 1 : nodes_[all.back()].value.end;
  if (blanks_left) out += text(Range{end, value.end - 1});
  out += '}';
}

bool JsonTree::is_meant(Node node, const JsonTree& result, Node other) const {
  const Change* const changed = change(node);
  if (changed != nullptr && changed->value) return result.text(other) == *changed->value;
  if (kind(node) != JsonKind::object || !changes_inside(node)) return result.text(other) == text(node);
  if (result.kind(other) != JsonKind::object) return false;
  const std::vector<Node> kept = kept_members(node), found = result.members(other);
  static const std::vector<NewMember> none;
  const std::vector<NewMember>& prepended = changed == nullptr ? none : changed->prepended;
  const std::vector<NewMember>& appended = changed == nullptr ? none : changed->appended;
  if (found.size() != prepended.size() + kept.size() + appended.size()) return false;
  auto next = found.begin();
  const auto is_new = [&](const NewMember& member) {
    const Node at = *next++;
    return result.text(result.nodes_[at].key) == member.key && result.text(at) == member.value;
  };
  const auto is_kept = [&](Node member) {
    const Node at = *next++;
    return result.text(result.nodes_[at].key) == key_text(member) && is_meant(member, result, at);
  };
  return std::ranges::all_of(prepended, is_new) && std::ranges::all_of(kept, is_kept) &&
         std::ranges::all_of(appended, is_new);
}

Result<std::string> JsonTree::changed() const {
  if (changes_.empty()) return std::string(text_);
  std::string out(text_.substr(0, nodes_.back().value.begin));
  write(root(), out);
  out += text_.substr(nodes_.back().value.end);
  const Result<JsonTree> result = parse(out);
  if (!result || !is_meant(root(), *result, result->root())) return not_as_meant();
  return out;
}

Result<std::vector<std::string_view>> elements_of(std::string_view array) {
  std::vector<std::string_view> elements;
  TRY(visit_json(array, [&](const JsonPath& path, const JsonValue& value) {
    if (path.size() == 1) elements.push_back(value.text);
  }));
  return elements;
}

Result<std::string> with_elements(std::string_view array, std::span<const std::string> added,
                                  const std::map<std::size_t, std::vector<std::string>>& elements) {
  const std::vector<std::string_view> old = TRY(elements_of(array));
  std::vector<std::string> meant(added.begin(), added.end());
  std::string out = fmt::format("[{}{}", fmt::join(added, ", "), added.empty() || old.empty() ? "" : ", ");
  std::size_t end = 1;  // of what is written of the array
  for (std::size_t i = 0; i < old.size(); ++i) {
    const auto begin = static_cast<std::size_t>(old[i].data() - array.data());
    out += array.substr(end, begin - end);
    end = begin + old[i].size();
    const auto found = elements.find(i);
    const std::vector<std::string> here = found == elements.end() ? std::vector{std::string(old[i])} : found->second;
    out += fmt::format("{}", fmt::join(here, ", "));
    meant.insert(meant.end(), here.begin(), here.end());
  }
  out += array.substr(end);
  const Result<std::vector<std::string_view>> result = elements_of(out);
  if (!result || !std::ranges::equal(*result, meant)) return not_as_meant();
  return out;
}

}  // namespace tensorcast::checkpoint
