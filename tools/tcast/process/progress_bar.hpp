// SPDX-License-Identifier: Apache-2.0
// A line on stderr with the progress, the rate and the remaining time.
#pragma once

#include <chrono>

#include "process/interrupt.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Draws only on a terminal and only when the work takes over a second.
class ProgressBar {
 public:
  explicit ProgressBar(bool enabled);
  ~ProgressBar();  // erases the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const tensorcast::Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  bool enabled_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_draw_ = start_ + std::chrono::seconds(1);
};

// Returns work(request), which a bar shows and a signal ends. Needs an object of CancellableWork.
template <class Request, class Work>
auto with_progress(Request& request, bool quiet, Work work) {
  ProgressBar bar(!quiet);
  request.on_progress = [&bar](const tensorcast::Progress& progress) {
    bar.show(progress);
    return !interrupted();
  };
  return work(request);
}

// Returns the line for `progress` after `seconds`, at most `columns` wide:
// " 43 % [########            ]  1.4 GB/s  12 s left  model.layers.7.mlp.weight"
[[nodiscard]] std::string progress_line(const tensorcast::Progress& progress, double seconds, std::size_t columns);

}  // namespace tcast
