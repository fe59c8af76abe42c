// SPDX-License-Identifier: Apache-2.0
// The index of a sharded model: which file has which tensor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorcast/error.hpp"

namespace tensorcast::checkpoint {

inline constexpr std::uint64_t max_index_bytes = std::uint64_t{64} << 20;  // of 600,000 tensors, at 100 each

// Tensor and file, in the order of the index.
using WeightMap = std::vector<std::pair<std::string, std::string>>;

// Errors: parse (not an index, a tensor twice, a file name that leads out of the folder); `path` is for messages.
[[nodiscard]] Result<WeightMap> parse_index(std::string_view text, const std::string& path);

// Returns `text` with another total size and, if `weight_map` is not empty, another map; everything else stays. An
// empty `text` gives a new index. Errors: parse.
[[nodiscard]] Result<std::string> rewritten_index(std::string_view text, std::uint64_t total_size,
                                                  const std::map<std::string, std::string>& weight_map);

}  // namespace tensorcast::checkpoint
