// SPDX-License-Identifier: Apache-2.0
#include "commands/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <random>

#include "tensorcast/cast.hpp"

namespace tensorcast::bench {
namespace {

double seconds(Clock clock) {
  timespec now = {};
  clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pattern_elements = std::size_t{1} << 16;

std::size_t elements_of(Size size, DType from, DType to, const Effort& effort) {
  switch (size) {
    case Size::call:
      return 100;
    case Size::l1:
      return std::size_t{4} << 10;
    case Size::l2:
      return std::size_t{16} << 10;
    case Size::memory:
      break;
  }
  constexpr std::size_t whole = 64;  // elements: whole bytes of every type
  return effort.memory_bytes * 8 / static_cast<std::size_t>(bit_width(from) + bit_width(to)) / whole * whole;
}

// Seconds of `calls` calls.
double time_burst(Clock clock, const std::function<void()>& work, std::size_t calls) {
  const double start = seconds(clock);
  for (std::size_t i = 0; i < calls; ++i) work();
  return seconds(clock) - start;
}

// How many calls take as long as a burst should. Warms caches and branch predictors up on the way.
std::size_t calls_per_burst(Clock clock, const std::function<void()>& work, double burst_seconds) {
  work();  // the first call may have to prepare something
  std::size_t calls = 1;
  while (time_burst(clock, work, calls) < burst_seconds) calls *= 2;
  return calls;
}

// Keeps the compiler from dropping stores that nobody reads.
void keep(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Memory all of whose pages exist, of the size that the system gives without being asked for another.
class Buffer {
 public:
  std::byte* at_least(std::size_t bytes, std::size_t offset) {
    if (bytes + offset > size_) {
      size_ = (bytes + offset + page_bytes - 1) / page_bytes * page_bytes;
      memory_.reset();
      memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page_bytes, size_)));
      if (memory_ == nullptr) throw std::bad_alloc();
      std::memset(memory_.get(), 1, size_);
    }
    return memory_.get() + offset;
  }

 private:
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace

std::string_view name(Size size) noexcept {
  constexpr std::array<std::string_view, all_sizes.size()> names = {"call", "l1", "l2", "memory"};
  return names[static_cast<std::size_t>(size)];
}

Spread spread_of(std::vector<double> samples) {
  std::ranges::sort(samples);
  return {.median = samples[samples.size() / 2], .low = samples.front(), .high = samples.back()};
}

Samples time_in_turns(std::span<const std::function<void()>> works, const Effort& effort, Clock clock, bool warm_up) {
  std::vector<std::size_t> calls;
  for (const auto& work : works) calls.push_back(calls_per_burst(clock, work, effort.burst_seconds));
  Samples samples(works.size());
  for (int round = 0; round < effort.rounds; ++round) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (warm_up) time_burst(clock, works[i], calls[i] / 4 + 1);
      const double burst = time_burst(clock, works[i], calls[i]);
      samples[i].push_back(burst * 1e9 / static_cast<double>(calls[i]));
    }
  }
  return samples;
}

class Stage {
 public:
  explicit Stage(std::size_t offset) : offset_(offset), numbers_(pattern_elements) {
    std::mt19937_64 random(1);  // the same numbers in every run
    std::normal_distribution<double> normal(0.0, 8.0);
    for (double& number : numbers_) number = normal(random);
  }

