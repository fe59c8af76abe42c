// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/strided.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cast/strided_testing.hpp"
#include "tensorcast/typed_cast.hpp"

namespace tensorcast {
namespace {

const std::byte* bytes_of(const auto& values) { return reinterpret_cast<const std::byte*>(values.data()); }
std::byte* bytes_of(auto& values) { return reinterpret_cast<std::byte*>(values.data()); }

std::string message(const Result<void>& done) { return done ? "done" : done.error().describe(); }

TEST(Strided, RandomLayoutsGiveWhatDenseArraysGive) {
  std::mt19937 random(49);
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::uint8_t> bytes(96);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const std::string wrong = strided_testing::check(
        bytes, [](const StridedView& src, const MutableStridedView& dst, const CastOptions& options,
                  const Execution& execution) { return cast_strided(src, dst, options, execution); });
    ASSERT_EQ(wrong, "") << "round " << i;
  }
}

// Each element once took a byte behind the result.
TEST(Strided, TransposedToPacked) {
  const float numbers[6] = {1, 2, 3, 4, 5, 6};  // [2, 3]; its transpose is 1 4 2 5 3 6
  std::vector<std::byte> packed(3, std::byte{0xEE});
  const MutableStridedView dst{DType::int4, {3, 2}, {}, packed.data()};
  ASSERT_EQ(message(cast_strided({DType::float32, {3, 2}, {4, 12}, bytes_of(std::span(numbers))}, dst)), "done");
  EXPECT_EQ(packed, (std::vector<std::byte>{std::byte{0x41}, std::byte{0x52}, std::byte{0x63}}));
  std::vector<float> back(6);
  ASSERT_EQ(message(cast_strided(dst, {DType::float32, {3, 2}, {4, 12}, bytes_of(back)})), "done");
  EXPECT_EQ(back, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

// Rows of odd lengths begin inside of bytes, and tiles are not in the order of the result.
TEST(Strided, LargeTransposedToPacked) {
  for (const DType to : {DType::int2, DType::uint4, DType::float4_e2m1fn, DType::float6_e3m2fn}) {
    for (const auto& [rows, columns] : {std::pair{301, 199}, {128, 1024}, {1, 40000}, {40000, 3}, {1027, 641}}) {
      const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
      std::vector<float> matrix(count), transposed(count);
      for (std::size_t i = 0; i < count; ++i) transposed[i] = static_cast<float>(i * 7 % 5);
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
        for (std::size_t column = 0; column < static_cast<std::size_t>(columns); ++column) {
          matrix[column * static_cast<std::size_t>(rows) + row] =
              transposed[row * static_cast<std::size_t>(columns) + column];
        }
      }
      const Shape shape = {rows, columns};
      std::vector<std::byte> got(storage_bytes(to, count)), expected(got.size());
      ASSERT_EQ(message(cast({DType::float32, shape, std::as_bytes(std::span(transposed))}, {to, shape, expected})),
                "done");
      ASSERT_EQ(
          message(cast_strided({DType::float32, shape, {4, 4 * rows}, bytes_of(matrix)}, {to, shape, {}, got.data()})),
          "done");
      EXPECT_EQ(got, expected) << name(to) << " " << rows << " x " << columns;
    }
  }
}

// A view of `values` with the axes in another order, some of them backwards, and the same elements in C order.
struct PermutedView {
  Shape shape, strides;
  const std::byte* first = nullptr;
  std::vector<std::byte> dense = {};
};

PermutedView permuted(const std::vector<std::byte>& values, std::size_t item, std::vector<std::int64_t> lengths,
                      const std::vector<std::size_t>& order, unsigned backwards) {
  std::vector<std::int64_t> of_memory(lengths.size());
  auto stride = static_cast<std::int64_t>(item);
  for (std::size_t axis = lengths.size(); axis-- > 0; stride *= lengths[axis]) of_memory[axis] = stride;
  std::vector<std::int64_t> shape, strides;
  const std::byte* first = values.data();
  for (std::size_t i = 0; i < order.size(); ++i) {
    shape.push_back(lengths[order[i]]);
    const bool turned = (backwards >> i & 1) != 0;
    strides.push_back(turned ? -of_memory[order[i]] : of_memory[order[i]]);
    if (turned) first += of_memory[order[i]] * (lengths[order[i]] - 1);
  }
  PermutedView view{shape, strides, first};
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::size_t done = 0; done < values.size(); done += item) {
    const std::byte* from = first;
    for (std::size_t axis = 0; axis < index.size(); ++axis) from += index[axis] * strides[axis];
    view.dense.insert(view.dense.end(), from, from + item);
    for (std::size_t axis = index.size(); axis-- > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  return view;
}

TEST(Strided, TilesGiveWhatDenseArraysGive) {
  struct Layout {
    std::vector<std::int64_t> lengths;
    std::vector<std::size_t> order;
  };
  const Layout layouts[] = {{{1027, 641}, {1, 0}},      {{301, 199}, {1, 0}}, {{7, 257, 131}, {2, 0, 1}},
                            {{5, 257, 131}, {0, 2, 1}}, {{40000, 3}, {1, 0}}, {{3, 17, 5, 331}, {3, 1, 0, 2}}};
  const DType sources[] = {DType::int8, DType::float8_e5m2, DType::bfloat16, DType::float32, DType::float64};
  const DType targets[] = {DType::boolean, DType::float8_e4m3fn, DType::float16,      DType::float32,
                           DType::int64,   DType::int4,          DType::float6_e2m3fn};
  std::mt19937 random(53);
  for (const Layout& layout : layouts) {
    for (const DType from : sources) {
      const auto item = static_cast<std::size_t>(bit_width(from)) / 8;
      const std::size_t count = *element_count(layout.lengths);
      std::vector<std::byte> values(count * item);
      for (std::byte& byte : values) byte = static_cast<std::byte>(random() % 61);  // no NaN, whose bits may differ
      const PermutedView view = permuted(values, item, layout.lengths, layout.order, random() % 16);
      for (const DType to : targets) {
        const CastOptions options{.out_of_range = OutOfRange::saturate};
        std::vector<std::byte> expected(storage_bytes(to, count)), got(expected.size());
        ASSERT_EQ(message(cast({from, view.shape, view.dense}, {to, view.shape, expected}, options)), "done");
        for (const int threads : {0, 1}) {
          const Execution execution{.threads = threads};
          std::fill(got.begin(), got.end(), std::byte{0xEE});
          ASSERT_EQ(message(cast_strided({from, view.shape, view.strides, view.first}, {to, view.shape, {}, got.data()},
                                         options, execution)),
                    "done");
          EXPECT_EQ(got, expected) << name(from) << " to " << name(to) << ", " << layout.lengths[0];
        }
      }
    }
  }
}

// Rows that are written past the cache, in bands that begin at its lines.
TEST(Strided, LargeTransposesGiveWhatTheirElementsAre) {
  constexpr std::size_t rows = 4096, columns = 2112;
  std::vector<std::uint32_t> numbers(rows * columns);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<std::uint32_t>(i * 2654435761u) & 0x3fff0000;
  std::vector<std::uint16_t> room(rows * columns + 32);
  for (const std::size_t shift : {0, 5}) {
    std::fill(room.begin(), room.end(), std::uint16_t{0xEEEE});
    std::uint16_t* const got = room.data() + shift;
    ASSERT_EQ(message(cast_strided({DType::float32, {rows, columns}, {4, 4 * rows}, bytes_of(numbers)},
                                   {DType::bfloat16, {rows, columns}, {}, reinterpret_cast<std::byte*>(got)})),
              "done");
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        wrong += got[row * columns + column] != numbers[column * rows + row] >> 16;
      }
    }
    EXPECT_EQ(wrong, 0u) << shift;
    EXPECT_EQ(got[rows * columns], 0xEEEE);
    EXPECT_EQ(std::count(room.data(), got, 0xEEEE), static_cast<std::ptrdiff_t>(shift));
  }
}

// More than a task of elements, in runs that are converted where they are and others.
TEST(Strided, ThreadsGiveWhatOneGives) {
  std::vector<float> numbers(7 * 130 * 601 * 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 997) - 400.25f;
  const Shape shape = {130, 7, 601};
  const std::int64_t plane = 4 * 601 * 130, row = 4 * 601;
  for (const Shape& strides : {Shape{row, plane, 4}, Shape{2 * row, 2 * plane, 8}, Shape{row, -plane, 4}}) {
    const auto first = strides[1] < 0 ? static_cast<std::size_t>(6 * 130 * 601) : 0;
    const StridedView src{DType::float32, shape, strides, bytes_of(numbers) + 4 * first};
    for (const DType to : {DType::float16, DType::int4, DType::float8_e4m3fn}) {
      std::vector<std::byte> all(7 * 130 * 601 * 2), one(all.size());
      const CastOptions options = {.rounding = Rounding::stochastic, .seed = 5};
      ASSERT_EQ(message(cast_strided(src, {to, shape, {}, all.data()}, options, {.threads = 0})), "done");
      ASSERT_EQ(message(cast_strided(src, {to, shape, {}, one.data()}, options, {.threads = 1})), "done");
      EXPECT_EQ(all, one) << name(to);
      const CastOptions refusing = {.out_of_range = OutOfRange::error};
      const Result<void> failed = cast_strided(src, {DType::int8, shape, {}, all.data()}, refusing, {.threads = 0});
      ASSERT_FALSE(failed);
      const Result<void> first_failed =
          cast_strided(src, {DType::int8, shape, {}, one.data()}, refusing, {.threads = 1});
      EXPECT_EQ(failed.error().element, first_failed.error().element);
    }
  }
}

// The error of a tile is not the first in C order, which the message names.
TEST(Strided, TilesNameTheFirstElementThatFails) {
  std::vector<float> numbers(600 * 700, 1.0f);
  numbers[3 * 700 + 650] = numbers[599 * 700 + 2] = 1e30f;  // [600, 700]; element 2 * 600 + 599 comes first
  std::vector<std::byte> got(numbers.size());
  const CastOptions options{.out_of_range = OutOfRange::error};
  const Result<void> done = cast_strided({DType::float32, {700, 600}, {4, 2800}, bytes_of(numbers)},
                                         {DType::int8, {700, 600}, {}, got.data()}, options);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().element, 2 * 600 + 599);
}

