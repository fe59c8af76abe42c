// SPDX-License-Identifier: Apache-2.0
// Every target scales runs, and looks their codes up, as plain code does, one element at a time.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::kernels {
namespace {

// Numbers of `from`, among them the extremes, infinities and NaN of floating-point types.
std::vector<std::byte> numbers_of(DType from, std::size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(storage_bytes(from, count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (from == DType::float32) {
    constexpr std::array<float, 8> extremes = {0.0F,      -0.0F,      0x1p-149F, -0x1p-126F, 0x1.fffffep127F,
                                               HUGE_VALF, -HUGE_VALF, 448.0F};
    std::memcpy(bytes.data(), extremes.data(), sizeof(extremes));
  }
  return bytes;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes, DType from, std::size_t count) {
  std::vector<float> floats(count);
  if (from == DType::float32) {
    std::memcpy(floats.data(), bytes.data(), bytes.size());
  } else {
    auto* const out = reinterpret_cast<std::byte*>(floats.data());
    EXPECT_TRUE(codec::reference_cast(bytes.data(), from, out, DType::float32, count, {}));
  }
  return floats;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST(ScaleRuns, EveryTargetRoundsEachStepAndThenTheResult) {
  constexpr std::size_t count = 512;
  std::mt19937 random(11);
  const std::vector<std::byte> random_scales = numbers_of(DType::float32, count, random);
  for (const DType from : {DType::int8, DType::bfloat16, DType::float32}) {
    for (const unsigned kind : {0U, 1U, 2U, 3U}) {
      const bool is_affine = kind % 2 != 0, has_no_nan = kind >= 2;
      for (const unsigned run : {run_of_all, 1U, 16U, 32U}) {
        const std::vector<std::byte> src = numbers_of(from, count, random);
        std::vector<float> scales = floats_of(random_scales, DType::float32, count);
        if (run == run_of_all) scales[0] = 0x1.234568p-9F;
        if (has_no_nan) {
          for (float& scale : scales) scale = std::isnan(scale) ? HUGE_VALF : scale;
        }
        std::vector<float> zeros(count), biases(count), wanted(count);
        for (std::size_t i = 0; i < count; ++i) {
          zeros[i] = static_cast<float>(random() % 256);
          biases[i] = static_cast<float>(random()) * 0x1p-40F;
        }
        const std::vector<float> numbers = floats_of(src, from, count);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t k = run == run_of_all ? 0 : i / run;
          volatile float x = numbers[i];
          if (is_affine) x = x - zeros[k];
          x = x * scales[k];
          if (is_affine) x = x + biases[k];
          wanted[i] = x;
        }
        const RunParameters by{scales.data(), is_affine ? zeros.data() : nullptr, is_affine ? biases.data() : nullptr};
        for (const DType to : {DType::float32, DType::float16, DType::bfloat16}) {
          std::vector<std::byte> rounded(storage_bytes(to, count)), made(rounded.size());
          if (to == DType::float32) {
            std::memcpy(rounded.data(), wanted.data(), rounded.size());
          } else {
            const auto* const numbers_wanted = reinterpret_cast<const std::byte*>(wanted.data());
            ASSERT_TRUE(codec::reference_cast(numbers_wanted, DType::float32, rounded.data(), to, count, {}));
          }
          const std::vector<float> right = floats_of(rounded, to, count);
          for (const Target target : supported_targets()) {
            ops_of(target).find_scale_runs(from, to, run)(src.data(), made.data(), count, by);
            const std::vector<float> got = floats_of(made, to, count);
            for (std::size_t i = 0; i < count; ++i) {
              ASSERT_TRUE(same(got[i], right[i])) << name(target) << ' ' << name(from) << ' ' << name(to) << ' ' << i;
            }
          }
        }
      }
    }
  }
}

TEST(ScaleRuns, EveryTargetMultipliesByPowersOfTwo) {
  constexpr std::size_t run = 32, count = 256 * 256;
  // Numbers of float8_e5m2, all with a scale of each power that keeps results normal.
  std::vector<std::byte> codes(count);
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::byte>(i);
  std::vector<std::uint16_t> numbers(count), wanted(count), made(count);
  ASSERT_TRUE(codec::reference_cast(codes.data(), DType::float8_e5m2, reinterpret_cast<std::byte*>(numbers.data()),
                                    DType::bfloat16, count, {}));
  std::vector<float> scales(count / run);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = std::ldexp(1.0F, static_cast<int>(i / 8) % 220 - 109);
  const auto* const src = reinterpret_cast<const std::byte*>(numbers.data());
  const RunParameters by{scales.data(), nullptr, nullptr};
  ops_of(Target::portable)
      .find_scale_runs(DType::bfloat16, DType::bfloat16, run)(src, reinterpret_cast<std::byte*>(wanted.data()), count,
                                                              by);
  for (const Target target : supported_targets()) {
    ops_of(target).scale_runs_by_powers(src, reinterpret_cast<std::byte*>(made.data()), count, by);
    EXPECT_EQ(made, wanted) << name(target);
  }
}

// Numbers of float8 and powers that keep them normal, in runs of 32.
TEST(LookUpSplit, EveryTargetAddsThePowersOfRuns) {
  std::mt19937 random(17);
  constexpr std::size_t most = 1000;
  std::vector<std::byte> codes(most);
  std::vector<std::uint16_t> powers(most / 32 + 2);
  for (const DType type : {DType::float8_e4m3fn, DType::float8_e5m2}) {
    std::array<std::uint16_t, 256> numbers;
    for (unsigned code = 0; code < 256; ++code) {
      numbers[code] = static_cast<std::uint16_t>(codec::cast_code(type, code, DType::bfloat16, {}).bits);
    }
    const std::optional<byte_table::SplitTable> table = byte_table::split(numbers);
    ASSERT_TRUE(table && table->odd_low == 0 && table->odd_high == 0);
    for (int round = 0; round < 20; ++round) {
      for (std::byte& code : codes) code = static_cast<std::byte>(random());
      for (std::uint16_t& power : powers)
        power = static_cast<std::uint16_t>((static_cast<int>(random() % 200) - 100) * 128);
      for (const Target target : supported_targets()) {
        const LookUpSplitByPowersFn look_up = ops_of(target).look_up_split_by_powers;
        if (look_up == nullptr) continue;
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{256}, most}) {
          const std::vector<std::byte> given(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(count));
          std::vector<std::uint16_t> made((count + run_step - 1) / run_step * run_step);
          look_up(given.data(), reinterpret_cast<std::byte*>(made.data()), count, *table, powers.data(), false);
          for (std::size_t i = 0; i < count; ++i) {
            const std::uint16_t number = numbers[std::to_integer<unsigned>(given[i])];
            const bool has_exponent = (number & 0x7fff) != 0 && (number & 0x7f80) != 0x7f80;
            const auto right = static_cast<std::uint16_t>(number + (has_exponent ? powers[i / 32] : 0));
            ASSERT_EQ(made[i], right) << name(target) << ' ' << count << ' ' << i;
          }
        }
      }
    }
  }
}

TEST(LookUpSplit, EveryTargetGivesTheOutputsOfAnyTable) {
  std::mt19937 random(13);
  std::vector<std::byte> codes(1000);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i < 256 ? i : random());
  for (int round = 0; round < 20; ++round) {
    const std::size_t width = std::array<std::size_t, 4>{64, 100, 128, 5000}[static_cast<std::size_t>(round) % 4];
    std::array<byte_table::SplitTable, 3> tables = {};
    for (byte_table::SplitTable& table : tables) {
      for (auto* entries :
           {&table.low_of_low, &table.high_of_high, &table.high_of_low, &table.rare_low, &table.rare_high}) {
        for (std::uint8_t& entry : *entries) entry = static_cast<std::uint8_t>(random());
      }
    }
    std::vector<const byte_table::SplitTable*> each(codes.size() / width + 2);
    for (std::size_t i = 0; i < each.size(); ++i) each[i] = &tables[i % tables.size()];
    for (const Target target : supported_targets()) {
      const LookUpSplitFn look_up = ops_of(target).look_up_split;
      if (look_up == nullptr) continue;
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{128}, codes.size()}) {
        std::vector<std::uint16_t> made(count + 1, 0xabcd);
        const SplitRuns runs{.tables = each.data(), .width = width, .skipped = width / 3};
        look_up(codes.data(), reinterpret_cast<std::byte*>(made.data()), count, runs);
        for (std::size_t i = 0; i < count; ++i) {
          const byte_table::SplitTable& table = *each[(i + runs.skipped) / width];
          ASSERT_EQ(made[i], table(std::to_integer<unsigned>(codes[i]))) << name(target) << ' ' << count << ' ' << i;
        }
        EXPECT_EQ(made[count], 0xabcd) << name(target) << ' ' << count;
      }
    }
  }
}

