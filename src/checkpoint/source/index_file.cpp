// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/index_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "checkpoint/source/json_text.hpp"
#include "checkpoint/store/file_name.hpp"
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
  WeightMap map;
  bool has_map = false;
  std::optional<Error> wrong;
  const auto fail = [&](std::string message, std::string tensor = {}) {
    if (wrong) return;
    wrong = Error{.code = ErrorCode::parse, .message = std::move(message), .tensor = std::move(tensor), .file = path};
  };
  Result<void> visited = visit_json(text, [&](const JsonPath& keys, const JsonValue& value) {
    if (keys.empty() || keys[0] != "weight_map") return;
    if (keys.size() == 1) {
      if (has_map) fail("weight_map occurs twice");
      has_map = true;
      if (value.kind != JsonKind::object) fail("weight_map is not an object");
    } else if (keys.size() != 2 || value.kind != JsonKind::string) {
      fail("weight_map does not name a file", keys[1]);
    } else {
      map.emplace_back(keys[1], unquoted(value.text));
      if (Result<void> named = check_file_name(map.back().second, path); !named) {
        if (!wrong) wrong = std::move(named).error();
      }
    }
  });
  if (!visited) {
    visited.error().file = path;
    return std::move(visited).error();
  }
  if (!has_map) fail("the index has no weight_map");
  if (wrong) return *std::move(wrong);
  std::vector<const std::pair<std::string, std::string>*> sorted;
  sorted.reserve(map.size());
  for (const auto& entry : map) sorted.push_back(&entry);
  std::ranges::stable_sort(sorted, {}, [](const auto* entry) -> const std::string& { return entry->first; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->first != sorted[i - 1]->first) continue;
    fail(fmt::format("the index names it twice, in \"{}\" and \"{}\"", sorted[i - 1]->second, sorted[i]->second),
         sorted[i]->first);
    return *std::move(wrong);
  }
  return map;
}

Result<std::string> rewritten_index(std::string_view text, std::uint64_t total_size,
                                    const std::map<std::string, std::string>& weight_map) {
  if (text.empty()) {
    return fmt::format("{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {}\n}}\n", total_size,
                       map_text(weight_map));
  }
  std::optional<JsonValue> size;
  std::optional<JsonValue> metadata;
  std::optional<JsonValue> map;
  JsonValue document;
  TRY(visit_json(text, [&](const JsonPath& keys, const JsonValue& value) {
    if (keys.empty()) document = value;
    if (keys.size() == 1 && keys[0] == "metadata") metadata = value;
    if (keys.size() == 1 && keys[0] == "weight_map") map = value;
    if (keys.size() == 2 && keys[0] == "metadata" && keys[1] == "total_size") size = value;
  }));
  std::vector<JsonEdit> edits;
  if (size) {
    edits.push_back({.begin = size->begin, .length = size->text.size(), .text = std::to_string(total_size)});
  } else if (metadata && metadata->kind == JsonKind::object) {
    const bool empty = metadata->text.find('"') == std::string_view::npos;
    edits.push_back({.begin = metadata->begin + 1,
                     .length = 0,
                     .text = fmt::format("\"total_size\": {}{}", total_size, empty ? "" : ", ")});
  } else if (metadata) {
    edits.push_back({.begin = metadata->begin,
                     .length = metadata->text.size(),
                     .text = fmt::format("{{\"total_size\": {}}}", total_size)});
  } else {
    edits.push_back({.begin = document.begin + 1,
                     .length = 0,
                     .text = fmt::format("\n  \"metadata\": {{\"total_size\": {}}},", total_size)});
  }
  if (map && !weight_map.empty()) {
    edits.push_back({.begin = map->begin, .length = map->text.size(), .text = map_text(weight_map)});
  }
  return edited(text, std::move(edits));
}

}  // namespace tensorcast::checkpoint