TEST(Strided, PacksAndUnpacksCodesOfAByteEach) {
  std::vector<std::byte> codes(101), packed(51), back(101);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 5 % 16);
  ASSERT_EQ(
      message(cast_strided({DType::int4, {101}, {}, codes.data(), true}, {DType::int4, {101}, {}, packed.data()})),
      "done");
  EXPECT_EQ(packed[0], std::byte{0x50});
  EXPECT_EQ(packed[50], std::byte{0x04});
  ASSERT_EQ(message(cast_strided({DType::int4, {101}, {}, packed.data()}, {DType::int4, {101}, {}, back.data(), true})),
            "done");
  EXPECT_EQ(back, codes);
}

TEST(Strided, RefusesOverlap) {
  for (const std::int64_t n : {3, 300}) {
    std::vector<float> matrix(static_cast<std::size_t>(n * n), 1.0f);
    const std::vector<float> before = matrix;
    std::byte* const data = bytes_of(matrix);
    const StridedView transposed{DType::float32, {n, n}, {4, 4 * n}, data};
    const std::string refused = "source and target overlap";
    EXPECT_NE(message(cast_strided(transposed, {DType::float32, {n, n}, {}, data})).find(refused), std::string::npos);
    EXPECT_NE(message(cast_strided(transposed, {DType::int4, {n, n}, {}, data + 4 * n})).find(refused),
              std::string::npos);
    // A row is no place for all rows.
    const MutableStridedView row{DType::float16, {n, n}, {0, 2}, data};
    EXPECT_NE(message(cast_strided({DType::int8, {n, n}, {}, data}, row)).find("elements of the target share memory"),
              std::string::npos);
    EXPECT_EQ(matrix, before);
  }
}

