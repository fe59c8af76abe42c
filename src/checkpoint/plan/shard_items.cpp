// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/shard_items.hpp"

#include <utility>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {

void append_item(std::vector<ShardItem>& items, ShardItem item) {
  auto* const more = std::get_if<LayerTensors>(&item);
  auto* const last = items.empty() ? nullptr : std::get_if<LayerTensors>(&items.back());
  if (more == nullptr || last == nullptr || more->layer != last->layer) {
    items.push_back(std::move(item));
  } else {
    last->tensors.insert(last->tensors.end(), more->tensors.begin(), more->tensors.end());
  }
}

Result<void> for_each_tensor(const LayerTable& table, const std::vector<ShardItem>& items,
                             const std::function<void(ShardTensor)>& take) {
  for (const ShardItem& item : items) {
    if (const auto* plain = std::get_if<std::shared_ptr<const ShardTensor>>(&item)) {
      take(**plain);
      continue;
    }
    const auto& of_layer = std::get<LayerTensors>(item);
    std::vector<ShardTensor> all = TRY(tensors_of(table, of_layer.layer));
    for (std::size_t i = 0; i < all.size() && of_layer.tensors.empty(); ++i) take(std::move(all[i]));
    for (const std::size_t i : of_layer.tensors) {
      if (i >= all.size()) return parse_error("a layer has no such tensor");
      take(std::move(all[i]));
    }
  }
  return {};
}

}  // namespace tensorcast::checkpoint
