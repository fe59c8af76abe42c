// SPDX-License-Identifier: Apache-2.0
// Casts by C++ types, of tensors, and of strided arrays.
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <vector>

#include <gtest/gtest.h>

#include "codec/reference_cast.hpp"
#include "tensorcast/strided.hpp"
#include "tensorcast/tensor.hpp"
#include "tensorcast/typed_cast.hpp"

namespace elsewhere {
struct BFloat16 {
  std::uint16_t bits;
};
}  // namespace elsewhere

template <>
struct tensorcast::element_traits<elsewhere::BFloat16> {
  static constexpr tensorcast::DType dtype = tensorcast::DType::bfloat16;
};

namespace tensorcast {
namespace {

TEST(PackedVector, IsEmptyAfterAMove) {
  PackedVector<int4> a(5);
  a.set(4, int4(-3));
  PackedVector<int4> b = std::move(a);
  EXPECT_EQ(a.size(), 0u);
  EXPECT_TRUE(a.span().bytes().empty());
  EXPECT_EQ(static_cast<int>(b[4]), -3);
  a = std::move(b);
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(a.size(), 5u);
}

TEST(Element, HasATypeAndAWidth) {
  static_assert(std::is_trivially_copyable_v<bfloat16> && sizeof(bfloat16) == 2 && sizeof(int4) == 1);
  static_assert(dtype_of<long long> == DType::int64 && dtype_of<const unsigned char> == DType::uint8);
  static_assert(!Element<char> && !Element<std::byte> && Element<elsewhere::BFloat16>);
}

template <class T>
void pack_and_unpack() {
  for (const std::size_t count : {0, 1, 3, 4, 5, 17}) {
    PackedVector<T> packed(count);
    for (std::size_t i = count; i-- > 0;) packed.set(i, T::from_bits(static_cast<std::uint8_t>(i * 7 + 1)));
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(packed[i].bits(), T::from_bits(static_cast<std::uint8_t>(i * 7 + 1)).bits()) << i << " of " << count;
    }
  }
}

TEST(PackedSpan, KeepsNeighbours) {
  pack_and_unpack<int4>();
  pack_and_unpack<uint2>();
  pack_and_unpack<float6_e2m3fn>();
  pack_and_unpack<float4_e2m1fn>();
}

TEST(TypedCast, ReturnsElementsOfTheType) {
  const std::vector<float> weights = {0.1f, -2.5f, 1000.0f};
  const std::vector<bfloat16> narrow = cast<bfloat16>(weights).value();
  ASSERT_EQ(narrow.size(), 3u);
  EXPECT_EQ(static_cast<float>(narrow[1]), -2.5f);
  const PackedVector<int4> codes = cast<int4>(weights).value();
  EXPECT_EQ(static_cast<int>(codes[1]), -2);
  const std::vector<float> back = cast<float>(codes).value();
  EXPECT_EQ(back[1], -2.0f);
  EXPECT_EQ(cast<std::uint8_t>(weights, CastOptions::lossless_integers()).error().element, 1u);
  EXPECT_EQ(cast<std::int8_t>(weights, CastOptions::saturating_integers()).value()[2], 127);
}

TEST(TypedCast, WritesIntoRangesOfAnyKind) {
  const std::array<double, 3> numbers = {1.0, 2.5, -3.0};
  float c_array[3] = {};
  ASSERT_TRUE(cast(numbers, c_array).ok());
  EXPECT_EQ(c_array[1], 2.5f);
  std::vector<elsewhere::BFloat16> foreign(3);
  CastReport report;
  ASSERT_TRUE(cast(numbers, std::span(foreign), {}, report).ok());
  EXPECT_EQ(foreign[0].bits, 0x3f80);
  EXPECT_EQ(report.count, 3u);
  std::array<std::byte, 2> bytes = {};
  ASSERT_TRUE(cast(numbers, PackedSpan<int4>(bytes.data(), 3)).ok());
  EXPECT_EQ(bytes[0], std::byte{0x21});
  EXPECT_EQ(cast(numbers, std::span(c_array).first(2)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(tensorcast::view(numbers, {3, 1}).shape, (Shape{3, 1}));
  EXPECT_EQ(tensorcast::view<DType::float64>(numbers).bytes.size(), 24u);
}

// Counts what is allocated and given back.
class CountingMemory final : public std::pmr::memory_resource {
 public:
  std::size_t allocated = 0, released = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    allocated += bytes;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override {
    released += bytes;
    std::pmr::new_delete_resource()->deallocate(data, bytes, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

TEST(CastTensor, ReturnsATensorInTheCallersMemory) {
  CountingMemory memory;
  {
    const Tensor source = Tensor::own(std::vector<float>{1, 2, 3}, {3, 1}).value();
    CastReport report;
    const Tensor half = cast(source, DType::float16, {}, report, {.memory = &memory}).value();
    EXPECT_EQ(half.shape(), (Shape{3, 1}));
    EXPECT_EQ(report.count, 3u);
    EXPECT_EQ(memory.allocated, 6u);
    EXPECT_EQ(static_cast<float>(half.as<float16>().value()[2]), 3.0f);
    const Tensor text = cast(source, DType::string).value();
    const Tensor parsed = cast(text, DType::float32).value(), shared = cast(source, DType::float32).value();
    const Tensor doubled = cast(source, DType::float32, {.scale = 2.0}).value();
    EXPECT_EQ(parsed.as<float>().value()[1], 2.0f);
    EXPECT_EQ(shared.bytes().data(), source.bytes().data());
    EXPECT_EQ(doubled.as<float>().value()[0], 2.0f);
  }
  EXPECT_EQ(memory.released, 6u);
  EXPECT_EQ(cast(Tensor(), DType::float32).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(cast(Tensor::own(std::vector<float>{1}).value(), DType::uint1).error().code, ErrorCode::unsupported);
}

TEST(CastStrided, FollowsEveryStride) {
  std::vector<float> numbers(20 * 300);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 2000);
  const auto* const data = reinterpret_cast<const std::byte*>(numbers.data());
  std::vector<float16> target(numbers.size());
  const MutableStridedView dense{DType::float16, {300, 20}, {}, reinterpret_cast<std::byte*>(target.data())};
  const StridedView transposed{DType::float32, {300, 20}, {4, 1200}, data};
  CastReport report;
  ASSERT_TRUE(cast_strided(transposed, dense, {}, report).ok());
  EXPECT_EQ(report.count, numbers.size());
  for (std::size_t row = 0; row < 300; row += 7) {
    for (std::size_t column = 0; column < 20; ++column) {
      ASSERT_EQ(static_cast<float>(target[row * 20 + column]), numbers[column * 300 + row]);
    }
  }
  // Backward, and one element for all.
  ASSERT_TRUE(cast_strided({DType::float32, {3}, {-4}, data + 8}, {DType::float16, {3}, {}, dense.data}).ok());
  EXPECT_EQ(static_cast<float>(target[0]), 2.0f);
  EXPECT_EQ(static_cast<float>(target[2]), 0.0f);
  ASSERT_TRUE(cast_strided({DType::float32, {3}, {0}, data + 4}, {DType::float16, {3}, {4}, dense.data}).ok());
  EXPECT_EQ(static_cast<float>(target[4]), 1.0f);
}

TEST(CastStrided, ReadsAndWritesTheOtherByteOrder) {
  constexpr std::size_t count = 1000;  // more than a block, less than two
  std::vector<std::uint32_t> there(count);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = 0.5F * static_cast<float>(i) - 100;
    there[i] = __builtin_bswap32(std::bit_cast<std::uint32_t>(numbers[i]));
  }
  const auto* const src = reinterpret_cast<const std::byte*>(there.data());
  for (const std::int64_t step : {1, 3}) {
    const std::size_t taken = count / static_cast<std::size_t>(step);
    const Shape shape = {static_cast<std::int64_t>(taken)};
    std::vector<std::uint16_t> halves(taken);
    auto* const dst = reinterpret_cast<std::byte*>(halves.data());
    ASSERT_TRUE(cast_strided({DType::float32, shape, {4 * step}, src, false, true},
                             {DType::float16, shape, {2}, dst, false, true})
                    .ok());
    for (std::size_t i = 0; i < taken; ++i) {
      const float16 got = float16::from_bits(__builtin_bswap16(halves[i]));
      ASSERT_EQ(static_cast<float>(got), numbers[i * static_cast<std::size_t>(step)]) << i;
    }
  }
}

TEST(CastStrided, RefusesWhatNoArrayHas) {
  std::array<float, 4> numbers = {1, 2, 3, 300};
  std::array<std::uint8_t, 4> codes = {};
  const auto* const src = reinterpret_cast<const std::byte*>(numbers.data());
  auto* const dst = reinterpret_cast<std::byte*>(codes.data());
  const auto code = [&](const StridedView& from, const MutableStridedView& to) {
    return cast_strided(from, to).error().code;
  };
  EXPECT_EQ(code({DType::float32, {2, 2}, {4}, src}, {DType::uint8, {2, 2}, {}, dst}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({DType::float32, {4}, {}, src}, {DType::uint8, {3}, {}, dst}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({DType::float32, {4}, {}, nullptr}, {DType::uint8, {4}, {}, dst}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({DType::float32, {4}, {}, src}, {DType::int4, {4}, {2}, dst}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({DType::float32, {4}, {}, src}, {DType::uint8, {4}, {}, dst, true}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({DType::string, {4}, {}, src}, {DType::uint8, {4}, {}, dst}), ErrorCode::unsupported);
  const Result<void> strict = cast_strided({DType::float32, {2, 2}, {4, 8}, src}, {DType::uint8, {2, 2}, {}, dst},
                                           CastOptions::lossless_integers());
  EXPECT_EQ(strict.error().element, 3u);
  ASSERT_TRUE(cast_strided({DType::float32, {4}, {}, src}, {DType::int4, {4}, {}, dst, true}).ok());
  EXPECT_EQ(codes[2], 3);
}

}  // namespace
}  // namespace tensorcast