TEST(Strided, TakesTurnsInOneBuffer) {
  std::vector<float> numbers(20000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  std::byte* const data = bytes_of(numbers);
  // The odd elements become the even ones.
  ASSERT_EQ(message(cast_strided({DType::float32, {10000}, {8}, data}, {DType::float32, {10000}, {8}, data + 4})),
            "done");
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], static_cast<float>(i / 2 * 2));
  // The left columns become the right ones.
  ASSERT_EQ(message(cast_strided({DType::float32, {100, 100}, {800, 4}, data},
                                 {DType::float32, {100, 100}, {800, 4}, data + 400})),
            "done");
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], numbers[i / 200 * 200 + i % 100]);
  // In place, each element becomes two bytes of its own four.
  ASSERT_EQ(message(cast_strided({DType::float32, {20000}, {4}, data}, {DType::int16, {20000}, {4}, data})), "done");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::int16_t half = 0;
    std::memcpy(&half, data + 4 * i, sizeof half);
    ASSERT_EQ(half, static_cast<std::int16_t>((i / 200 * 200 + i % 100) / 2 * 2));
  }
}

TEST(Strided, ChecksDescriptions) {
  std::vector<std::byte> bytes(64);
  const auto error_of = [](const StridedView& src, const MutableStridedView& dst) {
    return message(cast_strided(src, dst));
  };
  std::byte* const data = bytes.data();
  EXPECT_NE(error_of({DType::float32, {2}, {std::int64_t{1} << 62}, data}, {DType::int8, {2}, {}, data + 32})
                .find("strides reach beyond the addresses of memory"),
            std::string::npos);
  EXPECT_NE(error_of({DType::float32, {2}, {4, 4}, data}, {DType::int8, {2}, {}, data + 32}).find("2 strides for 1"),
            std::string::npos);
  EXPECT_NE(error_of({DType::int4, {2, 3}, {1, 2}, data}, {DType::int8, {2, 3}, {}, data + 32}).find("have no strides"),
            std::string::npos);
  EXPECT_NE(error_of({DType::int8, {2}, {}, data, true}, {DType::int8, {2}, {}, data + 32}).find("under 8 bits"),
            std::string::npos);
  // The byte order of types of a byte or less says nothing.
  EXPECT_EQ(error_of({DType::int4, {2}, {}, data, false, true}, {DType::int8, {2}, {}, data + 32, false, true}),
            "done");
}

}  // namespace
}  // namespace tensorcast
