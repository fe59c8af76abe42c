// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/run_shards.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cast/parallel.hpp"
#include "checkpoint/run/run_shard.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast::checkpoint {
namespace {

constexpr std::size_t most_at_once = 4;  // each has its own blocks in memory

class ShardRuns {
 public:
  ShardRuns(const ShardJob& job, std::span<const std::size_t> chosen, std::size_t at_once, const TakeShard& take)
      : job_(job), chosen_(chosen), take_(take), execution_(job.execution), bytes_of_running_(at_once) {
    for (const std::size_t index : chosen) bytes_total_ += work_bytes(job.plan, job.plan.shards[index]);
    if (at_once > 1) execution_.threads = std::max(1, thread_count(execution_) / static_cast<int>(at_once));
  }

  Result<void> run() {
    if (is_alone()) {
      work(0);
      return std::move(outcome_);
    }
    std::vector<std::jthread> threads;
    const Stop stop{*this};  // before the threads are joined, should on_progress throw
    try {
      while (threads.size() < bytes_of_running_.size()) {
        threads.emplace_back([this, slot = threads.size()] { work_on_thread(slot); });
      }
    } catch (const std::system_error&) {  // no more threads: the running ones do all the work
      if (threads.empty()) throw;
    }
    report_until_end(threads.size());
    if (outcome_ && taken_ < chosen_.size()) return cancelled();  // between two shards
    return std::move(outcome_);
  }

 private:
  struct Stop {
    ShardRuns& runs;
    ~Stop() {
      const std::scoped_lock lock(runs.mutex_);
      runs.is_stopping_ = true;
    }
  };

  [[nodiscard]] bool is_alone() const noexcept { return bytes_of_running_.size() == 1; }

  void work_on_thread(std::size_t slot) {
    work(slot);
    const std::scoped_lock lock(mutex_);
    ++threads_ended_;
    changed_.notify_all();
  }

  // Converts shards until none is left.
  void work(std::size_t slot) {
    while (const std::optional<std::size_t> index = next()) {
      Result<void> done = guarded([&] { return convert(slot, *index); });
      if (done) continue;
      const std::scoped_lock lock(mutex_);
      is_stopping_ = true;
      if (outcome_) outcome_ = std::move(done);  // those that are given up because of the first say "cancelled"
    }
  }

  std::optional<std::size_t> next() {
    const std::scoped_lock lock(mutex_);
    return is_stopping_ || next_ == chosen_.size() ? std::nullopt : std::optional(chosen_[next_++]);
  }

  Result<void> convert(std::size_t slot, std::size_t index) {
    const PlannedShard& shard = job_.plan.shards[index];
    TRY(job_.folder.check_identity());
    std::optional<DoneShard> done = TRY(job_.folder.done(shard));
    const bool was_done_before = done.has_value();
    if (!was_done_before) {
      const auto report = [&](const Progress& part) { return go_on(slot, index, part); };
      done = TRY(run_shard(job_.plan, index, job_.folder, execution_, report));
      if (!done) return cancelled();
    }
    const std::scoped_lock lock(mutex_);
    bytes_of_running_[slot] = 0;
    bytes_done_ += work_bytes(job_.plan, shard);
    if (was_done_before) bytes_before_ += work_bytes(job_.plan, shard);
    ++taken_;
    take_(index, *std::move(done), was_done_before);
    return {};
  }

  [[nodiscard]] Error cancelled() const {
    return Error{.code = ErrorCode::cancelled,
                 .message = "cancelled; the converted shards are kept",
                 .hint = "the same command goes on where it stopped",
                 .file = job_.folder.output()};
  }

  // Notes how far a shard is. Returns false if it is to be given up.
  bool go_on(std::size_t slot, std::size_t index, const Progress& part) {
    {
      const std::scoped_lock lock(mutex_);
      bytes_of_running_[slot] = part.bytes_done;
      shard_ = index;
      tensor_ = part.tensor;
      has_news_ = true;
      if (!is_alone()) {
        changed_.notify_all();
        return !is_stopping_;
      }
    }
    return report();
  }

  // Tells on_progress how far all are. Returns false if it cancels.
  bool report() {
    Progress now{.bytes_total = bytes_total_, .shards = job_.plan.shards.size()};
    std::string tensor;
    {
      const std::scoped_lock lock(mutex_);
      has_news_ = false;
      tensor = tensor_;
      now.bytes_done = bytes_done_;
      for (const std::uint64_t bytes : bytes_of_running_) now.bytes_done += bytes;
      now.bytes_before = bytes_before_;
      now.file = job_.plan.shards[shard_].name;
      now.shard = shard_ + 1;
    }
    now.tensor = tensor;
    return !job_.on_progress || job_.on_progress(now);
  }

  void report_until_end(std::size_t threads) {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return has_news_ || threads_ended_ == threads; });
        if (!has_news_) return;
      }
      if (report()) continue;
      const std::scoped_lock lock(mutex_);
      is_stopping_ = true;
    }
  }

  const ShardJob& job_;
  std::span<const std::size_t> chosen_;
  const TakeShard& take_;
  Execution execution_;  // of one shard
  std::uint64_t bytes_total_ = 0;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::size_t threads_ended_ = 0;
  bool is_stopping_ = false;
  Result<void> outcome_;
  bool has_news_ = false;
  std::uint64_t bytes_done_ = 0;    // by complete shards
  std::uint64_t bytes_before_ = 0;  // by shards that an earlier run completed
  std::vector<std::uint64_t> bytes_of_running_;
  std::size_t shard_ = 0;  // that told last how far it is
  std::string tensor_;
};

}  // namespace

std::size_t shards_at_once(const Execution& execution, std::size_t shards) noexcept {
  const std::size_t threads = std::min(static_cast<std::size_t>(thread_count(execution)), most_at_once);
  return std::clamp<std::size_t>(shards, 1, threads);
}

Result<void> run_shards(const ShardJob& job, std::span<const std::size_t> chosen, std::size_t at_once,
                        const TakeShard& take) {
  TRY(ShardRuns(job, chosen, at_once, take).run());
  return job.folder.check_identity();  // another plan may have come after the last shard's check
}

}  // namespace tensorcast::checkpoint
