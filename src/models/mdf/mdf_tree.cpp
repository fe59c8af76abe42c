// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_tree.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "formats/npy/npy_text.hpp"
#include "models/mdf/mdf_syntax.hpp"

namespace tensorcast::models::mdf {
namespace {

// The memory of a text outside its object, including the allocator's.
std::uint64_t text_bytes(const std::string& text) {
  constexpr std::size_t longest_inside = 15;
  return text.size() <= longest_inside ? 0 : text.size() + 32;
}

const SharedTree* alias_of(const Tree& tree) {
  const auto* alias = std::get_if<std::shared_ptr<const SharedTree>>(&tree.value);
  return alias == nullptr ? nullptr : alias->get();
}

// The memory of `tree` as an element of a growing list or map; an alias counts as the value that it repeats.
std::uint64_t bytes_of(const Tree& tree) {
  if (const SharedTree* alias = alias_of(tree)) return alias->bytes;
  std::uint64_t bytes = io::MemoryBudget::grown_bytes<Tree>;
  if (const auto* text = tree.as<std::string>()) {
    bytes += text_bytes(*text);
  } else if (const auto* list = tree.as<Tree::List>()) {
    for (const Tree& item : *list) bytes += bytes_of(item);
  } else if (const auto* map = tree.as<Tree::Map>()) {
    for (const TreeEntry& entry : *map) {
      bytes += io::MemoryBudget::grown_bytes<std::string> + text_bytes(entry.key) + bytes_of(entry.tree);
    }
  }
  return bytes;
}

// The nesting depth of lists and maps.
std::size_t depth_of(const Tree& tree) {
  if (const SharedTree* alias = alias_of(tree)) return alias->depth;
  std::size_t deepest = 0;
  if (const auto* list = tree.as<Tree::List>()) {
    for (const Tree& item : *list) deepest = std::max(deepest, depth_of(item));
  } else if (const auto* map = tree.as<Tree::Map>()) {
    for (const TreeEntry& entry : *map) deepest = std::max(deepest, depth_of(entry.tree));
  } else {
    return 0;
  }
  return deepest + 1;
}

}  // namespace

const Tree& Tree::behind_alias() const {
  const SharedTree* alias = alias_of(*this);
  return alias == nullptr ? *this : alias->tree;
}

const Tree* Tree::find(std::string_view key) const {
  const Map* map = as<Map>();
  if (map == nullptr) return nullptr;
  const TreeEntry* found = find_row(*map, &TreeEntry::key, key);
  return found == nullptr ? nullptr : &found->tree;
}

std::string_view Tree::kind() const {
  static constexpr std::string_view kinds[] = {"null",     "true or false", "a number", "a number",
                                               "a number", "a text",        "a list",   "a map"};
  return kinds[behind_alias().value.index()];
}

bool TreeBuilder::fail(ErrorCode code, std::string message) {
  if (error_.message.empty()) error_ = Error{.code = code, .message = std::move(message)};
  return false;
}

bool TreeBuilder::charge(std::uint64_t bytes) {
  if (budget_.try_take(bytes)) return true;
  if (error_.message.empty()) error_ = io::MemoryBudget::exceeded();
  return false;
}

bool TreeBuilder::expects_key() const {
  return !open_.empty() && open_.back().tree.as<Tree::Map>() != nullptr && !open_.back().has_key;
}

bool TreeBuilder::put(Tree tree) {
  if (open_.empty()) {
    if (complete_) return fail(ErrorCode::parse, "something follows the model");
    complete_ = true;
    root_ = std::move(tree);
    last_ = &root_;
    return true;
  }
  Open& parent = open_.back();
  if (auto* list = std::get_if<Tree::List>(&parent.tree.value)) {
    last_ = &list->emplace_back(std::move(tree));
    return true;
  }
  if (!parent.has_key) return fail(ErrorCode::parse, "a map has a value without a key");
  auto& map = std::get<Tree::Map>(parent.tree.value);
  last_ = &map.emplace_back(TreeEntry{std::move(parent.key), std::move(tree)}).tree;
  parent.has_key = false;
  return true;
}

bool TreeBuilder::check_text(std::string_view text) {
  return formats::npy::is_utf8(text) || fail(ErrorCode::parse, "a text that is not UTF-8");
}

bool TreeBuilder::scalar(Tree tree) {
  const std::string* text = tree.as<std::string>();
  return (text == nullptr || check_text(*text)) && charge(bytes_of(tree)) && put(std::move(tree));
}

bool TreeBuilder::too_deep() { return fail(ErrorCode::parse, fmt::format("nested more than {} deep", max_depth)); }

bool TreeBuilder::start(Tree empty) {
  if (open_.size() == max_depth) return too_deep();
  open_.push_back({.tree = std::move(empty), .key = {}, .has_key = false});
  return charge(io::MemoryBudget::grown_bytes<Tree>);
}

bool TreeBuilder::key(std::string name) {
  if (!expects_key()) return fail(ErrorCode::parse, "a key outside of a map");
  if (!check_text(name)) return false;
  open_.back().key = std::move(name);
  open_.back().has_key = true;
  return charge(io::MemoryBudget::grown_bytes<std::string> + text_bytes(open_.back().key));
}

bool TreeBuilder::end() {
  Tree tree = std::move(open_.back().tree);
  if (open_.back().has_key) return fail(ErrorCode::parse, "a map has a key without a value");
  open_.pop_back();
  if (const auto* map = tree.as<Tree::Map>()) {
    if (const auto twice = find_repeated(*map, &TreeEntry::key)) {
      return fail(ErrorCode::parse, fmt::format("\"{}\" occurs twice", twice->substr(0, 60)));
    }
  }
  return put(std::move(tree));
}

bool TreeBuilder::repeat(std::shared_ptr<const SharedTree> tree) {
  if (!charge(tree->bytes)) return false;
  // Inside other values it could end up deeper than the limit.
  if (open_.size() + tree->depth > max_depth) return too_deep();
  return put(Tree{std::move(tree)});
}

std::shared_ptr<const SharedTree> TreeBuilder::share_last() {
  const std::uint64_t bytes = bytes_of(*last_);
  const std::size_t depth = depth_of(*last_);
  auto shared = std::make_shared<const SharedTree>(SharedTree{std::move(*last_), bytes, depth});
  last_->value = shared;
  return shared;
}

Result<Tree> TreeBuilder::take() {
  if (const Error* failed = error()) return *failed;
  if (!complete_ || !open_.empty()) return parse_error("the file has no content");
  return std::move(root_);
}

Result<Tree> parse_tree(Syntax syntax, std::string_view text) {
  return syntax == Syntax::yaml ? parse_yaml(text) : parse_json(text, syntax == Syntax::bson);
}

}  // namespace tensorcast::models::mdf