  const std::byte* source(DType dtype, std::size_t count, bool numbers_fit) {
    const std::size_t bytes = storage_bytes(dtype, count);
    std::byte* src = src_.at_least(bytes, offset_);
    if (dtype == filled_dtype_ && numbers_fit == filled_with_fitting_ && bytes <= filled_bytes_) return src;
    std::vector<double> numbers = numbers_;
    if (numbers_fit) {
      for (double& number : numbers) number = std::min(std::fabs(number) / 16.0, 1.0);
    }
    const std::size_t pattern_bytes = storage_bytes(dtype, pattern_elements);
    std::vector<std::byte> pattern(pattern_bytes);
    const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(pattern_elements)};
    // Every number has a place in every type, so this cannot fail.
    static_cast<void>(cast({DType::float64, shape, std::as_bytes(std::span(numbers))}, {dtype, shape, pattern}));
    for (std::size_t first = 0; first < bytes; first += pattern_bytes) {
      std::memcpy(src + first, pattern.data(), std::min(pattern_bytes, bytes - first));
    }
    filled_dtype_ = dtype;
    filled_with_fitting_ = numbers_fit;
    filled_bytes_ = bytes;
    return src;
  }

  std::byte* target(std::size_t bytes) { return dst_.at_least(bytes, offset_); }
  std::byte* memcpy_source(std::size_t bytes) { return memcpy_src_.at_least(bytes, offset_); }
  std::byte* memcpy_target(std::size_t bytes) { return memcpy_dst_.at_least(bytes, offset_); }

 private:
  std::size_t offset_;
  std::vector<double> numbers_;
  Buffer src_, dst_, memcpy_src_, memcpy_dst_;
  DType filled_dtype_ = DType::undefined;
  bool filled_with_fitting_ = false;
  std::size_t filled_bytes_ = 0;
};

Bench::Bench(const Effort& effort) : effort_(effort), stage_(std::make_unique<Stage>(effort.offset)) {}
Bench::~Bench() = default;

void Bench::time(Timing& timing, const std::function<void()>& work) {
  const std::size_t half = timing.bytes / 2;  // memcpy reads it and writes it
  const std::byte* from = stage_->memcpy_source(half);
  std::byte* to = stage_->memcpy_target(half);
  const auto copy = [=] {
    std::memcpy(to, from, half);
    keep(to);
  };
  const std::array<std::function<void()>, 2> works = {copy, work};
  constexpr std::size_t largest_cache = std::size_t{32} << 20;
  const Clock clock = timing.threads == 1 ? Clock::thread : Clock::wall;
  const Samples samples = time_in_turns(works, effort_, clock, timing.bytes <= largest_cache);
  std::vector<double> ratios;
  for (std::size_t round = 0; round < samples[0].size(); ++round) {
    ratios.push_back(samples[1][round] / samples[0][round]);
  }
  timing.memcpy_ns = spread_of(samples[0]).median;
  timing.ns = spread_of(samples[1]).median;
  timing.ratios = spread_of(std::move(ratios));
  timing.ratio = timing.ratios.median;
}

Result<Timing> Bench::time_cast(DType from, DType to, Size size, int threads) {
  return time_cast(from, to, size, Variant{.execution = {.threads = threads}});
}

Result<Timing> Bench::time_cast(DType from, DType to, Size size, const Variant& variant) {
  Timing timing{.from = from, .to = to, .size = size, .threads = variant.execution.threads};
  timing.count = elements_of(size, from, to, effort_);
  const std::size_t src_bytes = storage_bytes(from, timing.count);
  const std::size_t dst_bytes = storage_bytes(to, timing.count);
  timing.bytes = src_bytes + dst_bytes;
  const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(timing.count)};
  const TensorView src{from, shape, {stage_->source(from, timing.count, variant.numbers_fit), src_bytes}};
  const MutableTensorView dst{to, shape, {stage_->target(dst_bytes), dst_bytes}};
  CastReport report;
  Result<void> outcome;
  time(timing, [&] {
    Result<void> converted = variant.report ? cast(src, dst, variant.options, report, variant.execution)
                                            : cast(src, dst, variant.options, variant.execution);
    if (!converted) outcome = std::move(converted);
    keep(dst.bytes.data());
  });
  if (!outcome) return outcome.error();
  return timing;
}

Timing Bench::time_memcpy(Size size) {
  Timing timing{.from = DType::uint8, .to = DType::uint8, .size = size};
  timing.count = elements_of(size, DType::uint8, DType::uint8, effort_);
  timing.bytes = 2 * timing.count;
  const std::byte* src = stage_->source(DType::uint8, timing.count, false);
  std::byte* dst = stage_->target(timing.count);
  time(timing, [&] {
    std::memcpy(dst, src, timing.count);
    keep(dst);
  });
  return timing;
}

}  // namespace tensorcast::bench
