// SPDX-License-Identifier: Apache-2.0
// A tensor of a layer that gets another spelling or scheme, in a plan.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "checkpoint/plan/decoded_layer.hpp"
#include "quantized/rewrite/respelling.hpp"

namespace tensorcast::checkpoint {

struct WrittenPart {
  DecodedLayer source;                 // codes and scales as they are, or a weight that is quantized
  std::vector<DecodedLayer> siblings;  // layers that share its tensor scale
  std::shared_ptr<const quantized::RespelledLayer> layer;
  std::size_t tensor = 0;  // in layer->written.tensors
};

// As the plan's text has it, and back. `written_from_json` throws Json::exception, or returns nullptr if a value is not
// one that a plan has; ranges of parts are for the caller to check.
[[nodiscard]] nlohmann::ordered_json written_json(const WrittenPart& part);
[[nodiscard]] std::shared_ptr<WrittenPart> written_from_json(const nlohmann::json& json);

}  // namespace tensorcast::checkpoint
