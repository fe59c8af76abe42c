// SPDX-License-Identifier: Apache-2.0
#include "cast/pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cast/tuning.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/cast.hpp"

#if defined(__linux__)

#include <sys/mman.h>

namespace tensorcast {
namespace {

// Memory that nobody has written to.
class NewMemory {
 public:
  NewMemory(std::size_t bytes, int advice)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (data_ != MAP_FAILED) ::madvise(data_, bytes, advice);
  }
  NewMemory(const NewMemory&) = delete;
  NewMemory& operator=(const NewMemory&) = delete;
  ~NewMemory() { ::munmap(data_, bytes_); }

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_;
};

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(Pages, NewOnesAreKnownUntilTheyAreWritten) {
  const NewMemory memory(16 * mib, MADV_NOHUGEPAGE);
  EXPECT_EQ(pages_of(memory.data(), memory.bytes()), Pages::new_small);
  EXPECT_EQ(pages_of(memory.data() + 16, memory.bytes() - 16), Pages::new_small);
  std::memset(memory.data(), 1, 9 * mib);
  EXPECT_EQ(pages_of(memory.data(), memory.bytes()), Pages::there);
  EXPECT_EQ(pages_of(memory.data() + 10 * mib, 6 * mib), Pages::new_small);
  std::memset(memory.data() + 9 * mib, 1, 7 * mib);
  EXPECT_EQ(pages_of(memory.data() + 10 * mib, 6 * mib), Pages::there);
  EXPECT_EQ(memory.data()[8 * mib], std::byte{1});  // what exists is left alone
}

TEST(Pages, SmallBuffersAreNotAskedFor) {
  const NewMemory memory(mib, MADV_NOHUGEPAGE);
  EXPECT_EQ(pages_of(memory.data(), 4096), Pages::there);
  EXPECT_EQ(pages_of(memory.data(), 0), Pages::there);
  populate(memory.data() + 5, 100);  // no whole page
  populate(memory.data() + 5, 0);
  advise_huge_pages(memory.data(), mib);
}

// A system may have no huge pages to give.
TEST(Pages, HugeOnesAreNew) {
  const NewMemory memory(16 * mib, MADV_NORMAL);
  advise_huge_pages(memory.data(), memory.bytes());
  EXPECT_NE(pages_of(memory.data(), memory.bytes()), Pages::there);
}

TEST(Pages, PopulatedOnesAreZero) {
  const NewMemory memory(8 * mib, MADV_NOHUGEPAGE);
  populate(memory.data() + 1, memory.bytes() - 2);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(), [](std::byte b) { return b == std::byte{}; }));
}

TEST(Pages, StoresBypassTheCacheForLargeTargetsThatExist) {
  const auto bypasses = [](DType from, DType to, std::size_t count, Pages pages, bool is_memory_bound = true) {
    return stores_bypass_cache(Target::avx2, from, to, count, pages, is_memory_bound);
  };
  const bool has_stores = kernels::ops_of(Target::avx2).register_bytes >= 32;  // not on ARM
  EXPECT_EQ(bypasses(DType::int32, DType::float32, 8 * mib, Pages::there), has_stores);
  EXPECT_EQ(bypasses(DType::int8, DType::float32, 8 * mib, Pages::there), has_stores);
  EXPECT_EQ(bypasses(DType::int8, DType::uint8, 32 * mib, Pages::there), has_stores);
  EXPECT_FALSE(stores_bypass_cache(Target::portable, DType::int32, DType::float32, 8 * mib, Pages::there, true));
  EXPECT_FALSE(bypasses(DType::int8, DType::float32, mib, Pages::there));
  EXPECT_FALSE(bypasses(DType::int32, DType::float32, 8 * mib, Pages::new_small));
  const bool always = bypasses(DType::float32, DType::float8_e4m3fn, 32 * mib, Pages::there);  // as on Zen 4
  EXPECT_EQ(bypasses(DType::float64, DType::float32, 8 * mib, Pages::there), always);
  EXPECT_EQ(bypasses(DType::float32, DType::bfloat16, 32 * mib, Pages::there, false), always);
  EXPECT_EQ(bypasses(DType::float8_e4m3fn, DType::float8_e5m2, 32 * mib, Pages::there), always);
  EXPECT_EQ(bypasses(DType::int32, DType::float32, 8 * mib, Pages::new_huge), always);
#if defined(__x86_64__)
  const bool narrows = __builtin_cpu_is("amd") != 0 && has_stores;
  EXPECT_EQ(bypasses(DType::float32, DType::bfloat16, 32 * mib, Pages::there), narrows);
  EXPECT_EQ(bypasses(DType::float16, DType::int8, 32 * mib, Pages::there), narrows);
#endif
}

