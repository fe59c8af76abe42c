// SPDX-License-Identifier: Apache-2.0
// Reports progress to the caller at intervals.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

class ProgressMeter {
 public:
  // `on_progress` outlives this, and may be empty.
  ProgressMeter(const std::function<bool(const Progress&)>& on_progress, std::uint64_t bytes_total) noexcept
      : on_progress_(on_progress), progress_{.bytes_done = 0, .bytes_total = bytes_total, .tensor = {}} {}

  // Counts bytes read or written. Returns false if the caller cancels.
  [[nodiscard]] bool advance(std::uint64_t bytes, std::string_view tensor) {
    progress_.bytes_done += bytes;
    progress_.tensor = tensor;
    if (!on_progress_) return true;
    const Clock::time_point now = Clock::now();
    if (now < next_call_ && progress_.bytes_done < progress_.bytes_total) return true;
    next_call_ = now + interval;
    return on_progress_(progress_);
  }
  // Calls back at once. Returns false if the caller cancels.
  [[nodiscard]] bool report() const { return !on_progress_ || on_progress_(progress_); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration interval = std::chrono::milliseconds(50);

  const std::function<bool(const Progress&)>& on_progress_;
  Progress progress_;
  Clock::time_point next_call_ = Clock::time_point::min();
};

}  // namespace tensorcast::file_conversion
