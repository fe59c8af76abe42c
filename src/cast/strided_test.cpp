// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/strided.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
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
    for (const auto& [rows, columns] :
         {std::pair{301, 199}, {128, 1024}, {1, 40000}, {40000, 3}, {40001, 3}, {7, 40001}, {1027, 641}, {641, 1030}}) {
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
      std::vector<std::byte> got(storage_bytes(to, count), std::byte{0xEE}), expected(got.size());
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

struct Permutation {
  std::vector<std::int64_t> lengths;
  std::vector<std::size_t> order;
};

// Casts an array with its axes in another order, `backwards` as permuted() takes it, and compares with dense casts.
void expect_as_dense(const Permutation& layout, unsigned backwards, std::mt19937& random) {
  const DType sources[] = {DType::int8, DType::float8_e5m2, DType::bfloat16, DType::float32, DType::float64};
  const DType targets[] = {DType::boolean, DType::float8_e4m3fn, DType::float16, DType::bfloat16,
                           DType::float32, DType::int64,         DType::int4,    DType::float6_e2m3fn};
  for (const DType from : sources) {
    const auto item = static_cast<std::size_t>(bit_width(from)) / 8;
    const std::size_t count = *element_count(layout.lengths);
    std::vector<std::byte> values(count * item);
    for (std::byte& byte : values) byte = static_cast<std::byte>(random() % 61);  // no NaN, whose bits may differ
    const PermutedView view = permuted(values, item, layout.lengths, layout.order, backwards);
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
        EXPECT_EQ(got, expected) << name(from) << " to " << name(to) << ", " << view.shape[view.shape.size() - 1];
      }
    }
  }
}

TEST(Strided, TilesGiveWhatDenseArraysGive) {
  const Permutation layouts[] = {{{1027, 641}, {1, 0}},      {{301, 199}, {1, 0}}, {{7, 257, 131}, {2, 0, 1}},
                                 {{5, 257, 131}, {0, 2, 1}}, {{40000, 3}, {1, 0}}, {{3, 17, 5, 331}, {3, 1, 0, 2}},
                                 {{304, 208}, {1, 0}}};
  std::mt19937 random(53);
  for (const Permutation& layout : layouts) expect_as_dense(layout, random() % 16, random);
  expect_as_dense({{208, 1328}, {1, 0}}, 0, random);
}

// Images whose channels are in turns, and those of each channel; and so few axes that keep the last one.
TEST(Strided, ShortAxesGiveWhatDenseArraysGive) {
  std::mt19937 random(54);
  for (const std::int64_t channels : {2, 3, 4, 5, 8, 17, 33, 63, 64}) {
    const std::int64_t pixels = std::max<std::int64_t>(521, 17000 / channels);
    expect_as_dense({{2, channels, pixels}, {0, 2, 1}}, 0, random);
    expect_as_dense({{2, pixels, channels}, {0, 2, 1}}, 0, random);
    expect_as_dense({{channels, pixels}, {1, 0}}, random() % 4, random);
  }
}

TEST(Strided, BoxesGiveWhatDenseArraysGive) {
  const Permutation layouts[] = {{{3, 7, 31, 40}, {0, 2, 1, 3}},
                                 {{31, 5, 3, 700}, {2, 0, 1, 3}},
                                 {{5, 600, 8}, {1, 0, 2}},
                                 {{2, 3, 4, 5, 6, 7}, {1, 3, 2, 0, 4, 5}},
                                 {{70000}, {0}},
                                 {{260, 260}, {0, 1}}};
  std::mt19937 random(55);
  for (const Permutation& layout : layouts) {
    expect_as_dense(layout, 0, random);
    expect_as_dense(layout, random() % 64, random);
  }
}

// Codes of a byte each, in the source and in the target.
TEST(Strided, TilesOfCodesOfAByteEach) {
  constexpr std::size_t rows = 301, columns = 203;
  std::vector<std::byte> codes(rows * columns), turned(codes.size()), got(codes.size());
  std::vector<float> numbers(codes.size()), decoded(codes.size()), expected(codes.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t from = column * rows + row, to = row * columns + column;
      const auto number = static_cast<int>(to * 5 % 16) - 8;
      codes[from] = static_cast<std::byte>((number & 15) | (to % 7 << 4));  // high bits are not read
      turned[to] = static_cast<std::byte>(number & 15);
      numbers[from] = expected[to] = static_cast<float>(number);
    }
  }
  const Shape shape = {rows, columns};
  const StridedView from_codes{DType::int4, shape, {1, rows}, codes.data(), true};
  const MutableStridedView to_codes{DType::int4, shape, {}, got.data(), true};
  ASSERT_EQ(message(cast_strided(from_codes, to_codes)), "done");
  EXPECT_EQ(got, turned);
  std::fill(got.begin(), got.end(), std::byte{0xEE});
  ASSERT_EQ(message(cast_strided({DType::float32, shape, {4, 4 * rows}, bytes_of(numbers)}, to_codes)), "done");
  EXPECT_EQ(got, turned);
  ASSERT_EQ(message(cast_strided(from_codes, {DType::float32, shape, {}, bytes_of(decoded)})), "done");
  EXPECT_EQ(decoded, expected);
  // Every other column, as boxes.
  const Shape half = {columns, rows / 2 + 1};
  std::vector<std::byte> some(columns * (rows / 2 + 1));
  ASSERT_EQ(message(cast_strided({DType::int4, half, {rows, 2}, codes.data(), true},
                                 {DType::int4, half, {}, some.data(), true})),
            "done");
  for (std::size_t i = 0; i < some.size(); ++i) {
    const std::size_t from = i / (rows / 2 + 1) * rows + i % (rows / 2 + 1) * 2;
    ASSERT_EQ(some[i], codes[from] & std::byte{15}) << i;
  }
}

