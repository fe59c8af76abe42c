// SPDX-License-Identifier: Apache-2.0
#include "sweep.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "check.hpp"
#include "codec/policy.hpp"
#include "kernels/kernel.hpp"
#include "runs.hpp"
#include "samples.hpp"

namespace oracle {
namespace {

namespace tc = tensorcast;

constexpr std::uint64_t code_count = std::uint64_t{1} << 32;
constexpr std::size_t block_count = std::size_t{1} << 15;  // source and target stay in the second-level cache

tc::codec::Policy policy_of(Type from, Type to, const tc_cast_options& options) {
  tc::CastOptions cpp;
  cpp.opset = options.opset;
  cpp.saturate = options.saturate != 0;
  cpp.round_mode = static_cast<tc::RoundMode>(options.round_mode);
  cpp.out_of_range = static_cast<tc::OutOfRange>(options.out_of_range);
  cpp.rounding = static_cast<tc::Rounding>(options.rounding);
  cpp.fnuz_inf = static_cast<tc::FnuzInf>(options.fnuz_inf);
  return tc::codec::resolve_policy(cpp, static_cast<tc::DType>(from), static_cast<tc::DType>(to)).value();
}

const tc::kernels::Kernel& kernel_of(tc::Target target, Type from, Type to) {
  return *tc::kernels::find_kernel(target, static_cast<tc::DType>(from), static_cast<tc::DType>(to));
}

std::string mismatch(Type from, std::uint64_t code, Type to, const tc_cast_options& options, std::uint64_t got,
                     std::uint64_t expected) {
  char text[80];
  std::snprintf(text, sizeof text, "gives 0x%llx, not 0x%llx; replay: ", static_cast<unsigned long long>(got),
                static_cast<unsigned long long>(expected));
  return text + replay_command(from, code, to, options);
}

template <class Code>
class Float32Sweep {
 public:
  Float32Sweep(tc::Target target, Type to, const tc_cast_options& options, unsigned stride)
      : to_(to),
        options_(options),
        stride_(stride),
        runs_(to, options),
        policy_(policy_of(f32, to, options)),
        kernel_(kernel_of(target, f32, to)) {}

  SweepResult run(unsigned threads) {
    std::vector<std::thread> workers;
    for (unsigned i = 1; i < threads; ++i) workers.emplace_back([this] { work(); });
    work();
    for (std::thread& worker : workers) worker.join();
    return result_;
  }

 private:
  void work() {
    std::vector<std::uint32_t> source(block_count);
    std::vector<std::byte> target(block_count * sizeof(Code));
    std::vector<Code> expected(block_count);
    for (;;) {
      const std::uint64_t first = next_.fetch_add(block_count * stride_);
      if (first >= code_count) return;
      const auto start = static_cast<std::uint32_t>(first);
      std::iota(source.begin(), source.end(), start);
      kernel_.run(reinterpret_cast<const std::byte*>(source.data()), target.data(), block_count, policy_);
      runs_.fill(start, std::span(expected));
      compare(start, target, expected);
    }
  }

  void compare(std::uint32_t start, const std::vector<std::byte>& target, std::vector<Code>& expected) {
    std::uint64_t wrong = 0;
    std::uint64_t where = 0;
    const std::size_t bytes = pack_in_place(expected);
    if (std::memcmp(target.data(), expected.data(), bytes) != 0) {
      const std::vector<std::uint64_t> got = unpack(to_, target, block_count);
      const std::vector<std::uint64_t> want = unpack(to_, std::as_bytes(std::span(expected)), block_count);
      for (std::size_t i = block_count; i-- > 0;) {
        if (got[i] == want[i]) continue;
        ++wrong;
        where = i;
      }
      const std::lock_guard lock(mutex_);
      if (result_.mismatches == 0) {
        result_.first_mismatch = mismatch(f32, start + where, to_, options_, got[where], want[where]);
      }
    }
    const std::lock_guard lock(mutex_);
    result_.compared += block_count;
    result_.mismatches += wrong;
  }

