// SPDX-License-Identifier: Apache-2.0
// The tensors of a shard, as its plan has them: by themselves, or as those of a layer.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "checkpoint/plan/planned_layer.hpp"

namespace tensorcast::checkpoint {

struct LayerTensors {
  std::size_t layer = 0;             // index in LayerTable::layers
  std::vector<std::size_t> tensors;  // which of those that it becomes, ascending; empty: all
};

// Tensors are read as they are, without a layer.
using ShardItem = std::variant<std::shared_ptr<const ShardTensor>, LayerTensors>;

// Appends an item, joined with the last one if both are tensors of one layer.
void append_item(std::vector<ShardItem>& items, ShardItem item);

// Makes the tensors of a shard one by one, in the order of its items. Errors: parse: a row does not fit its rule, or
// there is no such tensor.
[[nodiscard]] Result<void> for_each_tensor(const LayerTable& table, const std::vector<ShardItem>& items,
                                           const std::function<void(ShardTensor)>& take);

}  // namespace tensorcast::checkpoint
