// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/index_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "checkpoint/source/json_tree.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {
namespace {

std::string map_text(const std::map<std::string, std::string>& weight_map) {
  std::string text = "{";
  const char* comma = "";
  for (const auto& [tensor, file] : weight_map) {
    text += fmt::format("{}\n    {}: {}", comma, json_quoted(tensor), json_quoted(file));
    comma = ",";
  }
  return text + "\n  }";
}

}  // namespace

Result<WeightMap> parse_index(std::string_view text, const std::string& path) {
  const auto wrong = [&](std::string message, std::string tensor = {}) {
    return Error{.code = ErrorCode::parse, .message = std::move(message), .tensor = std::move(tensor), .file = path};
  };
  const JsonTree tree = TRY(in_file(path, JsonTree::parse(text)));
  WeightMap map;
  bool has_map = false;
  for (const JsonTree::Node member : tree.members(tree.root())) {
    if (tree.key(member) != "weight_map") continue;
    if (has_map) return wrong("weight_map occurs twice");
    has_map = true;
    if (tree.kind(member) != JsonKind::object) return wrong("weight_map is not an object");
    for (const JsonTree::Node file : tree.members(member)) {
      if (tree.kind(file) != JsonKind::string) return wrong("weight_map does not name a file", tree.key(file));
      map.emplace_back(tree.key(file), tree.string(file));
      TRY(check_file_name(map.back().second, path));
    }
  }
  if (!has_map) return wrong("the index has no weight_map");
  std::vector<const std::pair<std::string, std::string>*> sorted;
  sorted.reserve(map.size());
  for (const auto& entry : map) sorted.push_back(&entry);
  std::ranges::stable_sort(sorted, {}, [](const auto* entry) -> const std::string& { return entry->first; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->first != sorted[i - 1]->first) continue;
    return wrong(
        fmt::format("the index names it twice, in \"{}\" and \"{}\"", sorted[i - 1]->second, sorted[i]->second),
        sorted[i]->first);
  }
  return map;
}

Result<std::string> rewritten_index(std::string_view text, std::uint64_t total_size,
                                    const std::map<std::string, std::string>& weight_map) {
  if (text.empty()) {
    return fmt::format("{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {}\n}}\n", total_size,
                       map_text(weight_map));
  }
  JsonTree tree = TRY(JsonTree::parse(text));
  const std::optional<JsonTree::Node> map = tree.find(tree.root(), "weight_map");
  if (map && !weight_map.empty()) tree.replace(*map, map_text(weight_map));
  const std::optional<JsonTree::Node> metadata = tree.find(tree.root(), "metadata");
  if (!metadata) {
    std::string changed = TRY(tree.changed());
    return changed.insert(changed.find('{') + 1, fmt::format("\n  \"metadata\": {{\"total_size\": {}}},", total_size));
  }
  const std::string size = std::to_string(total_size);
  if (tree.kind(*metadata) != JsonKind::object) {
    tree.replace(*metadata, fmt::format("{{\"total_size\": {}}}", size));
  } else if (const std::optional<JsonTree::Node> old = tree.find(*metadata, "total_size")) {
    tree.replace(*old, size);
  } else {
    tree.prepend(*metadata, "total_size", size);
  }
  return tree.changed();
}

}  // namespace tensorcast::checkpoint
