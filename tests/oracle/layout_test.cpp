// SPDX-License-Identifier: Apache-2.0
// D11 and the overlap rule: packing, tails, in place, many elements, threads.
#include <gtest/gtest.h>

#include <cstring>

#include "check.hpp"
#include "samples.hpp"

namespace oracle {
namespace {

std::vector<std::uint64_t> expected_codes(Type from, const std::vector<std::uint64_t>& codes, Type to) {
  std::vector<std::uint64_t> results;
  for (const std::uint64_t code : codes) results.push_back(convert(from, code, to, default_options()).code);
  return results;
}

TEST(Layout, EveryCountUpToTwoVectorsAtEveryAlignment) {
  for (const Type from : numeric_types()) {
    for (const Type to : numeric_types()) {
      const std::vector<std::uint64_t> codes = random_codes(from, to, 11, 200);
      const std::vector<std::uint64_t> expected = expected_codes(from, codes, to);
      for (std::size_t count = 0; count <= 140; count += count < 36 ? 1 : 7) {
        const std::span<const std::uint64_t> some = std::span(codes).first(count);
        const CAbiResult got = run_tc_cast(from, some, to, default_options(), count % 8);
        ASSERT_EQ(got.status, TC_OK) << got.message;
        ASSERT_EQ(got.storage_fault, "") << info(from).name << " to " << info(to).name << ", " << count << " elements";
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(got.codes[i], expected[i])
              << "element " << i << " of " << count << ": " << replay_command(from, codes[i], to, default_options());
        }
      }
    }
  }
}

TEST(Layout, UnusedBitsOfTheSourceAreIgnored) {
  for (const Type from : numeric_types()) {
    if (!is_below_8_bits(from)) continue;
    std::vector<std::byte> source(1, std::byte{0xFF});
    for (const Type to : numeric_types()) {
      std::vector<std::byte> target(8);
      ASSERT_EQ(tc_cast(source.data(), from, target.data(), to, 1, nullptr), TC_OK);
      EXPECT_EQ(unpack(to, target, 1)[0], convert(from, code_mask(from), to, default_options()).code)
          << replay_command(from, code_mask(from), to, default_options());
      EXPECT_LE(std::to_integer<unsigned>(target[0]), code_mask(to)) << info(to).name;
    }
  }
}

TEST(Layout, InPlaceWhereTheTargetIsNotWider) {
  for (const Type from : numeric_types()) {
    for (const Type to : numeric_types()) {
      if (info(to).bits > info(from).bits) continue;
      for (const std::size_t count : {1, 7, 64, 1001, 5000}) {
        const std::vector<std::uint64_t> codes = random_codes(from, to, 13, count);
        std::vector<std::byte> storage = pack(from, codes);
        ASSERT_EQ(tc_cast(storage.data(), from, storage.data(), to, count, nullptr), TC_OK) << tc_last_error();
        ASSERT_EQ(unpack(to, storage, count), expected_codes(from, codes, to))
            << info(from).name << " to " << info(to).name << " in place, " << count << " elements";
      }
    }
  }
}

TEST(Layout, ThreadsChangeNothing) {
  const std::pair<Type, Type> pairs[] = {{f32, bf16}, {f32, i4},     {f64, e4m3fn}, {e2m1, f32},
                                         {i64, f16},  {u2, boolean}, {f16, u2},     {f32, e8m0},
                                         {f32, e2m3}, {e3m2, f16},   {e2m3, e3m2}};
  constexpr std::size_t count = (std::size_t{1} << 21) + 13;
  for (const auto& [from, to] : pairs) {
    const std::vector<std::byte> source = pack(from, random_codes(from, to, 17, count));
    std::vector<std::byte> alone(tc_storage_bytes(to, count)), together(alone.size());
    tc_cast_options options = default_options();
    ASSERT_EQ(tc_cast(source.data(), from, alone.data(), to, count, &options), TC_OK);
    options.threads = 0;
    ASSERT_EQ(tc_cast(source.data(), from, together.data(), to, count, &options), TC_OK);
    EXPECT_TRUE(alone == together) << info(from).name << " to " << info(to).name;
  }
}

TEST(Layout, TheFirstRefusedElementIsNamedWhateverTheThreads) {
  constexpr std::size_t count = std::size_t{1} << 20;
  std::vector<float> source(count, 1.0F);
  source[700001] = 300.0F;
  source[900000] = -1.0F;
  std::vector<std::byte> target(count);
  for (const int threads : {1, 2, 0}) {
    tc_cast_options options = default_options();
    options.out_of_range = 3;
    options.threads = threads;
    EXPECT_EQ(tc_cast(source.data(), f32, target.data(), u8, count, &options), TC_OUT_OF_RANGE);
    EXPECT_NE(std::strstr(tc_last_error(), "element 700001:"), nullptr) << tc_last_error();
  }
}

}  // namespace
}  // namespace oracle
