#include "kernels/narrow/table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "codec/reference_cast.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels::narrow {
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
  slot.offer(first.data());
  slot.offer(second.data());
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
      if (slot.find() == nullptr) slot.offer(mine.data());
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
      for (const Kernel& kernel : narrow_kernels(target)) {
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

TEST(FillTableTest, LaysPlanesOutByteByByte) {
  constexpr Layout layout = layout_of(Target::avx512vbmi, DType::int8, DType::int32);
  static_assert(layout.form == Form::bytes && layout.table_units == 2);
  std::array<std::byte, layout.table_bytes()> table = {};
  fill_table(layout, DType::int8, DType::int32, {}, table.data());
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(std::to_integer<int>(table[static_cast<std::size_t>(code)]), code);
    EXPECT_EQ(std::to_integer<int>(table[static_cast<std::size_t>(code) + 256]), code < 128 ? 0 : 255);
  }
}

TEST(FillTableTest, PutsAllElementsOfASourceByteInOneEntry) {
  constexpr Layout layout = layout_of(Target::portable, DType::uint2, DType::int16);
  static_assert(layout.index_elements == 4 && layout.output_bytes() == 8);
  std::array<std::byte, layout.table_bytes()> table = {};
  fill_table(layout, DType::uint2, DType::int16, {}, table.data());
  std::array<std::int16_t, 4> entry = {};
  std::memcpy(entry.data(), table.data() + 0b11'00'10'01 * sizeof entry, sizeof entry);
  EXPECT_EQ(entry, (std::array<std::int16_t, 4>{1, 2, 0, 3}));
}

template <DType from, DType to>
TruncationTable truncation_table(const codec::Policy& policy) {
  constexpr Layout layout = avx2_layout(from, to);
  static_assert(layout.form == Form::truncated);
  std::array<std::byte, layout.table_bytes()> table = {};
  fill_table(layout, from, to, policy, table.data());
  TruncationTable facts;
  std::memcpy(&facts, table.data(), sizeof facts);
  return facts;
}

TEST(FillTableTest, SaysWhichCodesTheCpuConverts) {
  const codec::Policy wrap;
  const codec::Policy saturate{.integer_range = codec::IntegerRange::saturate};
  const codec::Policy nearest{.int_rounding = IntRounding::nearest_even};
  // No NaN but 0x80, which is -0 to the CPU.
  EXPECT_EQ((truncation_table<DType::float8_e4m3fnuz, DType::int16>(wrap).greatest_plain[0]), 0x7f);
  // 0x7c is infinity: 2^16 to the CPU, and 0 in 16 bits. 0x78 is 2^15.
  EXPECT_EQ((truncation_table<DType::float8_e5m2, DType::int16>(wrap).greatest_plain[0]), 0x7c);
  EXPECT_EQ((truncation_table<DType::float8_e5m2, DType::int16>(saturate).greatest_plain[0]), 0x77);
  EXPECT_EQ((truncation_table<DType::float8_e5m2, DType::int64>(wrap).greatest_plain[15]), 0x7b);

  EXPECT_EQ((truncation_table<DType::float8_e5m2, DType::uint32>(wrap).lowest[0]), -128);
  EXPECT_EQ((truncation_table<DType::float8_e5m2, DType::uint32>(saturate).lowest[15]), 0);
  EXPECT_EQ((truncation_table<DType::float8_e5m2, DType::uint32>(wrap).rounds), 0);
  EXPECT_EQ((truncation_table<DType::float8_e4m3fn, DType::uint32>(nearest).rounds), 1);
}

// A plane's byte of an index, in the words of RowPlane.
std::uint8_t look_up_row(const Layout& layout, std::size_t number, const std::byte* table, std::size_t index) {
  const std::byte* const at = table + layout.row_plane_offset(number);
  RowPlane plane;
  std::memcpy(&plane, at, sizeof plane);
  const std::size_t place = (index + static_cast<std::size_t>(layout.index_offset)) % 256;
  const std::size_t row = place / 16;
  const int unused_bits = 8 - std::bit_width(layout.shapes[number] - 1u);
  const std::size_t shape = plane.shape[row] >> unused_bits;
  EXPECT_LT(shape, layout.shapes[number]);
  const int sign = layout.has_signs && number == 0 ? plane.sign[row] : 1;
  return static_cast<std::uint8_t>(plane.first[row] +
                                   sign * std::to_integer<int>(at[sizeof plane + shape * 16 + place % 16]));
}

std::vector<codec::Policy> policies() {
  std::vector<codec::Policy> all;
  for (const bool saturate : {true, false}) {
    for (const RoundMode mode : {RoundMode::up, RoundMode::down, RoundMode::nearest}) {
      all.push_back({.saturate = saturate, .e8m0_rounding = mode});
    }
    for (const auto range : {codec::IntegerRange::wrap, codec::IntegerRange::saturate}) {
      all.push_back({.saturate = saturate, .integer_range = range, .int_rounding = IntRounding::nearest_even});
      all.push_back({.fnuz_inf_is_nan = saturate, .float4_nan_is_zero = false, .integer_range = range});
    }
  }
  return all;
}

TEST(FillTableTest, RowsHaveNoMoreShapesThanTheirLayoutSays) {
  for (const DTypeRow& from : dtype_table) {
    for (const DTypeRow& to : dtype_table) {
      if (from.bits != 8 || from.family == Family::boolean || to.family == Family::text || to.id == from.id) continue;
      const Layout layout = avx2_layout(from.id, to.id);
      if (layout.form != Form::rows) continue;
      for (const codec::Policy& policy : policies()) {
        std::vector<std::byte> table(layout.table_bytes());
        fill_table(layout, from.id, to.id, policy, table.data());
        for (std::size_t index = 0; index < 256; ++index) {
          const std::uint64_t expected = codec::cast_code(from.id, index, to.id, policy).bits;
          for (std::size_t plane = 0; plane < static_cast<std::size_t>(layout.table_units); ++plane) {
            const std::size_t shift = 8 * (plane + static_cast<std::size_t>(layout.zero_units));
            const int mask = (1 << std::min(layout.element_bits, 8)) - 1;
            ASSERT_EQ(look_up_row(layout, plane, table.data(), index) & mask, expected >> shift & mask)
                << from.name << " -> " << to.name << ", plane " << plane << ", code " << index;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels::narrow
