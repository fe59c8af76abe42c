// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/opened_layers.hpp"

#include <array>
#include <string_view>
#include <utility>

#include "checkpoint/source/shard_reader.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "checkpoint/store/folder.hpp"
#include "dtype/try.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layout/open_input.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::checkpoint {
namespace {

using formats::TensorInfo;
using quantized::PartRole;

constexpr auto role_names =
    std::to_array<std::string_view>({"codes", "scales", "global_scale", "zero_points", "biases", "group_index", "table",
                                     "nested_scales", "nested_table", "state", "activations"});
static_assert(role_names.size() == static_cast<std::size_t>(PartRole::activations) + 1);

// Adds the layers of a model whose tensors begin at `first`.
void add(OpenedLayers& opened, quantized::FoundLayers found, std::size_t first, const std::string& prefix) {
  const std::span<const TensorInfo> tensors = std::span(opened.stored->tensors()).subspan(first);
  for (const TensorInfo& tensor : tensors) opened.names.push_back(prefix + tensor.name);
  for (QuantizedLayer& summary : quantized::summary_of(found, tensors, prefix)) {
    opened.summaries.push_back(std::move(summary));
  }
  for (quantized::Layer& layer : found.layers) {
    std::vector<QuantizedPart>& stored_parts = opened.parts.emplace_back();
    for (quantized::Part& part : layer.parts) {
      const TensorInfo info = file_conversion::readable(tensors[part.tensor]);
      stored_parts.push_back({.role = role_names[static_cast<std::size_t>(part.role)],
                              .name = prefix + info.name,
                              .dtype = info.dtype,
                              .shape = info.shape,
                              .bytes = info.bytes});
      part.tensor += first;
    }
    opened.layers.push_back(std::move(layer));
  }
  if (opened.refusal.empty()) opened.refusal = std::move(found.refusal);
}

}  // namespace

Result<OpenedLayers> open_checkpoint_layers(const std::string& path, const OutputFilter& filter) {
  SourceCheckpoint source = TRY(read_source(path, filter.skip_files));
  source.accepted = filter.accept;
  OpenedLayers opened;
  auto reader = std::make_unique<ShardReader>();
  ShardReader& all = *reader;
  opened.stored = std::move(reader);
  for (const SourceShard& shard : source.shards) file_conversion::add_record(shard.header.metadata, opened.record);
  for (const SourceModel& model : source.models) {
    const std::size_t first = all.tensors().size();
    add_model(source, model, all);
    add(opened, open_model(source, model).layers(), first, name_prefix(model));
  }
  return opened;
}

Result<OpenedLayers> open_file_layers(const std::string& path, const OutputFilter& filter,
                                      const std::shared_ptr<ByteSource>& source) {
  file_conversion::OpenedInput input = TRY(file_conversion::open_model_file(path, "", {}, source));
  file_conversion::add_accepted(filter.accept, input.configs);
  quantized::FoundLayers found = file_conversion::layers_of(input);
  OpenedLayers opened;
  opened.file = std::move(input.file);
  opened.stored = std::move(input.reader);
  file_conversion::add_record(opened.stored->metadata(), opened.record);
  if (!input.format->many_tensors) {
    for (const TensorInfo& tensor : opened.stored->tensors()) opened.names.push_back(tensor.name);
    return opened;
  }
  add(opened, std::move(found), 0, "");
  return opened;
}

Result<OpenedLayers> open_layers(const std::string& path, const OutputFilter& filter) {
  return is_checkpoint(path) ? open_checkpoint_layers(path, filter) : open_file_layers(path, filter);
}

}  // namespace tensorcast::checkpoint
