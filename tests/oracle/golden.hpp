// SPDX-License-Identifier: Apache-2.0
// tests/golden/corners.tsv: hand-written conversions that oracle and engine must both give.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oracle.hpp"

namespace oracle {

struct Corner {
  int line = 0;
  Type from, to;
  std::uint64_t code = 0;
  tc_cast_options options;
  std::optional<std::uint64_t> result;  // nullopt: an error
};

std::vector<Corner> read_corners(const std::string& path);

// "0x7f" is a code, anything else a number that the type holds exactly or, for float32 and float64, is rounded to.
std::uint64_t parse_element(Type type, const std::string& word);
// "opset=23": sets one option. Throws std::invalid_argument for an unknown one.
void set_option(tc_cast_options& options, std::string_view assignment);

}  // namespace oracle
