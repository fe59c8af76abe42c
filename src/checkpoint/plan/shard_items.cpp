// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/plan/shard_items.hpp"

#include <utility>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"

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

Result<std::vector<ShardTensor>> tensors_of(const LayerTable& table, const std::vector<ShardItem>& items) {
  std::vector<ShardTensor> given;
  TRY(for_each_tensor(table, items, [&](ShardTensor tensor) { given.push_back(std::move(tensor)); }));
  std::vector<formats::TensorInfo> targets;
  targets.reserve(given.size());
  for (ShardTensor& tensor : given) targets.push_back(std::move(tensor.planned.target));
  TRY(formats::safetensors_format.check(targets));
  const std::vector<std::size_t> layout = formats::safetensors_format.layout(targets);
  for (std::size_t i = 0; i < given.size(); ++i) given[i].planned.target = std::move(targets[i]);
  std::vector<ShardTensor> ordered;
  ordered.reserve(given.size());
  for (const std::size_t index : layout) ordered.push_back(std::move(given[index]));
  return ordered;
}

}  // namespace tensorcast::checkpoint
