// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks, which have their scales inside: one tensor is a layer, and its type is the scheme.
#include <algorithm>

#include "dtype/lower_case.hpp"
#include "quantized/layout/spelling.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

void find_gguf(const ModelTensors& tensors, const Description* /*description*/, std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    if (tensor.foreign_dtype.empty() || tensor.problem || tensor.shape.empty()) continue;
    const std::string scheme = lower_case(tensor.foreign_dtype);
    const BlockFormat* format = find_block_format(scheme, "gguf");
    if (format == nullptr || format->coding.gguf == GgufBlock::none) continue;
    const auto size = static_cast<std::int64_t>(block_size(format->coding.gguf).elements);
    LayerBuilder builder(tensors, "gguf", tensor.name, i);
    builder.layer().scheme = std::move(scheme);
    builder.layer().shape = tensor.shape;
    builder.layer().block_rows = 1;
    builder.layer().block_columns = size;
    builder.layer().coding.packing = Packing::gguf;
    // llama.cpp multiplies what a layer computes by this scale.
    if (const std::optional<std::string> module = module_with(tensor.name, "weight")) {
      const std::optional<std::size_t> scale = builder.add(tensor_of(*module, "scale"), PartRole::global_scale);
      if (scale) {
        builder.fail("its scale multiplies what the layer computes, and is not applied", scale);
        builder.layer().other_basis = true;
      }
    }
    layers.push_back(std::move(builder).done());
  }
}

}  // namespace

constinit const Spelling layouts::gguf = {.name = "gguf", .describes_itself = true, .find = find_gguf};

}  // namespace tensorcast::quantized
