// SPDX-License-Identifier: Apache-2.0
// keeps_every_value() against the engine: all codes there and back.
#include "models/onnx/precision/lossless_cast.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tensorcast/cast.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {
namespace {

std::vector<DType> numeric_types() {
  std::vector<DType> found;
  for (int number = 1; number < 32; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (is_onnx(dtype) && dtype != DType::string) found.push_back(dtype);
  }
  return found;
}

std::vector<std::byte> converted(DType from, const std::vector<std::byte>& bytes, DType to, std::size_t count) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  std::vector<std::byte> made(storage_bytes(to, count));
  // A saturating Cast loses the infinity of float8_e5m2; the caller of keeps_every_value() looks at that.
  const CastOptions options{.saturate = false};
  const Result<void> done =
      tensorcast::cast(TensorView{from, shape, bytes}, MutableTensorView{to, shape, made}, options);
  EXPECT_TRUE(done.ok()) << done.error().describe();
  return made;
}

TEST(LosslessCast, EveryCodeSurvivesThereAndBack) {
  int kept = 0;
  for (const DType from : numeric_types()) {
    const int bits = bit_width(from);
    if (bits > 16) continue;
    // bool has the codes 0 and 1 only.
    const std::size_t count = from == DType::boolean ? 2 : std::size_t{1} << bits;
    std::vector<std::byte> codes(storage_bytes(from, count));
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::size_t per_byte = bits < 8 ? 8 / static_cast<std::size_t>(bits) : 1;
      if (bits < 8) {
        for (std::size_t k = 0; k < per_byte; ++k) {
          codes[i] |= static_cast<std::byte>((i * per_byte + k) << (k * static_cast<std::size_t>(bits)) & 0xFF);
        }
      } else {
        codes[i] = static_cast<std::byte>(bits == 8 ? i : i % 2 == 0 ? i / 2 & 0xFF : i / 2 >> 8);
      }
    }
    const std::vector<std::byte> exact = converted(from, codes, DType::float64, count);
    for (const DType to : numeric_types()) {
      if (!keeps_every_value(from, to)) continue;
      ++kept;
      const std::vector<std::byte> back = converted(to, converted(from, codes, to, count), from, count);
      const std::vector<std::byte> again = converted(from, back, DType::float64, count);
      for (std::size_t i = 0; i < count; ++i) {
        double before = 0;
        double after = 0;
        std::memcpy(&before, exact.data() + i * sizeof before, sizeof before);
        std::memcpy(&after, again.data() + i * sizeof after, sizeof after);
        const bool same =
            std::isnan(before) ? std::isnan(after) : before == after && std::signbit(before) == std::signbit(after);
        ASSERT_TRUE(same) << name(from) << " to " << name(to) << ", code " << i << ": " << before << ", " << after;
      }
    }
  }
  EXPECT_GT(kept, 100);
}

TEST(LosslessCast, PairsOfWideTypes) {
  using D = DType;
  const std::pair<D, D> keeps[] = {{D::float32, D::float64}, {D::float16, D::float32}, {D::bfloat16, D::float32},
                                   {D::int32, D::float64},   {D::uint8, D::float16},   {D::int64, D::int64},
                                   {D::int8, D::bfloat16},   {D::uint32, D::int64},    {D::boolean, D::float16}};
  for (const auto& [from, to] : keeps) EXPECT_TRUE(keeps_every_value(from, to)) << name(from) << " to " << name(to);
  const std::pair<D, D> loses[] = {{D::float32, D::float16}, {D::float16, D::bfloat16}, {D::bfloat16, D::float16},
                                   {D::int64, D::float64},   {D::int32, D::float32},    {D::int16, D::float16},
                                   {D::int8, D::uint8},      {D::uint64, D::int64},     {D::float32, D::int64},
                                   {D::float64, D::float32}, {D::int16, D::bfloat16},   {D::undefined, D::undefined}};
  for (const auto& [from, to] : loses) EXPECT_FALSE(keeps_every_value(from, to)) << name(from) << " to " << name(to);
}

}  // namespace
}  // namespace tensorcast::models::onnx
