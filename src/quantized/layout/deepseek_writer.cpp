// SPDX-License-Identifier: Apache-2.0
// Writes DeepSeek's float8, and MXFP4 as the experts of DeepSeek-V4.
#include <fmt/format.h>

#include "quantized/layout/config.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {

void spell_deepseek(const LayerContent& content, WrittenLayer& written) {
  const std::string module = module_of(content.name);
  const std::string weight = tensor_of(module, "weight");
  Coding& coding = written.layer.coding;
  if (content.scheme == "mxfp4") {
    need_whole_groups(content, 32, written);
    coding.packing = Packing::low_nibble_first;
    add_tensor(written, PartRole::codes, weight, DType::int8, packed_shape(content, 2, 1));
    add_tensor(written, PartRole::scales, tensor_of(module, "scale"), DType::float8_e8m0fnu, grid_shape(content));
  } else if ((content.scheme == "fp8-block" || content.scheme == "fp8-tensor") && content.element == Element::e4m3) {
    const bool whole = content.scheme == "fp8-tensor";
    add_tensor(written, PartRole::codes, weight, DType::float8_e4m3fn, content.shape);
    add_tensor(written, PartRole::scales, tensor_of(module, content.beside_mxfp4 ? "scale" : "weight_scale_inv"),
               content.scales, whole ? std::vector<std::int64_t>() : grid_shape(content));
    if (content.input_scale != GlobalScale::none) {
      add_tensor(written, PartRole::activations, tensor_of(module, "input_scale"), DType::float32, {});
    }
  } else {
    refuse_scheme(content, written, "fp8-block, fp8-tensor and mxfp4");
  }
  written.layer.name = weight;
}

void describe_deepseek(const WrittenModel& model, WrittenConfig& config) {
  Json section = {{"quant_method", "fp8"}, {"fmt", "e4m3"}};
  const Layer* block = nullptr;
  bool only_tensors = true, has_inputs = true;
  for (const Layer& layer : model.layers) {
    if (layer.scheme == "fp8-block" && block == nullptr) block = &layer;
    only_tensors = only_tensors && layer.scheme == "fp8-tensor";
    has_inputs = has_inputs && layer.find(PartRole::activations);
  }
  constexpr std::int64_t usual = 128;
  const std::int64_t rows = block == nullptr ? usual : block->block_rows;
  const std::int64_t columns = block == nullptr ? usual : block->block_columns;
  if (!only_tensors) section["weight_block_size"] = {rows, columns};
  section["activation_scheme"] = only_tensors && has_inputs ? "static" : "dynamic";
  if (!model.scale_format.empty()) section["scale_fmt"] = model.scale_format;
  section["modules_to_not_convert"] = model.unquantized;
  config.section = section.dump();
}

}  // namespace tensorcast::quantized