// Rows that are written past the cache: in bands that begin at its lines, in lines of rows that begin anywhere, and of
// few columns or rows, or as many as a tile. The target begins at a line, within one, and within an element.
TEST(Strided, LargeTransposesGiveWhatTheirElementsAre) {
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{4096, 2112}, {4095, 1501}, {90000, 96}, {1900003, 3}, {3, 1900003}}) {
    const std::size_t count = rows * columns;
    std::vector<std::uint32_t> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::uint32_t>(i * 2654435761u) & 0x3fff0000;
    std::vector<std::byte> room(2 * count + 64);
    for (const std::size_t shift : {0, 10, 11}) {
      std::fill(room.begin(), room.end(), std::byte{0xEE});
      std::byte* const got = room.data() + shift;
      const auto pitch = static_cast<std::int64_t>(4 * rows);
      const Shape shape = {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
      ASSERT_EQ(message(cast_strided({DType::float32, shape, {4, pitch}, bytes_of(numbers)},
                                     {DType::bfloat16, shape, {}, got})),
                "done");
      std::size_t wrong = 0;
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < columns; ++column) {
          std::uint16_t code;
          std::memcpy(&code, got + 2 * (row * columns + column), sizeof(code));
          wrong += code != numbers[column * rows + row] >> 16;
        }
      }
      EXPECT_EQ(wrong, 0u) << rows << " x " << columns << ", " << shift;
      EXPECT_EQ(got[2 * count], std::byte{0xEE});
      EXPECT_EQ(std::count(room.data(), got, std::byte{0xEE}), static_cast<std::ptrdiff_t>(shift));
    }
  }
}

// Boxes that are written past the cache.
TEST(Strided, LargePermutationsGiveWhatTheirElementsAre) {
  constexpr std::int64_t heads = 33, tokens = 1031, width = 176;
  constexpr std::size_t count = heads * tokens * width;
  std::vector<std::uint32_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<std::uint32_t>(i * 2654435761u) & 0x3fff0000;
  std::vector<std::uint16_t> got(count + 5);
  const Shape shape = {tokens, heads, width};
  ASSERT_EQ(message(cast_strided({DType::float32, shape, {4 * width, 4 * width * tokens, 4}, bytes_of(numbers)},
                                 {DType::bfloat16, shape, {}, bytes_of(got) + 10})),
            "done");
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t x = i % width, head = i / width % heads, token = i / width / heads;
    wrong += got[i + 5] != numbers[(head * tokens + token) * width + x] >> 16;
  }
  EXPECT_EQ(wrong, 0u);
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
// Rows of whole lines, whose runs are converted where they are if the options need one kernel only.
TEST(Strided, TilesOfWholeLinesTakeOptions) {
  std::mt19937 random(56);
  std::vector<float> numbers(304 * 208);
  for (float& number : numbers) number = static_cast<float>(static_cast<int>(random() % 40001) - 20000) / 256.0f;
  const std::vector<std::byte> values(bytes_of(numbers), bytes_of(numbers) + numbers.size() * sizeof(float));
  const PermutedView view = permuted(values, sizeof(float), {304, 208}, {1, 0}, 0);
  const CastOptions of_all[] = {{},
                                {.out_of_range = OutOfRange::saturate},
                                {.out_of_range = OutOfRange::error},
                                {.rounding = Rounding::toward_zero},
                                {.scale = 0.25}};
  for (const DType from : {DType::float32, DType::int32}) {
    for (const DType to : {DType::bfloat16, DType::float16, DType::float8_e5m2, DType::int8, DType::boolean}) {
      for (const CastOptions& options : of_all) {
        std::vector<std::byte> expected(storage_bytes(to, numbers.size())), got(expected.size());
        const Result<void> right = cast({from, view.shape, view.dense}, {to, view.shape, expected}, options);
        const Result<void> done =
            cast_strided({from, view.shape, view.strides, view.first}, {to, view.shape, {}, got.data()}, options);
        ASSERT_EQ(message(done), message(right)) << name(from) << " to " << name(to);
        if (done) {
          EXPECT_EQ(got, expected) << name(from) << " to " << name(to);
        }
      }
    }
  }
}

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
  for (const Shape& strides : {Shape{3, 1}, Shape{1, 1}, Shape{0, 0}}) {  // not even those of a byte each in C order
    EXPECT_NE(error_of({DType::int4, {2, 3}, strides, data}, {DType::int8, {2, 3}, {}, data + 32}), "done");
    EXPECT_NE(error_of({DType::int8, {2, 3}, {}, data}, {DType::int4, {2, 3}, strides, data + 32}), "done");
  }
  EXPECT_NE(error_of({DType::int8, {2}, {}, data, true}, {DType::int8, {2}, {}, data + 32}).find("under 8 bits"),
            std::string::npos);
  // The byte order of types of a byte or less says nothing.
  EXPECT_EQ(error_of({DType::int4, {2}, {}, data, false, true}, {DType::int8, {2}, {}, data + 32, false, true}),
            "done");
}

}  // namespace
}  // namespace tensorcast