TEST(Pages, PiecesArePrefetchedWhereLoopsDoNot) {
  const auto prefetched = [](Target target, DType from, DType to) {
    return converted_pieces(target, from, to, true).prefetch_pieces;
  };
  EXPECT_EQ(prefetched(Target::avx2, DType::int32, DType::int64), 4);
  EXPECT_EQ(prefetched(Target::avx2, DType::float32, DType::int32), 0);
  EXPECT_EQ(prefetched(Target::avx2, DType::float16, DType::float32), 4);
  EXPECT_EQ(prefetched(Target::avx2, DType::float8_e4m3fn, DType::float32), 0);
  EXPECT_EQ(prefetched(Target::avx2, DType::float32, DType::int8), 0);
  EXPECT_EQ(converted_pieces(Target::avx2, DType::float32, DType::int32, false).prefetch_pieces, 0);
}

TEST(Pages, NewAndOldTargetsGetTheSameBytes) {
  constexpr std::size_t count = (std::size_t{9} << 20) + 77;  // more than bypass_cache_min_bytes
  std::vector<float> source(count);
  for (std::size_t i = 0; i < count; ++i) source[i] = static_cast<float>(i) * 0.37f - 1e6f;
  const std::int64_t shape[] = {count};
  const TensorView src{DType::float32, shape, std::as_bytes(std::span(source))};
  for (const DType to : {DType::bfloat16, DType::int8, DType::float64}) {
    const std::size_t bytes = storage_bytes(to, count);
    std::vector<std::byte> expected(bytes, std::byte{0xAA});
    CastReport expected_report;
    ASSERT_TRUE(cast(src, {to, shape, expected}, {}, expected_report).ok());
    for (const int advice : {MADV_NOHUGEPAGE, MADV_HUGEPAGE}) {
      for (const int threads : {1, 2}) {
        const NewMemory plain(bytes + 16, advice), reported(bytes + 16, advice);
        const std::span<std::byte> target(plain.data() + 16, bytes), other(reported.data() + 16, bytes);
        ASSERT_TRUE(cast(src, {to, shape, target}, {}, {.threads = threads}).ok());
        EXPECT_TRUE(std::ranges::equal(target, expected));
        CastReport report;
        ASSERT_TRUE(cast(src, {to, shape, other}, {}, report, {.threads = threads}).ok());
        EXPECT_TRUE(std::ranges::equal(other, expected));
        EXPECT_EQ(report.count, expected_report.count);
        EXPECT_EQ(report.inexact, expected_report.inexact);
        EXPECT_EQ(report.noise_power, expected_report.noise_power);
      }
    }
  }
}

TEST(Pages, ErrorsOfNewTargetsNameTheElement) {
  constexpr std::size_t count = std::size_t{3} << 20;
  std::vector<float> source(count, 1.0f);
  source[2'900'001] = 1e9f;
  const std::int64_t shape[] = {count};
  for (const int threads : {1, 2}) {
    const NewMemory memory(count, MADV_NOHUGEPAGE);
    const Result<void> done =
        cast({DType::float32, shape, std::as_bytes(std::span(source))}, {DType::int8, shape, {memory.data(), count}},
             {.out_of_range = OutOfRange::error}, {.threads = threads});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().element, std::size_t{2'900'001});
  }
}

}  // namespace
}  // namespace tensorcast

#endif
