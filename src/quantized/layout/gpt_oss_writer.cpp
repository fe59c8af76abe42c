// SPDX-License-Identifier: Apache-2.0
// Writes MXFP4 as gpt-oss has it: experts in one tensor, of which transformers holds the transpose; in original files
// and for single matrices, X.blocks and no transpose.
#include "quantized/layout/config.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {

void spell_gpt_oss(const LayerContent& content, WrittenLayer& written) {
  constexpr std::int64_t block = 32, block_bytes = 16;
  if (content.scheme != "mxfp4") return refuse_scheme(content, written, "mxfp4");
  need_whole_groups(content, block, written);
  // The weights of original files are named "block.0.mlp.mlp1_weight".
  const std::string module = module_of(content.name);
  const bool experts = content.shape.size() > 2 && !module.empty() && !module.ends_with("_weight");
  const std::string base = experts || module.ends_with("_weight") ? module : content.name;
  std::vector<std::int64_t> shape = content.shape;
  shape.back() /= block;
  std::vector<std::int64_t> scales = shape;
  shape.push_back(block_bytes);
  Layer& layer = written.layer;
  layer.name = base;
  layer.coding.packing = Packing::low_nibble_first;
  layer.coding.transposed = experts;
  if (experts) std::swap(layer.shape[layer.shape.size() - 1], layer.shape[layer.shape.size() - 2]);
  add_tensor(written, PartRole::codes, base + (experts ? "_blocks" : ".blocks"), DType::uint8, std::move(shape));
  add_tensor(written, PartRole::scales, base + (experts ? "_scales" : ".scales"), DType::uint8, std::move(scales));
}

void describe_gpt_oss(const WrittenModel& model, WrittenConfig& config) {
  config.section = Json{{"quant_method", "mxfp4"}, {"modules_to_not_convert", model.unquantized}}.dump();
}

}  // namespace tensorcast::quantized
