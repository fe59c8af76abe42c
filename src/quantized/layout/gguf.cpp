// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks, which have their scales inside: one tensor is a layer, and its type is the scheme.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "dtype/lower_case.hpp"
#include "quantized/layout/stored_scheme.hpp"
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
    builder.layer().coding = format->coding;
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

void spell_gguf(const LayerContent& content, WrittenLayer& written) {
  const BlockFormat* format = find_block_format(content.scheme, "gguf");
  if (format == nullptr) return refuse_scheme(content, written, "types of ggml such as mxfp4, nvfp4 and q4_k");
  const GgufBlockSize size = block_size(format->coding.gguf);
  need_whole_groups(content, size.elements, written);
  constexpr std::size_t most_dimensions = 4;
  written.need(content.shape.size() <= most_dimensions, "GGUF has up to {} dimensions", most_dimensions);
  const std::string module = module_of(content.name);
  written.layer.coding = format->coding;
  written.layer.block_rows = 1;
  written.layer.block_columns = size.elements;
  WrittenTensor& codes = add_tensor(written, PartRole::codes, content.name, DType::uint8, content.shape);
  codes.info.dtype = DType::undefined;
  codes.info.foreign_dtype = content.scheme;
  for (char& c : codes.info.foreign_dtype) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  codes.info.bytes = codes.info.count / size.elements * size.bytes;
  if (content.coding.global != GlobalScale::none) {
    const auto globals = static_cast<std::int64_t>(content.globals);
    add_tensor(written, PartRole::global_scale, tensor_of(module, "scale"), DType::float32, {globals});
    written.layer.coding.global = GlobalScale::factor;
  }
  add_input_scale(content, written, "input_scale", {1});
}

}  // namespace

constinit const Spelling layouts::gguf = {
    .name = "gguf",
    .describes_itself = true,
    .find = find_gguf,
    .spell = spell_gguf,
    .has_kernels = true,
    .is_of_gguf = true,
    .joins_weights = false,
};

}  // namespace tensorcast::quantized
