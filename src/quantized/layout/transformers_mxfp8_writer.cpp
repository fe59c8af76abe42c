// SPDX-License-Identifier: Apache-2.0
// Writes MXFP8 as transformers and MiniMax have it.
#include "quantized/layout/config.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {

void spell_transformers_mxfp8(const LayerContent& content, WrittenLayer& written) {
  if (content.scheme != "mxfp8" || content.element != Element::e4m3) return refuse_scheme(content, written, "mxfp8");
  const std::string module = module_of(content.name);
  written.layer.name = tensor_of(module, "weight");
  add_tensor(written, PartRole::codes, written.layer.name, DType::float8_e4m3fn, content.shape);
  add_tensor(written, PartRole::scales, tensor_of(module, "weight_scale_inv"), DType::uint8, grid_shape(content));
}

void describe_transformers_mxfp8(const WrittenModel& model, WrittenConfig& config) {
  const Json section = {{"quant_method", "mxfp8"},
                        {"activation_scheme", "dynamic"},
                        {"weight_block_size", {1, 32}},
                        {"modules_to_not_convert", model.unquantized}};
  config.section = section.dump();
}

}  // namespace tensorcast::quantized
