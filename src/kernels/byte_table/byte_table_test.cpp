// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_table/byte_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "codec/reference_cast.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels::byte_table {
namespace {

constexpr int thread_count = 4;

template <class Work>
void on_all_threads(const Work& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST(TableSlotTest, HasNothingBeforeTheFirstOffer) {
  TableSlot<64> slot;
  EXPECT_EQ(slot.find(), nullptr);
}

TEST(TableSlotTest, KeepsTheFirstOffer) {
  TableSlot<4> slot;
  constexpr std::array<std::byte, 4> first = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  constexpr std::array<std::byte, 4> second = {};
  slot.offer({}, first.data());
  slot.offer({}, second.data());
  ASSERT_NE(slot.find(), nullptr);
  EXPECT_EQ(std::memcmp(slot.find(), first.data(), first.size()), 0);
}

TEST(TableSlotTest, ShowsOnlyWholeTables) {
  constexpr std::size_t size = 2048;
  constexpr int rounds = 200;
  std::vector<TableSlot<size>> slots(rounds);
  std::array<int, thread_count> torn = {};
  on_all_threads([&](int thread) {
    for (TableSlot<size>& slot : slots) {
      const std::vector<std::byte> mine(size, static_cast<std::byte>(thread + 1));
      if (slot.find() == nullptr) slot.offer({}, mine.data());
      const std::byte* table = slot.find();
      if (table == nullptr) continue;
      for (std::size_t i = 1; i < size; ++i) torn[static_cast<std::size_t>(thread)] += table[i] != table[0];
    }
  });
  EXPECT_EQ(torn, (std::array<int, thread_count>{}));
  for (const TableSlot<size>& slot : slots) EXPECT_NE(slot.find(), nullptr);
}

// Alone in its process this meets empty slots everywhere, and threads meet each other in all of them.
TEST(TableSlotTest, ManyThreadsMayBeTheFirstToUseAKernel) {
  std::array<std::byte, 64> source = {};
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 67 + 190);
  std::array<int, thread_count> wrong = {};
  for (const Target target : supported_targets()) {
    on_all_threads([&](int thread) {
      for (const Kernel& kernel : ops_of(target).byte_source_rows()) {
        for (const bool saturate : {true, false}) {
          const codec::Policy policy{.saturate = saturate};
          std::array<std::byte, 64 * 8> got = {};
          std::array<std::byte, 64 * 8> expected = {};
          kernel.run(source.data(), got.data(), source.size(), policy);
          const Result<void> reference =
              codec::reference_cast(source.data(), kernel.from, expected.data(), kernel.to, source.size(), policy);
          wrong[static_cast<std::size_t>(thread)] += !reference.ok() || got != expected;
        }
      }
    });
  }
  EXPECT_EQ(wrong, (std::array<int, thread_count>{}));
}

// A loop of each size, to see which one is chosen and what it reads.
constexpr Loop to_32[] = {{.index_bits = 8, .output_bits = 32, .zero_bytes = 2, .table_bytes = 2},
                          {.index_bits = 8, .output_bits = 32, .zero_bytes = 0, .table_bytes = 2},
                          {.index_bits = 8, .output_bits = 32, .zero_bytes = 0, .table_bytes = 4}};

TEST(FillTableTest, LaysPlanesOutByteByByte) {
  std::array<std::byte, most_table_bytes(DType::int8, DType::int32)> table = {};
  const Reader reader = fill_table(to_32, DType::int8, DType::int32, {}, table.data());
  ASSERT_EQ(reader.loop, &to_32[1]);
  EXPECT_EQ(reader.index_elements, 1);
  for (const int number : {0, 1, 127, -128, -1}) {
    const auto index = static_cast<std::uint8_t>(number);
    EXPECT_EQ(table[index], static_cast<std::byte>(number));
    EXPECT_EQ(table[256U + index], static_cast<std::byte>(number < 0 ? 0xff : 0));
  }
}

TEST(FillTableTest, ChoosesTheFirstLoopThatGivesTheResults) {
  std::array<std::byte, most_table_bytes(DType::int8, DType::float32)> table = {};
  const auto loop_of = [&](DType from, DType to, const codec::Policy& policy) {
    return fill_table(to_32, from, to, policy, table.data()).loop;
  };
  EXPECT_EQ(loop_of(DType::float8_e4m3fn, DType::float32, {}), &to_32[0]);
  EXPECT_EQ(loop_of(DType::uint8, DType::int32, {}), &to_32[1]);
  EXPECT_EQ(loop_of(DType::float8_e5m2, DType::int32, {.range = codec::RangeRule::saturate}), &to_32[2]);
  EXPECT_EQ(loop_of(DType::uint8, DType::float32, {.scale = 0.1}), &to_32[2]);
}

TEST(FillTableTest, GivesAScalarLoopAllElementsOfASourceByte) {
  std::array<std::byte, most_table_bytes(DType::uint2, DType::int16)> table = {};
  const Reader reader = fill_table({}, DType::uint2, DType::int16, {}, table.data());
  EXPECT_TRUE(reader.loop->is_scalar);
  EXPECT_EQ(reader.index_elements, 4);
  constexpr std::size_t index = 0b11'10'01'00;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table[index * 8 + 2 * i], static_cast<std::byte>(i));
    EXPECT_EQ(table[index * 8 + 2 * i + 1], std::byte{});
  }
}

}  // namespace
}  // namespace tensorcast::kernels::byte_table
