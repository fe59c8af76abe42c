// SPDX-License-Identifier: Apache-2.0
// Writes ggml's blocks, which have their scales inside; a scale of the whole tensor is a tensor of its own.
#include <cctype>

#include <fmt/format.h>

#include "quantized/layout/written_layer.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {

void spell_gguf(const LayerContent& content, WrittenLayer& written) {
  const BlockFormat* format = find_block_format(content.scheme, "gguf");
  if (format == nullptr) return refuse_scheme(content, written, "types of ggml such as mxfp4, nvfp4 and q4_k");
  const GgufBlockSize size = block_size(format->coding.gguf);
  need_whole_groups(content, size.elements, written);
  constexpr std::size_t most_dimensions = 4;
  if (content.shape.size() > most_dimensions && written.ok()) {
    written.refusal = fmt::format("GGUF has up to {} dimensions", most_dimensions);
  }
  const std::string module = module_of(content.name);
  written.layer.coding = {};
  written.layer.coding.packing = Packing::gguf;
  written.layer.block_rows = 1;
  written.layer.block_columns = size.elements;
  WrittenTensor& codes = add_tensor(written, PartRole::codes, content.name, DType::uint8, content.shape);
  codes.info.dtype = DType::undefined;
  codes.info.foreign_dtype = content.scheme;
  for (char& c : codes.info.foreign_dtype) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  codes.info.bytes = codes.info.count / size.elements * size.bytes;
  if (content.global != GlobalScale::none) {
    const auto globals = static_cast<std::int64_t>(content.globals);
    add_tensor(written, PartRole::global_scale, tensor_of(module, "scale"), DType::float32, {globals});
    written.layer.coding.global = GlobalScale::factor;
  }
  if (content.input_scale != GlobalScale::none) {
    add_tensor(written, PartRole::activations, tensor_of(module, "input_scale"), DType::float32, {1});
  }
}

}  // namespace tensorcast::quantized
