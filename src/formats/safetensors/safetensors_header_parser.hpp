// Text to entries: the grammar of the header, before anything is compared with the file.
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
  std::vector<HeaderEntry> entries;  // in the header's order; names may still repeat
  Metadata metadata;
};

// Memory is proportional to the text, whatever it says; nesting is refused as soon as it is too deep.
// Errors: parse.
[[nodiscard]] Result<ParsedHeader> parse_header_json(std::string_view json);

}  // namespace tensorcast::formats::safetensors
