// SPDX-License-Identifier: Apache-2.0
// Times conversions against memcpy of as many bytes, for `tcast bench` and for bench/, which contains this source.
//
// A plain loop and no benchmark framework: what is wanted is a ratio to memcpy that holds on a noisy machine, so both
// are timed in turns and the median of the ratios of neighbours counts. Frameworks time one benchmark after the other,
// and minutes apart the same memcpy differs by a third.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"

namespace tensorcast::bench {

enum class Size : std::uint8_t {
  call,    // 100 elements: what one call costs
  l1,      // 4 Ki elements
  l2,      // 16 Ki elements
  memory,  // Effort::memory_bytes of source and target together
};
inline constexpr std::array<Size, 4> all_sizes = {Size::call, Size::l1, Size::l2, Size::memory};
[[nodiscard]] std::string_view name(Size size) noexcept;

struct Effort {
  int rounds = 9;                // each times memcpy and then the conversion; their ratios have a median
  double burst_seconds = 50e-6;  // calls that are timed together take at least this long
  std::size_t memory_bytes = std::size_t{128} << 20;
  std::size_t offset = 0;  // bytes from the start of a page to every buffer; 16 is where malloc puts large ones

  [[nodiscard]] static Effort Quick() noexcept {
    return {.rounds = 5, .burst_seconds = 20e-6, .memory_bytes = std::size_t{64} << 20};
  }
};

struct Spread {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
};
[[nodiscard]] Spread spread_of(std::vector<double> samples);

struct Timing {
  DType from = DType::undefined;
  DType to = DType::undefined;
  Size size = Size::call;
  int threads = 1;
  std::size_t count = 0;   // elements
  std::size_t bytes = 0;   // read and written
  double ns = 0.0;         // median time of a call
  double memcpy_ns = 0.0;  // median time of a memcpy that reads and writes as many bytes
  double ratio = 0.0;      // time over memcpy's time, median over the rounds: below 1 is faster
  Spread ratios = {};      // the same, with the lowest and the highest of the rounds

  [[nodiscard]] double gigabytes_per_second() const noexcept { return static_cast<double>(bytes) / ns; }
};

// Work on one thread is charged its own processor time: what others do on the machine meanwhile is not its cost.
enum class Clock : std::uint8_t { thread, wall };

// Nanoseconds of a call of each work in each round; the works take turns. warm_up: untimed calls before each turn, for
// works whose memory fits a cache.
using Samples = std::vector<std::vector<double>>;
[[nodiscard]] Samples time_in_turns(std::span<const std::function<void()>> works, const Effort& effort,
                                    Clock clock = Clock::thread, bool warm_up = true);

// What a conversion is timed with.
struct Variant {
  CastOptions options = {};
  Execution execution = {.threads = 1};
  bool report = false;
  bool numbers_fit = false;  // sources between 0 and 1, which every type holds: a strict cast accepts them
};

class Stage;  // the buffers

class Bench {
 public:
  explicit Bench(const Effort& effort);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Times tensorcast::cast(). Sources are normally distributed numbers of standard deviation 8, as the source type
  // rounds them. memcpy has one thread whatever the conversion has. Errors: those of cast().
  [[nodiscard]] Result<Timing> time_cast(DType from, DType to, Size size, int threads);
  [[nodiscard]] Result<Timing> time_cast(DType from, DType to, Size size, const Variant& variant);

  // memcpy against itself: `gigabytes_per_second()` of it, and in `ratio` how far to trust ratios.
  [[nodiscard]] Timing time_memcpy(Size size);

 private:
  void time(Timing& timing, const std::function<void()>& work);

  Effort effort_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace tensorcast::bench
