// SPDX-License-Identifier: Apache-2.0
// What many layers of a plan have in common: how they are read, and what becomes of them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "convert/select/reason.hpp"
#include "quantized/layer/layer.hpp"
#include "quantized/layout/written_layer.hpp"
#include "quantized/rewrite/quantizing.hpp"
#include "quantized/rewrite/respelled_codes.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::checkpoint {

// The name of a tensor of a layer.
struct TensorName {
  bool beside = false;  // it begins as the name of the layer does, up to its last dot, and `text` is the rest
  std::string text;

  [[nodiscard]] static TensorName of(const std::string& tensor, std::string_view layer);
  [[nodiscard]] std::string in(std::string_view layer) const;
};

// A tensor that is read, or that a written tensor comes from.
struct PartRule {
  quantized::PartRole role = quantized::PartRole::codes;
  DType type = DType::undefined;
  TensorName name;
};

struct DecodingRule {
  std::string scheme;  // as PlannedTensor::scheme
  DType to = DType::undefined;
  double scale = 1.0;
  file_conversion::Reason reason = {};
};

// Its codes stay. What it becomes follows from what it is.
struct RewritingRule {
  std::string scheme;  // as Decoded::scheme, if it was decoded
  const quantized::Spelling* writer = nullptr;
  quantized::ScaleChange::Kind change = quantized::ScaleChange::Kind::none;
  GlobalScale input_scale = GlobalScale::none;  // as in LayerContent
  bool beside_mxfp4 = false;                    // as in LayerContent
  bool zero_points = false;                     // some are not the middle, so they are written
};

// All that is written follows from these and the shape.
struct QuantizingRule {
  const quantized::Spelling* writer = nullptr;
  quantized::Quantizing quantizing;  // of its importance the file alone
  std::int64_t rotation = 0;         // as Deviations::rotation
  bool beside_mxfp4 = false;         // as in LayerContent
  bool dynamic_activations = false;  // as in LayerContent
};

struct LayerRule {
  quantized::Layer layer;  // as it is read, without name, shape, parts and nested_offset
  std::vector<PartRule> parts;
  std::variant<DecodingRule, RewritingRule, QuantizingRule> fate;
};

// As the plan's text has it, and back. `read_rule` throws Json::exception, or returns false if a value is not one that
// a plan has.
[[nodiscard]] nlohmann::ordered_json rule_json(const LayerRule& rule);
[[nodiscard]] bool read_rule(const nlohmann::json& json, LayerRule& rule);

}  // namespace tensorcast::checkpoint
