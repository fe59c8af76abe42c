// SPDX-License-Identifier: Apache-2.0
// A layer of a plan: its rule, and what it alone has.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/plan/layer_rule.hpp"
#include "convert/plan/file_plan.hpp"
#include "quantized/rewrite/respelling.hpp"

namespace tensorcast::checkpoint {

struct LayerPart {
  formats::TensorInfo info;
  std::size_t input = 0;    // index in CheckpointPlan::inputs
  std::uint64_t begin = 0;  // of its bytes in that file
};

// A layer as it is read: `layer.parts[i].tensor` is i. Parts that only activations or loaders need are left out, unless
// a written tensor comes from them.
struct SourceLayer {
  quantized::Layer layer;
  std::vector<LayerPart> parts;

  [[nodiscard]] std::uint64_t bytes() const noexcept;
};

struct PartPlace {
  std::size_t input = 0;    // index in CheckpointPlan::inputs
  std::uint64_t begin = 0;  // of its bytes in that file
  bool as_layer = true;     // its shape is that of the layer
  std::vector<std::int64_t> shape = {};
};

struct PlannedLayer {
  std::size_t rule = 0;  // index in LayerTable::rules
  std::string name;      // of the weight
  std::vector<std::int64_t> shape;
  std::vector<PartPlace> parts;            // as those of the rule
  std::vector<std::size_t> siblings = {};  // layers of the table that share its tensor scale
  // What few layers have.
  struct Rest {
    std::string new_name;                                     // in the output, of a layer that is decoded; "": the same
    float nested_offset = 0.0F;                               // as in quantized::Layer
    std::vector<int> exponents;                               // as in ScaleChange
    std::map<std::size_t, std::vector<std::byte>> constants;  // of tensors that are written
    std::string choice;                                       // as TensorOutcome
    std::string importance;                                   // ImportanceEntry::name; "": none
    std::int64_t importance_row = -1;

    friend bool operator==(const Rest&, const Rest&) = default;
  };
  std::shared_ptr<const Rest> rest = nullptr;  // null: nothing of it

  void set_rest(Rest all) {
    if (all != Rest()) rest = std::make_shared<const Rest>(std::move(all));
  }
};

struct LayerTable {
  std::vector<LayerRule> rules;
  std::vector<PlannedLayer> layers;
};

// A tensor of a shard.
struct ShardTensor {
  file_conversion::PlannedTensor planned;  // its layer is a row of the table
  // Where it is; of what is made of a layer, its codes.
  std::size_t input = 0;    // index in CheckpointPlan::inputs
  std::uint64_t begin = 0;  // of its bytes in that file
};

// Returns how a layer is read.
[[nodiscard]] SourceLayer source_of(const LayerTable& table, const PlannedLayer& layer);
// Returns what a layer becomes that is not decoded. Errors: parse: its row does not fit its rule.
[[nodiscard]] Result<quantized::RespelledLayer> becomes_of(const LayerTable& table, const PlannedLayer& layer);
// Returns all tensors that the layer of a row becomes. Errors: as becomes_of().
[[nodiscard]] Result<std::vector<ShardTensor>> tensors_of(const LayerTable& table, std::size_t row);

// As the plan's text has it, and back. `read_layer_row` throws Json::exception, or returns false if a value is not one
// that a plan has; ranges of parts and siblings are for the caller to check.
[[nodiscard]] nlohmann::ordered_json layer_row_json(const PlannedLayer& layer);
[[nodiscard]] bool read_layer_row(const nlohmann::json& json, PlannedLayer& layer);

}  // namespace tensorcast::checkpoint
