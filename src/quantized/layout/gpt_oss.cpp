// SPDX-License-Identifier: Apache-2.0
// gpt-oss: X_blocks [experts, N, K / 32, 16] and X_scales, of which transformers holds the transpose; original files
// have X.blocks and X.scales, and no transpose.
#include <fmt/format.h>

#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {
namespace {

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
    LayerBuilder builder(tensors, "gpt-oss", base, i);
    Layer& layer = builder.layer();
    layer.scheme = "mxfp4";
    layer.parts.push_back({.role = PartRole::scales, .tensor = *scales});
    layer.block_rows = 1;
    layer.block_columns = block;
    layer.coding = {.element = Element::e2m1,
                    .bits = 4,
                    .packing = Packing::low_nibble_first,
                    .scales = ScaleType::e8m0,
                    .transposed = transposed};
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

}  // namespace

constinit const Spelling layouts::gpt_oss = {
    .name = "gpt-oss", .methods = {"mxfp4"}, .describes_itself = true, .find = find_gpt_oss};

}  // namespace tensorcast::quantized
