// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"
#include "kernels/ops.hpp"

#define TENSORCAST_TARGET registry_test
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels {
namespace {

using namespace registry_test;

TEST(Registry, EveryTargetHasEveryPairOnce) {
  for (const Target target : supported_targets()) {
    std::set<std::pair<DType, DType>> pairs;
    for (const Kernel& kernel : kernels(target)) {
      EXPECT_NE(kernel.from, kernel.to);
      EXPECT_NE(kernel.run, nullptr);
      EXPECT_FALSE(kernel.algorithm.empty());
      EXPECT_TRUE(pairs.emplace(kernel.from, kernel.to).second) << name(kernel.from) << " -> " << name(kernel.to);
      EXPECT_EQ(find_kernel(target, kernel.from, kernel.to)->run, kernel.run);
    }
    EXPECT_EQ(pairs.size(), number_type_count * (number_type_count - 1)) << name(target);
  }
}

TEST(Registry, WhatHasNoKernelIsNull) {
  EXPECT_EQ(find_kernel(Target::portable, DType::float32, DType::float32), nullptr);
  EXPECT_EQ(find_kernel(Target::portable, DType::float32, DType::string), nullptr);
  EXPECT_EQ(find_kernel(Target::portable, DType::undefined, DType::float32), nullptr);
  EXPECT_EQ(find_kernel(Target::portable, DType::float32, DType::uint1), nullptr);
  EXPECT_EQ(find_kernel(Target::portable, static_cast<DType>(-5), DType::float32), nullptr);
}

TEST(Target, ActiveIsSupportedAndPortableAlwaysIs) {
  const auto supported = supported_targets();
  ASSERT_FALSE(supported.empty());
  EXPECT_EQ(supported.front(), Target::portable);
  bool found = false;
  for (const Target target : supported) found = found || target == active_target();
  EXPECT_TRUE(found);
  if (std::getenv("TENSORCAST_TARGET") == nullptr) {
    EXPECT_EQ(active_target(), supported.back());
  }
  EXPECT_EQ(name(Target::avx512vbmi), "avx512vbmi");
}

TEST(StreamCopy, CopiesEveryLengthAtEveryAlignment) {
  std::vector<std::byte> src(1024);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const Target target : supported_targets()) {
    for (std::size_t bytes = 0; bytes < 300; ++bytes) {
      for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, std::size_t{63}, bytes % 61}) {
        std::vector<std::byte> dst(bytes + 128 + shift, std::byte{0x5a});
        ops_of(target).stream_copy(src.data() + bytes % 5, dst.data() + shift, bytes);
        ASSERT_EQ(std::memcmp(dst.data() + shift, src.data() + bytes % 5, bytes), 0) << bytes;
        for (std::size_t i = 0; i < shift; ++i) ASSERT_EQ(dst[i], std::byte{0x5a});
        for (std::size_t i = shift + bytes; i < dst.size(); ++i) ASSERT_EQ(dst[i], std::byte{0x5a});
      }
    }
  }
}

// Rows and columns of every number; few of them are another loop if they follow each other without gaps.
TEST(Transpose, IsThatOfEachElement) {
  constexpr std::ptrdiff_t pitch = 1150;
  constexpr std::size_t most = 140;
  std::vector<std::byte> src(most * pitch);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const Target target : supported_targets()) {
    if (ops_of(target).transpose == nullptr) continue;
    for (const std::size_t item : {1, 2, 4, 8}) {
      for (const std::size_t rows : {1, 2, 3, 4, 7, 8, 31, 63, 64, 67, 140}) {
        for (const std::size_t columns : {1, 2, 3, 4, 5, 16, 33, 64, 130}) {
          for (const std::ptrdiff_t step : {-pitch, pitch, static_cast<std::ptrdiff_t>(columns * item)}) {
            const std::byte* const first = src.data() + (step < 0 ? (rows - 1) * pitch : 0) + item;
            const std::size_t row_bytes = rows * item + (step < 0 ? 5 : 0);
            std::vector<std::byte> dst(columns * row_bytes, std::byte{0x5a}), expected = dst;
            for (std::size_t i = 0; i < rows; ++i) {
              for (std::size_t j = 0; j < columns; ++j) {
                std::memcpy(expected.data() + j * row_bytes + i * item,
                            first + static_cast<std::ptrdiff_t>(i) * step + j * item, item);
              }
            }
            ops_of(target).transpose(item, first, step, rows, columns, dst.data(),
                                     static_cast<std::ptrdiff_t>(row_bytes));
            ASSERT_EQ(dst, expected) << item << " " << rows << " " << columns << " " << step;
          }
        }
      }
    }
  }
}

// The caller may flush subnormal numbers, round elsewhere, make all NaN alike or, on x86, let every exception trap:
// results stay, and so do the caller's settings.
TEST(Environment, KernelsDoNotDependOnTheCallers) {
#if defined(__x86_64__)
  constexpr FloatEnvironment flags = exception_flags;
  constexpr FloatEnvironment environments[] = {default_environment | 0x8040, default_environment | 0x6000,
                                               default_environment | 0x4000, 0};
#elif defined(__aarch64__)
  constexpr FloatEnvironment flags = 0;
  constexpr FloatEnvironment environments[] = {1U << 24 | 1U << 19, 3U << 22, 1U << 22, 1U << 25};
#endif
  std::vector<std::byte> src(1280);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i * 37 + i / 11);
  std::memset(src.data(), 0, 64);
  for (std::size_t i = 0; i < 64; i += 8) src[i] = static_cast<std::byte>(i + 1);  // subnormal numbers
  for (const Target target : supported_targets()) {
    for (const Kernel& kernel : kernels(target)) {
      constexpr std::size_t count = 160, few = 11;
      const codec::Policy rounding = codec::without_word({.rounding = Rounding::nearest_even}, kernel.to);
      {
        std::vector<std::byte> table(storage_bytes(kernel.to, 1));
        kernel.run(src.data(), table.data(), 1, rounding);  // the reference fills tables
      }
      std::vector<std::byte> expected(storage_bytes(kernel.to, count));
      ASSERT_TRUE(codec::reference_cast(src.data(), kernel.from, expected.data(), kernel.to, count, rounding));
      for (const FloatEnvironment changed : environments) {
        std::vector<std::byte> actual(expected.size()), first(storage_bytes(kernel.to, few));
        const FloatEnvironment before = float_environment();
        restore(changed);
        kernel.run(src.data(), actual.data(), count, rounding);
        kernel.run(src.data(), first.data(), few, rounding);
        const FloatEnvironment after = float_environment();
        restore(before);
        ASSERT_EQ(after & ~flags, changed & ~flags);
        ASSERT_EQ(expected, actual) << name(kernel.from) << " -> " << name(kernel.to) << " on " << name(target)
                                    << " in environment " << changed;
        const std::size_t whole = few * static_cast<std::size_t>(bit_width(kernel.to)) / 8;
        ASSERT_TRUE(std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(whole), expected.begin()))
            << name(kernel.from) << " -> " << name(kernel.to) << " on " << name(target) << " in environment "
            << changed;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
