// Converts an array, and prints the losses.
#include <array>
#include <cstdio>
#include <span>

#include "tensorcast/cast.hpp"

namespace tc = tensorcast;

int main() {
  const std::array<float, 4> weights = {0.1f, -2.5f, 1000.0f, 1e-9f};
  std::array<std::byte, 4> narrow = {};
  const std::array<std::int64_t, 1> shape = {4};

  tc::CastReport report;
  const tc::Result<void> done = tc::cast({tc::DType::float32, shape, std::as_bytes(std::span(weights))},
                                         {tc::DType::float8_e4m3fn, shape, narrow}, tc::CastOptions{}, report);
  if (!done) {
    std::fprintf(stderr, "%s\n", done.error().describe().c_str());
    return 1;
  }
  for (const std::byte code : narrow) std::printf("0x%02x ", std::to_integer<unsigned>(code));
  std::printf("\n%d saturated, %d underflowed to zero\n", static_cast<int>(report.saturated),
              static_cast<int>(report.underflowed_to_zero));
  return 0;
}
