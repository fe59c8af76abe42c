// SPDX-License-Identifier: Apache-2.0
// gpt-oss: X_blocks [experts, N, K / 32, 16] and X_scales, of which transformers holds the transpose; original files
// have X.blocks and X.scales, and no transpose.
#include <fmt/format.h>

#include "quantized/layout/config.hpp"
#include "quantized/layout/stored_scheme.hpp"

namespace tensorcast::quantized {
namespace {

constexpr StoredScheme mxfp4_of_gpt_oss = {.scheme = "mxfp4", .coding = mx_coding(DType::float4_e2m1fn, 4)};

void find_gpt_oss(const ModelTensors& tensors, const Description* /*description*/, std::vector<Layer>& layers) {
  constexpr std::int64_t block = 32, block_bytes = 16;
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    const bool transposed = name.ends_with("_blocks");
    if (!transposed && !name.ends_with(".blocks")) continue;
    const std::string base = name.substr(0, name.size() - std::string_view("_blocks").size());
    const std::optional<std::size_t> scales = tensors.find(base + (transposed ? "_scales" : ".scales"));
    const std::vector<std::int64_t>& shape = tensors[i].shape;
    if (!scales || shape.size() < 3 || shape.back() != block_bytes) continue;
    LayerBuilder builder(tensors, "gpt-oss", base, i, scales);
    Layer& layer = builder.layer();
    layer.scheme = mxfp4_of_gpt_oss.scheme;
    layer.block_rows = 1;
    layer.block_columns = block;
    layer.coding = mxfp4_of_gpt_oss.coding;
    layer.coding.transposed = transposed;
    builder.need_codes_of({DType::uint8}, 4);
    builder.check_scale_type(scales, true);
    layer.shape.assign(shape.begin(), shape.end() - 1);
    const std::int64_t blocks = layer.shape.back();
    if (__builtin_mul_overflow(blocks, block, &layer.shape.back())) builder.fail("its shape is too large");
    builder.check_grid(scales, "MXFP4");
    if (transposed && builder.ok()) std::swap(layer.shape[layer.shape.size() - 1], layer.shape[layer.shape.size() - 2]);
    layers.push_back(std::move(builder).done());
  }
}

void spell_gpt_oss(const LayerContent& content, WrittenLayer& written) {
  constexpr std::int64_t block = 32, block_bytes = 16;
  if (content.scheme != mxfp4_of_gpt_oss.scheme) return refuse_scheme(content, written, mxfp4_of_gpt_oss.scheme);
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
  layer.coding.transposed = experts;
  if (experts) std::swap(layer.shape[layer.shape.size() - 1], layer.shape[layer.shape.size() - 2]);
  add_tensor(written, PartRole::codes, base + (experts ? "_blocks" : ".blocks"), DType::uint8, std::move(shape));
  add_tensor(written, PartRole::scales, base + (experts ? "_scales" : ".scales"), DType::uint8, std::move(scales));
}

void describe_gpt_oss(const WrittenModel& model, WrittenConfig& config) {
  config.section = Json{{"quant_method", "mxfp4"}, {"modules_to_not_convert", model.unquantized}}.dump();
}

}  // namespace

constinit const Spelling layouts::gpt_oss = {
    .name = "gpt-oss",
    .methods = {{.name = "mxfp4", .list = "modules_to_not_convert", .list_is_open = true}},
    .describes_itself = true,
    .find = find_gpt_oss,
    .spell = spell_gpt_oss,
    .describe = describe_gpt_oss,
    .has_transposed_experts = true};

}  // namespace tensorcast::quantized
