// SPDX-License-Identifier: Apache-2.0
// Parses the header's text into entries, before anything is compared with the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"

namespace tensorcast::formats::safetensors {

struct HeaderEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct ParsedHeader {
  std::vector<HeaderEntry> entries;  // in the header's order; names may repeat
  Metadata metadata;
};

// Memory is proportional to the size of the text; nesting fails as soon as it is too deep.
[[nodiscard]] Result<ParsedHeader> parse_header_json(std::string_view json);

}  // namespace tensorcast::formats::safetensors
