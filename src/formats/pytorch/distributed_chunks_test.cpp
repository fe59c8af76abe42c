// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "formats/pytorch/distributed_metadata.hpp"

namespace tensorcast::formats::pytorch {
namespace {

using Sizes = std::vector<std::int64_t>;

TensorChunk chunk(Sizes offsets, Sizes sizes) {
  return {.offsets = std::move(offsets), .sizes = std::move(sizes), .item = {}};
}

std::string wrong(const Sizes& shape, const std::vector<TensorChunk>& chunks) {
  const Result<void> checked = check_chunks(shape, chunks);
  return checked ? "" : checked.error().message;
}

TEST(CheckChunks, ThatFillATensor) {
  EXPECT_EQ(wrong({}, {chunk({}, {})}), "");
  EXPECT_EQ(wrong({0, 3}, {}), "");
  EXPECT_EQ(wrong({0, 3}, {chunk({0, 0}, {0, 3})}), "");
  EXPECT_EQ(wrong({4}, {chunk({2}, {2}), chunk({4}, {0}), chunk({0}, {2})}), "");
  // A pinwheel: no line cuts it in two.
  EXPECT_EQ(wrong({3, 3}, {chunk({0, 0}, {1, 2}), chunk({0, 2}, {2, 1}), chunk({2, 1}, {1, 2}), chunk({1, 0}, {2, 1}),
                           chunk({1, 1}, {1, 1})}),
            "");
}

TEST(CheckChunks, ThatDoNot) {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(wrong({}, {}), "1 of 1 elements"));
  EXPECT_TRUE(has(wrong({}, {chunk({}, {}), chunk({}, {})}), "overlap"));
  EXPECT_TRUE(has(wrong({4}, {chunk({0}, {3})}), "1 of 4 elements"));
  EXPECT_TRUE(has(wrong({4}, {chunk({0}, {3}), chunk({2}, {2})}), "overlap"));
  EXPECT_TRUE(has(wrong({4}, {chunk({0}, {2}), chunk({0}, {2})}), "overlap"));
  EXPECT_TRUE(has(wrong({2, 2}, {chunk({0, 0}, {1, 2}), chunk({0, 1}, {2, 1})}), "overlap"));
  EXPECT_TRUE(has(wrong({4}, {chunk({1}, {4})}), "out of its tensor"));
  EXPECT_TRUE(has(wrong({4}, {chunk({5}, {0})}), "out of its tensor"));
  EXPECT_TRUE(has(wrong({4}, {chunk({0, 0}, {4, 1})}), "dimensions"));
  EXPECT_TRUE(has(wrong({INT64_MAX, 4}, {chunk({0, 0}, {1, 1})}), "damaged"));
  EXPECT_TRUE(has(wrong({4}, {chunk({INT64_MAX}, {INT64_MAX})}), "out of its tensor"));
}

TEST(CheckChunks, AgreesWithCounting) {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
  };
  int fills = 0;
  for (int round = 0; round < 20000; ++round) {
    const Sizes shape = {1 + below(3), 1 + below(3)};
    std::vector<TensorChunk> chunks;
    std::vector<int> covered(static_cast<std::size_t>(shape[0] * shape[1]));
    for (std::int64_t left = 1 + below(4); left > 0; --left) {
      const Sizes at = {below(shape[0]), below(shape[1])};
      const Sizes size = {1 + below(shape[0] - at[0]), 1 + below(shape[1] - at[1])};
      chunks.push_back(chunk(at, size));
      for (std::int64_t i = 0; i < size[0]; ++i) {
        for (std::int64_t j = 0; j < size[1]; ++j)
          ++covered[static_cast<std::size_t>((at[0] + i) * shape[1] + at[1] + j)];
      }
    }
    const bool fill = std::ranges::all_of(covered, [](int count) { return count == 1; });
    fills += fill ? 1 : 0;
    ASSERT_EQ(wrong(shape, chunks).empty(), fill) << "round " << round;
  }
  EXPECT_GT(fills, 100);
}

}  // namespace
}  // namespace tensorcast::formats::pytorch
