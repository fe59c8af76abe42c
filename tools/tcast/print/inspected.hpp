// SPDX-License-Identifier: Apache-2.0
// A tensor that `tcast inspect` lists.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "print/difference_text.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// A tensor, and its statistics if they were requested and it has numbers.
struct Inspected {
  tensorcast::TensorSummary summary;
  std::optional<tensorcast::TensorStats> stats;
  std::vector<Specials> specials = {};  // of each candidate
  std::string file = {};                // of a checkpoint: the shard with the tensor
};

[[nodiscard]] std::string shown_name(const tensorcast::TensorSummary& tensor);

}  // namespace tcast
