// SPDX-License-Identifier: Apache-2.0
// Sorts what a checkpoint holds into tensors with names and plain data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/pytorch/pickle_values.hpp"

namespace tensorcast::formats::pytorch {

struct NamedTensor {
  std::string name;        // the keys that lead to it, with dots: "optimizer.state.0.exp_avg"; "" for a lone tensor
  std::size_t tensor = 0;  // index into Objects::tensors
  std::shared_ptr<const Error> problem = nullptr;  // why it is not read; `tensor` is then nothing
};

struct CheckpointTree {
  std::vector<NamedTensor> tensors;
  // Everything else as JSON, with null where a list has a tensor; "" if there is nothing else.
  std::string other_data;
  std::vector<std::string> warnings;  // objects that other_data only names, as sentences
};

// Objects of other classes that hold tensors are one tensor each, with a problem.
// Errors: parse (nested too deep, keys that no dict can have), unsupported (two tensors of one name, memory).
[[nodiscard]] Result<CheckpointTree> sort_checkpoint(const Objects& objects, Ref root);

}  // namespace tensorcast::formats::pytorch
