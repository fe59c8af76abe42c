// SPDX-License-Identifier: Apache-2.0
#include "process/progress_bar.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "process/printable.hpp"
#include "process/terminal.hpp"

namespace tcast {

namespace {

double fraction_of(const tensorcast::Progress& progress) {
  const double total = static_cast<double>(std::max(progress.bytes_total, progress.bytes_done));
  return total > 0 ? static_cast<double>(progress.bytes_done) / total : 0.0;
}

}  // namespace

std::string progress_line(const tensorcast::Progress& progress, double seconds, std::size_t columns, bool with_bar) {
  constexpr std::size_t bar_width = 20;
  const double done = static_cast<double>(progress.bytes_done);
  const double total = static_cast<double>(std::max(progress.bytes_total, progress.bytes_done));
  const double fraction = fraction_of(progress);
  const double now = static_cast<double>(progress.bytes_done - std::min(progress.bytes_before, progress.bytes_done));
  const double rate = seconds > 0 ? now / seconds : 0.0;

  std::string line = fmt::format("{:3.0f} %", fraction * 100);
  const auto add_if_it_fits = [&](const std::string& part) {
    if (display_width(line) + 2 + display_width(part) <= columns) line += "  " + part;
  };
  if (with_bar && columns >= 60) {
    const auto filled = static_cast<std::size_t>(fraction * bar_width);
    line += fmt::format("  [{}{}]", std::string(filled, '#'), std::string(bar_width - filled, ' '));
  }
  if (progress.shards != 0) {
    add_if_it_fits(fmt::format("shard {}/{}", progress.shard, progress.shards));
    add_if_it_fits(fmt::format("{} of {}", bytes_text(progress.bytes_done), bytes_text(progress.bytes_total)));
  }
  add_if_it_fits(fmt::format("{:>9}", rate_text(rate)));
  if (rate > 0) add_if_it_fits(duration_text((total - done) / rate) + " left");
  constexpr std::size_t shortest_name = 12;
  const std::size_t used = display_width(line) + 2;
  if (columns >= used + shortest_name) add_if_it_fits(abbreviated(printable(progress.tensor), columns - used));
  return line;
}

bool RareLines::due(double seconds, double fraction) {
  constexpr double shortest = 10.0, longest = 60.0, step = 0.1;
  const double since = seconds - last_seconds_;
  const bool is_first = last_fraction_ < 0.0;
  if (since < shortest || (!is_first && since < longest && fraction < last_fraction_ + step)) return false;
  last_seconds_ = seconds;
  last_fraction_ = fraction;
  return true;
}

ProgressBar::ProgressBar(bool enabled) : enabled_(enabled), terminal_(stderr_is_terminal()) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::show(const tensorcast::Progress& progress) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_draw_) return;
  next_draw_ = now + std::chrono::milliseconds(100);
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (!terminal_) return print_line(progress, seconds);
  drawn_ = true;
  // The last column stays free: some terminals wrap when it is written.
  const std::string line = fmt::format("\r\x1b[K{}", progress_line(progress, seconds, stderr_columns(80) - 1));
  std::fputs(line.c_str(), stderr);
}

void ProgressBar::print_line(const tensorcast::Progress& progress, double seconds) {
  constexpr std::size_t columns = 100;
  if (!lines_.due(seconds, fraction_of(progress))) return;
  std::fputs(fmt::format("tcast: {}\n", progress_line(progress, seconds, columns, false)).c_str(), stderr);
}

}  // namespace tcast
