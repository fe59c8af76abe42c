// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/tensor_set.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/store/file_name.hpp"
#include "dtype/errors.hpp"
#include "quantized/layout/quantization_claim.hpp"

namespace tensorcast::checkpoint {

void add_model(const SourceCheckpoint& checkpoint, const SourceModel& model, ShardReader& reader) {
  for (const std::size_t index : model.shards) {
    const SourceShard& shard = checkpoint.shards[index];
    const std::size_t file = reader.add_file(
        {.folder = checkpoint.folder, .name = shard.name, .bytes = shard.bytes, .version = shard.version});
    for (std::size_t i = 0; i < shard.header.tensors.size(); ++i) {
      reader.add_tensor(shard.header.tensors[i], file, shard.data_begin + shard.header.begin_offsets[i]);
    }
    reader.add_metadata(shard.header.metadata);
  }
}

Claims::Claims(const SourceCheckpoint& checkpoint) : checkpoint_(checkpoint) {
  for (const ListedFile& file : checkpoint.others) {
    if (!file_conversion::may_claim_quantization(last_component(file.name))) continue;
    configs_[folder_of(file.name)].push_back(file.name);
  }
}

const std::string& Claims::of_folder(const SourceModel& model) {
  const auto [found, is_new] =
      claims_.try_emplace({model.folder, file_conversion::may_describe("params.json", model.stem)});
  std::string& claim = found->second;
  const auto configs = configs_.find(model.folder);
  if (!is_new || configs == configs_.end()) return claim;
  for (const std::string& name : configs->second) {
    if (!claim.empty()) break;
    if (!file_conversion::may_describe(last_component(name), model.stem)) continue;
    const Result<std::unique_ptr<StoredFile>> opened = open_source(checkpoint_.folder, name);
    if (!opened) continue;  // copying it will tell
    const Result<std::string> text = read_text(**opened, max_config_bytes);
    if (text) {
      claim = file_conversion::claim_of_text(last_component(name), *text);
    } else if ((*opened)->size() > max_config_bytes) {
      claim = fmt::format("{} is not read: {}", last_component(name), text.error().message);
    }
  }
  return claim;
}

std::string Claims::of(const SourceModel& model) {
  std::string claim = of_folder(model);
  for (const std::size_t index : model.shards) {
    if (claim.empty()) claim = file_conversion::claim_of_metadata(checkpoint_.shards[index].header.metadata);
  }
  return claim;
}

std::vector<quantized::ConfigText> Claims::texts_of(const SourceModel& model) const {
  std::vector<quantized::ConfigText> texts;
  if (const auto configs = configs_.find(model.folder); configs != configs_.end()) {
    for (const std::string& name : configs->second) {
      if (!file_conversion::may_describe(last_component(name), model.stem)) continue;
      const Result<std::unique_ptr<StoredFile>> opened = open_source(checkpoint_.folder, name);
      if (!opened) continue;  // copying it will tell
      Result<std::string> text = read_text(**opened, max_config_bytes);
      if (text) texts.push_back({.name = last_component(name), .text = std::move(text).value()});
    }
  }
  for (const std::size_t index : model.shards) {
    file_conversion::add_config_texts(checkpoint_.shards[index].header.metadata, texts);
  }
  file_conversion::add_accepted(checkpoint_.accepted, texts);
  return texts;
}

quantized::FoundLayers layers_of(const Claims& claims, const SourceModel& model, ShardReader& reader) {
  return quantized::find_layers(reader.tensors(), claims.texts_of(model), quantized::read_with(reader));
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