  // Packs codes of one byte each into 6, 4 or 2 bits, eight codes at a time. Returns the bytes used.
  std::size_t pack_in_place(std::vector<Code>& expected) const {
    const int bits = info(to_).bits;
    if (bits >= 8) return block_count * sizeof(Code);
    auto* bytes = reinterpret_cast<std::byte*>(expected.data());
    const auto packed_bytes = static_cast<std::size_t>(bits);  // of eight codes
    for (std::size_t i = 0; i < block_count / 8; ++i) {
      std::uint64_t codes;
      std::memcpy(&codes, bytes + 8 * i, 8);
      if (bits == 6) {
        codes = (codes & 0x003F003F003F003F) | (codes & 0x3F003F003F003F00) >> 2;
        codes = (codes & 0x00000FFF00000FFF) | (codes & 0x0FFF00000FFF0000) >> 4;
        codes = (codes & 0xFFFFFF) | codes >> 32 << 24;
      } else if (bits == 4) {
        codes = (codes | codes >> 4) & 0x00FF00FF00FF00FF;
        codes = (codes | codes >> 8) & 0x0000FFFF0000FFFF;
        codes |= codes >> 16;
      } else {
        codes = (codes | codes >> 6) & 0x000F000F000F000F;
        codes = (codes | codes >> 12) & 0x000000FF000000FF;
        codes |= codes >> 24;
      }
      std::memcpy(bytes + packed_bytes * i, &codes, packed_bytes);
    }
    return block_count / 8 * packed_bytes;
  }

  Type to_;
  tc_cast_options options_;
  unsigned stride_;
  Runs runs_;
  tc::codec::Policy policy_;
  const tc::kernels::Kernel& kernel_;
  std::atomic<std::uint64_t> next_ = 0;
  std::mutex mutex_;
  SweepResult result_;
};

}  // namespace

SweepResult sweep_float32(tc::Target target, Type to, const tc_cast_options& options, unsigned stride,
                          unsigned threads) {
  switch (info(to).bits) {
    case 64:
      return Float32Sweep<std::uint64_t>(target, to, options, stride).run(threads);
    case 32:
      return Float32Sweep<std::uint32_t>(target, to, options, stride).run(threads);
    case 16:
      return Float32Sweep<std::uint16_t>(target, to, options, stride).run(threads);
    default:
      return Float32Sweep<std::uint8_t>(target, to, options, stride).run(threads);
  }
}

SweepResult compare_codes(std::span<const tc::Target> targets, Type from, std::span<const std::uint64_t> codes, Type to,
                          const tc_cast_options& options) {
  const std::vector<std::byte> source = pack(from, codes);
  const tc::codec::Policy policy = policy_of(from, to, options);
  std::vector<std::uint64_t> expected;
  for (const std::uint64_t code : codes) expected.push_back(convert(from, code, to, options).code);
  SweepResult result;
  for (const tc::Target target : targets) {
    std::vector<std::byte> storage(tc_storage_bytes(to, codes.size()));
    kernel_of(target, from, to).run(source.data(), storage.data(), codes.size(), policy);
    const std::vector<std::uint64_t> got = unpack(to, storage, codes.size());
    result.compared += codes.size();
    for (std::size_t i = 0; i < codes.size(); ++i) {
      if (got[i] == expected[i]) continue;
      if (result.mismatches++ == 0) {
        result.first_mismatch =
            std::string(tc::name(target)) + " " + mismatch(from, codes[i], to, options, got[i], expected[i]);
      }
    }
  }
  return result;
}

std::vector<std::uint64_t> neighbourhood_codes(Type from, Type to, std::size_t budget) {
  const std::vector<std::uint64_t> centers = thinned(boundary_codes(from, to, 1.0, false), budget / 64);
  const std::uint64_t reach = std::max<std::uint64_t>(budget / centers.size() / 2, 8);
  std::vector<std::uint64_t> codes;
  for (const std::uint64_t center : centers) {
    for (std::uint64_t code = center - reach; code != center + reach; ++code) codes.push_back(code & code_mask(from));
  }
  return codes;
}

}  // namespace oracle