TEST(LookUpNibbles, EveryTargetGivesTheResultsOfEachRunsTable) {
  std::mt19937 random(19);
  constexpr std::size_t most = 1000, table_count = 256;
  std::vector<std::uint16_t> tables(16 * table_count);
  for (std::uint16_t& result : tables) result = static_cast<std::uint16_t>(random());
  std::vector<std::uint8_t> indices(table_count);
  for (std::uint8_t& index : indices) index = static_cast<std::uint8_t>(random());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{256}, most}) {
    for (const std::size_t width : {16U, 32U, 48U, 128U, 2048U}) {
      for (unsigned kind = 0; kind < 8; ++kind) {
        const NibbleRuns runs{.tables = tables.data(),
                              .indices = kind % 2 == 0 ? nullptr : indices.data(),
                              .width = width,
                              .skipped = kind < 2 ? 0 : width - 16,
                              .nibbles = static_cast<Nibbles>(kind / 2)};
        const bool are_halves = kind >= 4;
        std::vector<std::byte> codes(are_halves ? count : (count + 1) / 2);  // no byte more, for sanitizers
        for (std::byte& byte : codes) byte = static_cast<std::byte>(random());
        for (const Target target : supported_targets()) {
          const LookUpNibblesFn look_up = ops_of(target).look_up_nibbles;
          if (look_up == nullptr) continue;
          std::vector<std::uint16_t> made((count + 15) / 16 * 16 + 1, 0xabcd);
          look_up(codes.data(), reinterpret_cast<std::byte*>(made.data()), count, runs);
          for (std::size_t i = 0; i < count; ++i) {
            const std::size_t run = (i + runs.skipped) / width;
            const std::size_t table = runs.indices == nullptr ? run : indices[run];
            const bool is_upper = are_halves ? runs.nibbles == Nibbles::high_halves
                                             : (i % 2 != 0) != (runs.nibbles == Nibbles::high_first);
            const std::byte both = codes[are_halves ? i : i / 2];
            const unsigned code = std::to_integer<unsigned>(both) >> (is_upper ? 4U : 0U) & 15U;
            ASSERT_EQ(made[i], tables[16 * table + code]) << name(target) << ' ' << width << ' ' << i;
          }
          EXPECT_EQ(made.back(), 0xabcd) << name(target);
        }
      }
    }
  }
}

TEST(ScaleRuns, OtherTypesHaveNone) {
  for (const Target target : supported_targets()) {
    EXPECT_EQ(ops_of(target).find_scale_runs(DType::float64, DType::float32, 1), nullptr);
    EXPECT_EQ(ops_of(target).find_scale_runs(DType::int8, DType::float64, 1), nullptr);
    EXPECT_EQ(ops_of(target).find_scale_runs(DType::int8, DType::float32, 2), nullptr);
    for (const GgufElements elements : {GgufElements::numbers, GgufElements::codes}) {
      EXPECT_EQ(ops_of(target).find_unpack_gguf(GgufBlock::none, elements), nullptr);
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
