// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/opened_layers.hpp"

#include <utility>

#include "checkpoint/source/shard_reader.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "checkpoint/store/folder.hpp"
#include "dtype/try.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layout/open_input.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast::checkpoint {
namespace {

using formats::TensorInfo;
using quantized::PartRole;

std::string_view role_name(PartRole role) {
  switch (role) {
    case PartRole::codes:
      return "codes";
    case PartRole::scales:
      return "scales";
    case PartRole::global_scale:
      return "global_scale";
    case PartRole::zero_points:
      return "zero_points";
    case PartRole::biases:
      return "biases";
    case PartRole::group_index:
      return "group_index";
    case PartRole::table:
      return "table";
    case PartRole::nested_scales:
      return "nested_scales";
    case PartRole::nested_table:
      return "nested_table";
    case PartRole::state:
      return "state";
    case PartRole::activations:
      break;
  }
  return "activations";
}

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
      stored_parts.push_back({.role = role_name(part.role),
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

Result<OpenedLayers> open_checkpoint(const std::string& path, const std::vector<std::string>& skip_files) {
  SourceCheckpoint source = TRY(read_source(path, skip_files));
  OpenedLayers opened;
  auto reader = std::make_unique<ShardReader>();
  ShardReader& all = *reader;
  opened.stored = std::move(reader);
  const Claims claims(source);
  for (const SourceShard& shard : source.shards) file_conversion::add_record(shard.header.metadata, opened.record);
  for (const SourceModel& model : source.models) {
    const std::size_t first = all.tensors().size();
    add_model(source, model, all);
    ShardReader alone;
    add_model(source, model, alone);
    add(opened, layers_of(claims, model, alone), first, name_prefix(model));
  }
  return opened;
}

Result<OpenedLayers> open_one_file(const std::string& path, const std::shared_ptr<ByteSource>& source) {
  file_conversion::OpenedInput input = TRY(file_conversion::open_model_file(path, "", {}, source));
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

}  // namespace

Result<OpenedLayers> open_layers(const std::string& path, const std::vector<std::string>& skip_files) {
  return is_checkpoint(path) ? open_checkpoint(path, skip_files) : open_one_file(path, nullptr);
}

Result<OpenedLayers> open_layers(const std::shared_ptr<ByteSource>& source, const std::string& name) {
  return open_one_file(name, source);
}

}  // namespace tensorcast::checkpoint
