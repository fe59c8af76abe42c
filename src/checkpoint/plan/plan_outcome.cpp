// SPDX-License-Identifier: Apache-2.0
// What a plan says of its tensors and shards, as the outcome of a conversion has it.
#include <numeric>

#include "checkpoint/plan/checkpoint_plan.hpp"
#include "checkpoint/store/file_name.hpp"

namespace tensorcast::checkpoint {

std::vector<std::size_t> all_shards(const CheckpointPlan& plan) {
  std::vector<std::size_t> all(plan.shards.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

ConvertOutcome outcome_of(const CheckpointPlan& plan, std::span<const std::size_t> shards) {
  ConvertOutcome outcome;
  const bool is_torch = !plan.inputs.empty() && safetensors_name(plan.inputs[0].name) != plan.inputs[0].name;
  outcome.input_format = is_torch ? "pytorch" : "safetensors";
  outcome.output_format = "safetensors";
  std::size_t tensors = 0;
  for (const std::size_t index : shards) tensors += plan.shards[index].tensors;
  outcome.tensors.reserve(tensors);
  for (const std::size_t index : shards) {
    const PlannedShard& shard = plan.shards[index];
    outcome.shards.push_back(
        {.file = shard.name, .bytes_in = shard.source_bytes, .bytes_out = shard.bytes, .tensors = shard.tensors});
    // One by one, as they and their outcomes take as much memory.
    std::vector<std::size_t> places(shard.order.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[shard.order[i]] = outcome.tensors.size() + i;
    outcome.tensors.resize(outcome.tensors.size() + places.size());
    auto place = places.begin();
    const Result<void> done = for_each_tensor(plan.table, shard.items, [&](const ShardTensor& tensor) {
      TensorOutcome& one = outcome.tensors[*place++];
      one = file_conversion::planned_outcome(tensor.planned);
      one.file = shard.name;
    });
    static_cast<void>(done);  // a plan that was made or parsed has them all
  }
  outcome.left_out = plan.left_out;
  for (const ListedFile& file : plan.copies) outcome.copied_files.push_back(file.name);
  for (const PlannedConfig& config : plan.configs) outcome.rewritten_files.push_back(config.name);
  for (const PlannedModel& model : plan.models) {
    if (!model.index.empty()) outcome.rewritten_files.push_back(model.index);
  }
  return outcome;
}

}  // namespace tensorcast::checkpoint
