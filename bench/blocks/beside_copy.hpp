// SPDX-License-Identifier: Apache-2.0
// Times work beside memcpy, in turns.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tensorcast::bench {

// What is measured: a weight in memory, or one that stays in the second-level cache.
struct Extent {
  std::int64_t rows, columns;
  int repetitions;
};
inline constexpr Extent in_cache{.rows = 128, .columns = 4096, .repetitions = 200};

// Removes `--in-cache` from `args`, and reports whether it was there.
inline bool take_in_cache(std::vector<std::string_view>& args) {
  return std::erase(args, std::string_view("--in-cache")) != 0;
}

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct LeastSeconds {
  double work = 0.0, copy = 0.0;
};

// The least times of `work` and of a memcpy of `bytes`, which take turns, as other programs on the machine only add to
// a time.
template <class Work>
LeastSeconds least_seconds(const Work& work, std::size_t bytes, int repetitions) {
  std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), bytes);
    asm volatile("" : : "r"(to.data()) : "memory");
  };
  LeastSeconds least{.work = seconds_of(work), .copy = seconds_of(copy)};
  for (int i = 1; i < repetitions; ++i) {
    least.work = std::min(least.work, seconds_of(work));
    least.copy = std::min(least.copy, seconds_of(copy));
  }
  return least;
}

}  // namespace tensorcast::bench
