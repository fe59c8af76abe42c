// SPDX-License-Identifier: Apache-2.0
// Every pair with a source of 8 bits or fewer, on every target of this CPU, against the reference.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codec/codec_testing.hpp"
#include "codec/reference_cast.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;
using codec::RangeRule;

constexpr std::byte canary{0xa5};

// Memory between two pages that fault when touched.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = (bytes + page - 1) / page * page;
    mapped_ = size_ + 2 * page;
    void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(memory);
    begin_ = base_ + page;
    if (mprotect(begin_, size_, PROT_READ | PROT_WRITE) != 0) std::abort();
  }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { munmap(base_, mapped_); }

  [[nodiscard]] std::byte* begin() const { return begin_; }
  [[nodiscard]] std::byte* end() const { return begin_ + size_; }

 private:
  std::byte* base_ = nullptr;
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

std::vector<Policy> policies() {
  std::vector<Policy> all;
  for (const bool saturate : {true, false}) {
    for (const RoundMode mode : {RoundMode::up, RoundMode::down, RoundMode::nearest}) {
      all.push_back({.saturate = saturate, .e8m0_rounding = mode});
    }
  }
  for (const RoundMode mode : {RoundMode::down, RoundMode::nearest}) {
    all.push_back({.keeps_infinity = true, .e8m0_rounding = mode});
  }
  all.push_back({.keeps_infinity = true});
  all.push_back({.keeps_infinity = true, .float4_nan_is_zero = false});
  all.push_back({.range = RangeRule::saturate});
  all.push_back({.rounding = Rounding::nearest_even});
  all.push_back({.saturate = false,
                 .float4_nan_is_zero = false,
                 .range = RangeRule::saturate,
                 .rounding = Rounding::nearest_even,
                 .e8m0_rounding = RoundMode::nearest});
  return all;
}

std::string description(const Policy& policy) {
  return "saturate " + std::to_string(policy.saturate) + " keeps_infinity " + std::to_string(policy.keeps_infinity) +
         " float4_nan_is_zero " + std::to_string(policy.float4_nan_is_zero) + " range " +
         std::to_string(static_cast<int>(policy.range)) + " rounding " +
         std::to_string(static_cast<int>(policy.rounding)) + " e8m0_rounding " +
         std::to_string(static_cast<int>(policy.e8m0_rounding));
}

// More than one block of every engine, odd, and every byte value next to many others.
constexpr std::size_t most_elements = 1237;

std::vector<std::byte> source_bytes() {
  std::vector<std::byte> bytes(most_elements);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 167 + i / 256 * 91 + 128);
  return bytes;
}

std::vector<std::size_t> counts() {
  std::vector<std::size_t> all;
  for (std::size_t count = 0; count <= 200; ++count) all.push_back(count);
  all.insert(all.end(), {255, 256, 257, 511, 512, 513, most_elements});
  return all;
}

// The first `count` elements of a longer result.
std::vector<std::byte> first_elements(const std::vector<std::byte>& all, DType dtype, std::size_t count) {
  std::vector<std::byte> first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(storage_bytes(dtype, count)));
  const auto used_bits = count * static_cast<std::size_t>(bit_width(dtype)) % 8;
  if (used_bits != 0) first.back() &= static_cast<std::byte>((1u << used_bits) - 1);
  return first;
}

bool equal(const std::byte* got, const std::vector<std::byte>& expected) {
  return expected.empty() || std::memcmp(got, expected.data(), expected.size()) == 0;
}

class ByteSourcesTest : public testing::TestWithParam<Target> {
 protected:
  // Places that begin or end at a page that faults, and in place where that is allowed.
  void check(const Kernel& kernel, const Policy& policy, std::size_t count, const std::vector<std::byte>& expected) {
    const std::size_t src_bytes = storage_bytes(kernel.from, count);
    const std::size_t dst_bytes = expected.size();
    const auto differs = [&](const char* where) {
      return std::string(name(kernel.from)) + " -> " + std::string(name(kernel.to)) + " by " +
             std::string(kernel.algorithm) + ", " + std::to_string(count) + " elements, " + where + ", " +
             description(policy);
    };

    std::byte* src = src_memory_.end() - src_bytes;
    std::byte* dst = dst_memory_.end() - dst_bytes;
    std::memcpy(src, source_.data(), src_bytes);
    dst[-1] = canary;
    kernel.run(src, dst, count, policy);
    ASSERT_TRUE(equal(dst, expected)) << differs("at the end");
    ASSERT_EQ(dst[-1], canary) << differs("at the end");

    src = src_memory_.begin();
    dst = dst_memory_.begin();
    std::memcpy(src, source_.data(), src_bytes);
    dst[dst_bytes] = canary;
    kernel.run(src, dst, count, policy);
    ASSERT_TRUE(equal(dst, expected)) << differs("at the beginning");
    ASSERT_EQ(dst[dst_bytes], canary) << differs("at the beginning");

    if (bit_width(kernel.to) > bit_width(kernel.from)) return;
    dst = dst_memory_.end() - src_bytes;
    std::memcpy(dst, source_.data(), src_bytes);
    kernel.run(dst, dst, count, policy);
    ASSERT_TRUE(equal(dst, expected)) << differs("in place");
    ASSERT_TRUE(std::equal(dst + dst_bytes, dst + src_bytes, source_.begin() + static_cast<std::ptrdiff_t>(dst_bytes)))
        << differs("in place");
  }

  std::vector<std::byte> source_ = source_bytes();
  GuardedMemory src_memory_{most_elements};
  GuardedMemory dst_memory_{most_elements * 8 + 1};
};

TEST_P(ByteSourcesTest, EqualsTheReferenceForEveryPairPolicyAndCount) {
  std::vector<std::byte> expected;
  for (const Kernel& kernel : ops_of(GetParam()).byte_source_rows()) {
    for (const Policy& given : policies()) {
      const Policy policy = codec::without_word(given, kernel.to);
      expected.resize(storage_bytes(kernel.to, most_elements));
      const Result<void> reference =
          codec::reference_cast(source_.data(), kernel.from, expected.data(), kernel.to, most_elements, policy);
      ASSERT_TRUE(reference.ok());
      for (const std::size_t count : counts()) {
        check(kernel, policy, count, first_elements(expected, kernel.to, count));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ByteSourcesTest, HasEveryPairOnce) {
  const KernelRows rows = ops_of(GetParam()).byte_source_rows();
  std::size_t expected = 0;
  for (const DType from : all_dtypes()) {
    if (bit_width(from) > 8 || from == DType::string) continue;
    for (const DType to : all_dtypes()) {
      if (to == from || to == DType::string) continue;
      ++expected;
      EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [&](const Kernel& k) { return k.from == from && k.to == to; }),
                1)
          << name(from) << " -> " << name(to);
    }
  }
  EXPECT_EQ(rows.size(), expected);
}

INSTANTIATE_TEST_SUITE_P(Targets, ByteSourcesTest,
                         testing::ValuesIn(supported_targets().begin(), supported_targets().end()),
                         [](const auto& instance) { return std::string(name(instance.param)); });

}  // namespace
}  // namespace tensorcast::kernels
