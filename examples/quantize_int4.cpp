// SPDX-License-Identifier: Apache-2.0
// Scales numbers to 4 bits, packed two a byte, and back: rounds once, saturates, and says where a number is not finite.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <tensorcast/typed_cast.hpp>

namespace tc = tensorcast;

int main() {
  const std::vector<float> weights = {0.31f, -0.7f, 0.02f, 0.699f, -0.38f};
  float largest = 0.0f;
  for (const float weight : weights) largest = std::max(largest, std::fabs(weight));

  tc::CastOptions options = tc::CastOptions::saturating_integers();
  options.invalid = tc::Invalid::error;
  options.scale = 7.0 / static_cast<double>(largest);
  const tc::Result<tc::PackedVector<tc::int4>> codes = tc::cast<tc::int4>(weights, options);
  if (!codes) {
    std::fprintf(stderr, "%s\n", codes.error().describe().c_str());
    return 1;
  }
  for (std::size_t i = 0; i < codes->size(); ++i) std::printf("%d ", static_cast<int>((*codes)[i]));

  tc::CastOptions back;
  back.scale = 1.0 / options.scale;
  const std::vector<float> again = tc::cast<float>(*codes, back).value_or(std::vector<float>());
  for (const float weight : again) std::printf("%.2f ", static_cast<double>(weight));
  std::printf("\n");
  return again.size() == weights.size() ? 0 : 1;
}
