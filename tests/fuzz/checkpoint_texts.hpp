// SPDX-License-Identifier: Apache-2.0
// The texts that a checkpoint's folder has, from arbitrary bytes. For each, the result is an error with a message, or
// something that is the same after it was written and read again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "checkpoint/compare/statement.hpp"
#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/plan/config_file.hpp"
#include "checkpoint/source/index_file.hpp"
#include "checkpoint/source/json_tree.hpp"
#include "io/written_files.hpp"

namespace tensorcast::checkpoint::fuzzing {

inline void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
bool is_read(const Result<T>& result) {
  require(result.ok() || (!result.error().message.empty() && result.error().code != ErrorCode::internal));
  return result.ok();
}

// An index: what is rewritten has the same map, or the new one.
inline void read_index(std::string_view text) {
  const Result<WeightMap> map = parse_index(text, "index");
  if (!is_read(map)) return;
  const Result<std::string> same = rewritten_index(text, 7, {});
  require(same.ok());
  const Result<WeightMap> again = parse_index(*same, "index");
  require(again.ok() && *again == *map);
  const std::map<std::string, std::string> other = {{"a \"tensor\"", "a file"}};
  const Result<std::string> changed = rewritten_index(text, 7, other);
  require(changed.ok());
  const Result<WeightMap> named = parse_index(*changed, "index");
  require(named.ok() && named->size() == 1 && named->front().second == "a file");
}

// A config: no change gives anything but what is meant, and made twice it is what it was made once.
inline void read_config(std::string_view text) {
  const std::string modules[] = {"a", "b \"c\""};
  const auto changes = {
      PlannedConfig{.name = "config.json", .dtype = DType::bfloat16},
      PlannedConfig{.name = "config.json", .unquantized = true},
      PlannedConfig{.name = "quant_config.json", .decoded = {std::begin(modules), std::end(modules)}},
      PlannedConfig{.name = "config.json", .section = "{\"ignore\":[]}"},
  };
  for (const PlannedConfig& change : changes) {
    const Result<std::string> once = rewritten_config(text, change);
    if (!is_read(once)) continue;
    const Result<std::string> twice = rewritten_config(*once, change);
    require(twice.ok());
    require(!change.section.empty() || *twice == *once);  // a section goes to the end, on a line of its own
  }
}

// What is written of the object that `parse` makes gives the same text when it is read again.
template <class Parse, class Write>
void read_twice(std::string_view text, Parse parse, Write write) {
  const auto once = parse(std::string(text), "file");
  if (!is_read(once)) return;
  const std::string written = write(*once);
  const auto again = parse(written, "file");
  require(again.ok() && write(*again) == written);
}

// The first byte chooses.
inline void read_text(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch ((data[0] + 2) % 5) {  // the digits 0 to 4
    case 0:
      return read_index(text);
    case 1:
      return read_config(text);
    case 2:
      return read_twice(text, parse_plan, plan_text);
    case 3:
      return read_twice(text, io::parse_written_files, io::written_files_text);
    default:
      return read_twice(text, parse_statement, statement_text);
  }
}

}  // namespace tensorcast::checkpoint::fuzzing
