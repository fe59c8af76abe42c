#include "throughput/measure.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <vector>

#include "tensorcast/cast.hpp"

namespace tensorcast::bench {
namespace {

// Work on one thread is charged its own processor time: what others do on the machine meanwhile is not its cost.
enum class Clock : std::uint8_t { thread, wall };

double seconds(Clock clock) {
  timespec now = {};
  clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr std::size_t cache_line_bytes = 64;
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
  const auto bits = static_cast<std::size_t>(bit_width(from) + bit_width(to));
  return effort.memory_bytes * 8 / bits / pattern_elements * pattern_elements;
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

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

struct AlignedDelete {
  std::align_val_t alignment{cache_line_bytes};
  void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
};

// Memory all of whose pages exist; many pages are huge or not as asked.
class Buffer {
 public:
  explicit Buffer(bool huge_pages) : advice_(huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) {}

  std::byte* at_least(std::size_t bytes) {
    if (bytes > size_) {
      const std::align_val_t alignment{bytes < huge_page_bytes ? cache_line_bytes : huge_page_bytes};
      memory_.reset();
      memory_ = {static_cast<std::byte*>(::operator new(bytes, alignment)), AlignedDelete{alignment}};
      if (bytes >= huge_page_bytes) {
        static_cast<void>(madvise(memory_.get(), bytes / huge_page_bytes * huge_page_bytes, advice_));
      }
      std::memset(memory_.get(), 1, bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  int advice_;
  std::unique_ptr<std::byte, AlignedDelete> memory_;
  std::size_t size_ = 0;
};

}  // namespace

std::string_view name(Size size) noexcept {
  constexpr std::array<std::string_view, all_sizes.size()> names = {"call", "l1", "l2", "memory"};
  return names[static_cast<std::size_t>(size)];
}

double best_ns(const Effort& effort, const std::function<void()>& work) {
  const std::size_t calls = calls_per_burst(Clock::thread, work, effort.burst_seconds);
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < effort.rounds; ++round) {
    best = std::min(best, time_burst(Clock::thread, work, calls) * 1e9 / static_cast<double>(calls));
  }
  return best;
}

class Stage {
 public:
  explicit Stage(bool huge_pages)
      : numbers_(pattern_elements),
        src_(huge_pages),
        dst_(huge_pages),
        memcpy_src_(huge_pages),
        memcpy_dst_(huge_pages) {
    std::mt19937_64 random(1);  // the same numbers in every run
    std::normal_distribution<double> normal(0.0, 8.0);
    for (double& number : numbers_) number = normal(random);
  }

  const std::byte* source(DType dtype, std::size_t count) {
    const std::size_t bytes = storage_bytes(dtype, count);
    std::byte* src = src_.at_least(bytes);
    if (dtype == filled_dtype_ && bytes <= filled_bytes_) return src;
    const std::size_t pattern_bytes = storage_bytes(dtype, pattern_elements);
    std::vector<std::byte> pattern(pattern_bytes);
    const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(pattern_elements)};
    const auto drawn = std::as_bytes(std::span<const double>(numbers_));
    // Every number has a place in every type, so this cannot fail.
    static_cast<void>(cast(TensorView{DType::float64, shape, drawn}, MutableTensorView{dtype, shape, pattern}));
    for (std::size_t first = 0; first < bytes; first += pattern_bytes) {
      std::memcpy(src + first, pattern.data(), std::min(pattern_bytes, bytes - first));
    }
    filled_dtype_ = dtype;
    filled_bytes_ = bytes;
    return src;
  }

  std::byte* target(std::size_t bytes) { return dst_.at_least(bytes); }
  std::byte* memcpy_source(std::size_t bytes) { return memcpy_src_.at_least(bytes); }
  std::byte* memcpy_target(std::size_t bytes) { return memcpy_dst_.at_least(bytes); }

 private:
  std::vector<double> numbers_;
  Buffer src_, dst_, memcpy_src_, memcpy_dst_;
  DType filled_dtype_ = DType::undefined;
  std::size_t filled_bytes_ = 0;
};

Bench::Bench(const Effort& effort) : effort_(effort), stage_(std::make_unique<Stage>(effort.huge_pages)) {}
Bench::~Bench() = default;

Timing Bench::in_turns(Timing timing, const std::function<void()>& work) {
  const std::size_t half = timing.bytes / 2;  // memcpy reads it and writes it
  const std::byte* from = stage_->memcpy_source(half);
  std::byte* to = stage_->memcpy_target(half);
  const std::function<void()> copy = [=] {
    std::memcpy(to, from, half);
    keep(to);
  };

  const Clock clock = timing.threads == 1 ? Clock::thread : Clock::wall;
  const std::size_t copies = calls_per_burst(clock, copy, effort_.burst_seconds);
  const std::size_t calls = calls_per_burst(clock, work, effort_.burst_seconds);
  timing.ns = timing.memcpy_ns = std::numeric_limits<double>::infinity();
  std::vector<double> ratios;
  for (int round = 0; round < effort_.rounds; ++round) {
    if (timing.size != Size::memory) time_burst(clock, copy, copies / 4 + 1);  // back into the cache
    const double memcpy_ns = time_burst(clock, copy, copies) * 1e9 / static_cast<double>(copies);
    if (timing.size != Size::memory) time_burst(clock, work, calls / 4 + 1);
    const double ns = time_burst(clock, work, calls) * 1e9 / static_cast<double>(calls);
    timing.memcpy_ns = std::min(timing.memcpy_ns, memcpy_ns);
    timing.ns = std::min(timing.ns, ns);
    ratios.push_back(ns / memcpy_ns);
  }
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  timing.ratio = *middle;
  return timing;
}

Timing Bench::time(DType from, DType to, Size size, const Conversion& convert, int threads) {
  Timing timing{
      .from = from, .to = to, .size = size, .threads = threads, .count = elements_of(size, from, to, effort_)};
  const std::size_t dst_bytes = storage_bytes(to, timing.count);
  timing.bytes = storage_bytes(from, timing.count) + dst_bytes;
  const std::byte* src = stage_->source(from, timing.count);
  std::byte* dst = stage_->target(dst_bytes);
  return in_turns(timing, [&, src, dst] {
    convert(src, dst, timing.count);
    keep(dst);
  });
}

Result<Timing> Bench::time_cast(DType from, DType to, Size size, int threads) {
  Result<void> outcome;
  const auto convert = [&](const std::byte* src, std::byte* dst, std::size_t count) {
    const std::array<std::int64_t, 1> shape = {static_cast<std::int64_t>(count)};
    Result<void> converted = cast(TensorView{from, shape, {src, storage_bytes(from, count)}},
                                  MutableTensorView{to, shape, {dst, storage_bytes(to, count)}}, {.threads = threads});
    if (!converted) outcome = std::move(converted);
  };
  const Timing timing = time(from, to, size, convert, threads);
  if (!outcome) return outcome.error();
  return timing;
}

Timing Bench::time_memcpy(Size size) {
  return time(DType::uint8, DType::uint8, size,
              [](const std::byte* src, std::byte* dst, std::size_t count) { std::memcpy(dst, src, count); });
}

}  // namespace tensorcast::bench
