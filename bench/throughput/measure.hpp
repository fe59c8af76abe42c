// Times conversions against memcpy of as many bytes. Needs only the public API: `tcast bench` is built from the same
// measure.cpp as tensorcast_bench.
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

#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::bench {

enum class Size : std::uint8_t {
  call,    // 100 elements: what one call costs
  l1,      // 4 Ki elements
  l2,      // 16 Ki elements
  memory,  // source and target together far beyond every cache
};
inline constexpr std::array<Size, 4> all_sizes = {Size::call, Size::l1, Size::l2, Size::memory};
[[nodiscard]] std::string_view name(Size size) noexcept;

struct Effort {
  int rounds = 9;                                     // odd: pairs of memcpy and conversion whose ratios have a median
  double burst_seconds = 50e-6;                       // calls that are timed together take at least this long
  std::size_t memory_bytes = std::size_t{128} << 20;  // source and target of Size::memory
  bool huge_pages = false;                            // asked for, as NumPy does for large arrays

  [[nodiscard]] static Effort Quick() noexcept {
    return {.rounds = 5, .burst_seconds = 20e-6, .memory_bytes = std::size_t{64} << 20};
  }
};

struct Timing {
  DType from = DType::undefined;
  DType to = DType::undefined;
  Size size = Size::call;
  int threads = 1;
  std::size_t count = 0;   // elements
  std::size_t bytes = 0;   // read and written
  double ns = 0.0;         // best time of a call
  double memcpy_ns = 0.0;  // best time of a memcpy that reads and writes as many bytes
  double ratio = 0.0;      // time over memcpy's time, median over the rounds: below 1 is faster

  [[nodiscard]] double elements_per_ns() const noexcept { return static_cast<double>(count) / ns; }
  [[nodiscard]] double gigabytes_per_second() const noexcept { return static_cast<double>(bytes) / ns; }
};

// Best time of a call of `work`, which stays on this thread.
[[nodiscard]] double best_ns(const Effort& effort, const std::function<void()>& work);

class Stage;  // the buffers

class Bench {
 public:
  using Conversion = std::function<void(const std::byte* src, std::byte* dst, std::size_t count)>;

  explicit Bench(const Effort& effort);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Sources are normally distributed numbers of standard deviation 8, as the source type rounds them. memcpy has one
  // thread whatever `threads` the conversion has.
  [[nodiscard]] Timing time(DType from, DType to, Size size, const Conversion& convert, int threads = 1);

  // The same of tensorcast::cast(). Errors: those of cast().
  [[nodiscard]] Result<Timing> time_cast(DType from, DType to, Size size, int threads);

  // memcpy against itself: `gigabytes_per_second()` of it, and in `ratio` how far to trust ratios.
  [[nodiscard]] Timing time_memcpy(Size size);

 private:
  Timing in_turns(Timing timing, const std::function<void()>& work);

  Effort effort_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace tensorcast::bench
