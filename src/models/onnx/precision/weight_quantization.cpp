#include "models/onnx/precision/weight_quantization.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "models/onnx/precision/tensor_conversion.hpp"

namespace tensorcast::models::onnx {
namespace {

constexpr double largest_code = 127.0;

}  // namespace

std::size_t channel_axis(const Node& node, std::size_t index, std::size_t rank) {
  const Attribute* transposed = node.attribute("transB");
  std::size_t axis = 0;  // Conv, Gather and others
  if (node.op_type == "MatMul") axis = index == 1 ? rank - 1 : rank - 2;
  if (node.op_type == "Gemm") axis = index == 1 && (transposed == nullptr || transposed->i == 0) ? 1 : 0;
  if (node.op_type == "ConvTranspose") axis = 1;
  return std::min(axis, rank - 1);
}

Result<std::shared_ptr<const Quantization>> find_scales(const io::InputFile& file, formats::onnx::ByteRange tensor,
                                                        std::size_t axis, bool per_channel) {
  auto found = std::make_shared<Quantization>();
  std::vector<double> largest;
  bool finite = true;
  const auto begin = [&](const std::vector<std::int64_t>& shape) {
    found->per_channel = per_channel;
    found->axis = axis;
    std::size_t channels = 1;
    if (per_channel) {
      channels = static_cast<std::size_t>(shape[axis]);
      for (std::size_t i = axis + 1; i < shape.size(); ++i) found->inner *= static_cast<std::uint64_t>(shape[i]);
    }
    largest.resize(channels);
    found->scales.resize(channels);
  };
  const auto take = [&](std::uint64_t first, const std::vector<double>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      finite = finite && std::isfinite(numbers[i]);
      double& most = largest[static_cast<std::size_t>((first + i) / found->inner % largest.size())];
      most = std::max(most, std::abs(numbers[i]));
    }
  };
  if (Result<void> done = each_number(file, tensor, begin, take); !done) return std::move(done).error();
  if (!finite) return std::shared_ptr<const Quantization>();
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const auto scale = static_cast<float>(largest[i] / largest_code);
    found->scales[i] = scale > 0.0F ? scale : 1.0F;  // all zero, or too small for a scale
  }
  return std::shared_ptr<const Quantization>(std::move(found));
}

void quantize(const Quantization& quantization, std::uint64_t first, const std::vector<double>& numbers,
              std::vector<std::byte>& codes) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double code = std::nearbyint(numbers[i] / quantization.scale_of(first + i));
    codes[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(code, -largest_code, largest_code)));
  }
}

}  // namespace tensorcast::models::onnx
