// SPDX-License-Identifier: Apache-2.0
// Converts an array, and prints the losses.
#include <array>
#include <cstdio>
#include <vector>

#include <tensorcast/typed_cast.hpp>

namespace tc = tensorcast;

int main() {
  const std::array<float, 4> weights = {0.1f, -2.5f, 1000.0f, 1e-9f};
  std::vector<tc::float8_e4m3fn> narrow(weights.size());

  tc::CastReport report;
  const tc::Result<void> done = tc::cast(weights, narrow, tc::CastOptions{}, report);
  if (!done) {
    std::fprintf(stderr, "%s\n", done.error().describe().c_str());
    return 1;
  }
  for (const tc::float8_e4m3fn code : narrow) std::printf("0x%02x ", code.bits());
  std::printf("\n%d saturated, %d underflowed to zero\n", static_cast<int>(report.saturated),
              static_cast<int>(report.underflowed_to_zero));
  return 0;
}
