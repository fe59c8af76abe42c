// SPDX-License-Identifier: Apache-2.0
// Tensors that own their elements: converts, promotes and reads one, with results in a buffer of the caller.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory_resource>
#include <utility>
#include <vector>

#include <tensorcast/promote.hpp>
#include <tensorcast/tensor.hpp>

namespace tc = tensorcast;

int main() {
  std::array<std::byte, 4096> buffer;
  std::pmr::monotonic_buffer_resource memory(buffer.data(), buffer.size());
  const tc::Execution execution{.threads = 1, .memory = &memory};

  const tc::Result<tc::Tensor> ids = tc::Tensor::own(std::vector<std::int16_t>{1, 2, 300}, {3});
  const tc::Result<tc::Tensor> scale = tc::Tensor::own(std::vector<float>{0.5f}, {});
  if (!ids || !scale) return 1;

  const auto pair = tc::promote(*ids, *scale, {.rules = tc::PromoteRules::numpy}, {}, execution);
  if (!pair) {
    std::fprintf(stderr, "%s\n", pair.error().describe().c_str());
    return 1;
  }
  const tc::Tensor& numbers = pair->first;
  const tc::Result<tc::Tensor> half = tc::cast(numbers, tc::DType::float16, {}, execution);
  const auto elements = half.and_then([](const tc::Tensor& tensor) { return tensor.as<tc::float16>(); });
  if (!elements) {
    std::fprintf(stderr, "%s\n", elements.error().describe().c_str());
    return 1;
  }
  std::printf("%s:", tc::name(numbers.dtype()).data());
  for (const tc::float16 element : *elements) std::printf(" %g", static_cast<double>(element));
  std::printf("\n");
  return 0;
}
