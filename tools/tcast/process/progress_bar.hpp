// SPDX-License-Identifier: Apache-2.0
// A line on stderr with the progress, the rate and the remaining time.
#pragma once

#include <chrono>

#include "process/interrupt.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// When lines without a terminal are due: after 10 seconds, then when 10 % more are done, at most every 10 seconds and
// at least every minute.
class RareLines {
 public:
  [[nodiscard]] bool due(double seconds, double fraction);

 private:
  double last_seconds_ = 0.0;
  double last_fraction_ = -1.0;  // none yet
};

// Draws a bar on a terminal when the work takes over a second; elsewhere prints a line now and then, so that a log
// shows that the work goes on.
class ProgressBar {
 public:
  explicit ProgressBar(bool enabled);
  ~ProgressBar();  // erases the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const tensorcast::Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  void print_line(const tensorcast::Progress& progress, double seconds);

  bool enabled_;
  bool terminal_;
  RareLines lines_ = {};
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
[[nodiscard]] std::string progress_line(const tensorcast::Progress& progress, double seconds, std::size_t columns,
                                        bool with_bar = true);

}  // namespace tcast
