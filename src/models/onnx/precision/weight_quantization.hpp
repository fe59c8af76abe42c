// Makes weights int8 with a scale for each output channel: x is about q * scale, with q from -127 to 127.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <memory>
#include <vector>

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

struct Quantization {
  bool per_channel = true;
  std::size_t axis = 0;       // of the channels
  std::uint64_t inner = 1;    // elements from a channel to the next
  std::vector<float> scales;  // one per channel; one in all without channels

  [[nodiscard]] float scale_of(std::uint64_t element) const noexcept {
    return scales[static_cast<std::size_t>(element / inner % scales.size())];
  }
};

// Returns the axis of the output channels of a weight that is input `index` of `node`.
[[nodiscard]] std::size_t channel_axis(const Node& node, std::size_t index, std::size_t rank);

// Reads the weight once. Returns null if it has an infinity or NaN, which int8 cannot hold. Errors: parse, unsupported,
// io.
[[nodiscard]] Result<std::shared_ptr<const Quantization>> find_scales(const io::InputFile& file,
                                                                      formats::onnx::ByteRange tensor, std::size_t axis,
                                                                      bool per_channel);

// Converts elements from `first` on. `codes` has room for all of `numbers`.
void quantize(const Quantization& quantization, std::uint64_t first, const std::vector<double>& numbers,
              std::vector<std::byte>& codes);

}  // namespace tensorcast::models::onnx
