// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/tensor_set.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/store/file_name.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "quantized/layout/quantization_claim.hpp"

namespace tensorcast::checkpoint {

void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader) {
  for (const std::size_t index : model.shards) {
    const SourceShard& shard = checkpoint.shards[index];
    const std::size_t file = reader.add_file(checkpoint.folder, shard);
    for (std::size_t i = 0; i < shard.header.tensors.size(); ++i) {
      reader.add_tensor(shard.header.tensors[i], file, shard.data_begin + shard.header.begin_offsets[i]);
    }
    reader.add_metadata(shard.header.metadata);
  }
}

OpenedModel open_model(const SourceCheckpoint& checkpoint, const SourceModel& model) {
  auto reader = std::make_unique<ShardReader>();
  add_model(checkpoint, model, *reader);
  const ShardReader* const shards = reader.get();
  OpenedModel opened{.input = {.file = nullptr, .format = &formats::safetensors_format, .reader = std::move(reader)},
                     .shards = shards};
  file_conversion::OpenedInput& input = opened.input;
  for (const ListedFile& file : checkpoint.others) {
    const std::string name = last_component(file.name);
    if (folder_of(file.name) != model.folder || !file_conversion::may_describe(name, model.stem)) continue;
    const Result<StoredFile> source = open_source(checkpoint.folder, file.name);
    Result<std::string> text = source ? read_text(*source, max_config_bytes) : source.error();
    if (text) {
      if (input.claim.empty()) input.claim = file_conversion::claim_of_text(name, *text);
      input.configs.push_back({.name = name, .text = *std::move(text)});
      continue;
    }
    opened.unread = fmt::format("{} is not read: {}", name, text.error().message);
    // Of others, copying will tell.
    if (input.claim.empty() && source && source->size() > max_config_bytes) input.claim = opened.unread;
  }
  for (const std::size_t index : model.shards) {
    const formats::Metadata& metadata = checkpoint.shards[index].header.metadata;
    if (input.claim.empty()) input.claim = file_conversion::claim_of_metadata(metadata);
    file_conversion::add_config_texts(metadata, input.configs);
  }
  file_conversion::add_accepted(checkpoint.accepted, input.configs);
  return opened;
}

Result<OpenedModel> open_model_file(const std::string& path) {
  return OpenedModel{.input = TRY(file_conversion::open_model_file(path))};
}

std::string OpenedModel::file_of(const std::string& name) const {
  const std::vector<formats::TensorInfo>& tensors = input.reader->tensors();
  const auto tensor = std::ranges::find(tensors, name, &formats::TensorInfo::name);
  if (tensor != tensors.end()) return path_of(static_cast<std::size_t>(tensor - tensors.begin()));
  for (const quantized::Layer& layer : layers().layers) {
    if (layer.name == name) return path_of(layer.codes());
  }
  return {};
}

void keep_decoded(quantized::FoundLayers& layers, std::span<const formats::TensorInfo> tensors,
                  const std::function<bool(const std::string& name)>& is_there) {
  std::vector<quantized::Layer> decoded;
  std::ranges::fill(layers.layer_of, std::nullopt);
  for (quantized::Layer& layer : layers.layers) {
    const auto scales = std::ranges::find(layer.parts, quantized::PartRole::scales, &quantized::Part::role);
    const bool inside = layer.coding.packing == BlockPacking::gguf;  // its scales are
    if (!layer.problem.empty() || !is_there(layer.name)) continue;
    if (!inside && (scales == layer.parts.end() || is_there(tensors[scales->tensor].name))) continue;
    for (const quantized::Part& part : layer.parts) layers.layer_of[part.tensor] = decoded.size();
    decoded.push_back(std::move(layer));
  }
  layers.layers = std::move(decoded);
}

std::string name_prefix(const SourceModel& model) {
  // Variants of a model, such as model.fp16.safetensors, have tensors of the same names.
  const std::size_t dot = model.stem.find('.');
  return model.folder + (dot == std::string::npos ? "" : model.stem.substr(dot + 1) + ":");
}

Result<const SourceModel*> only_model(std::span<const SourceModel* const> chosen, const std::string& path,
                                      const std::string& hint) {
  if (chosen.size() == 1) return chosen.front();
  Error error = unsupported("no tensor is chosen");
  if (!chosen.empty()) {
    std::string names;
    for (const SourceModel* model : chosen) {
      names += fmt::format("{}\"{}{}\"", names.empty() ? "" : ", ", model->folder, model->stem);
    }
    error = unsupported(fmt::format("a file holds one model, and the folder has {}: {}", chosen.size(), names), hint);
  }
  error.file = path;
  return error;
}

}  // namespace tensorcast::checkpoint
