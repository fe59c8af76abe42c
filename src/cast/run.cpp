#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cast/conversion.hpp"
#include "cast/parallel.hpp"
#include "cast/pieces.hpp"
#include "cast/report.hpp"
#include "cast/tuning.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast {
namespace {

// Elements up to which a conversion that needs one kernel and nothing else takes a short cut: starting the stages
// would take longer.
constexpr std::size_t small_elements = 4096;

bool needs_one_kernel(const Conversion& c, const codec::Policy& policy) {
  return c.from != c.to && policy.scale == 1.0 && !policy.demands_errors();
}

// The tasks of a conversion, in order or on several threads; reports are added in the order of the tasks.
class Tasks {
 public:
  Tasks(const Conversion& whole, const Pieces& pieces, const Reporter* reporter)
      : whole_(whole), pieces_(pieces), reporter_(reporter) {}

  [[nodiscard]] std::size_t count() const { return (whole_.count + task_elements - 1) / task_elements; }

  Result<void> run(std::size_t task, CastReport* report) const {
    const std::size_t first = task * task_elements;
    const Conversion part = whole_.slice(first, std::min(task_elements, whole_.count - first));
    std::optional<Reporter::Count> counts;
    if (report != nullptr) counts.emplace();
    Result<void> done = pieces_.convert(part, counts ? &*counts : nullptr);
    if (!done) {
      *done.error().element += first;
      return done;
    }
    if (report != nullptr) report->merge(reporter_->report(*counts));
    return done;
  }

  Result<void> run_in_order(CastReport* report) const {
    for (std::size_t task = 0; task < count(); ++task) {
      if (Result<void> done = run(task, report); !done) return done;
    }
    return {};
  }

  // The error is that of the first task that fails, as if they had run in order.
  Result<void> run_on_threads(int threads, CastReport* report) const {
    std::vector<CastReport> reports(report != nullptr ? count() : 0);
    std::atomic<std::size_t> failed_task = std::numeric_limits<std::size_t>::max();
    std::mutex mutex;
    Result<void> outcome;
    run_tasks(count(), threads, [&](std::size_t task) {
      if (failed_task.load(std::memory_order_relaxed) < task) return;
      Result<void> done = run(task, reports.empty() ? nullptr : &reports[task]);
      if (done) return;
      const std::scoped_lock lock(mutex);
      if (task > failed_task) return;
      failed_task = task;
      outcome = std::move(done);
    });
    if (!outcome) return outcome;
    for (const CastReport& part : reports) report->merge(part);
    return outcome;
  }

 private:
  const Conversion& whole_;
  const Pieces& pieces_;
  const Reporter* reporter_;
};

}  // namespace

Result<void> run(const Conversion& whole, const codec::Policy& policy, int threads, CastReport* report) {
  if (whole.count == 0) return {};
  if (whole.count <= small_elements && report == nullptr && needs_one_kernel(whole, policy)) {
    kernels::find_kernel(active_target(), whole.from, whole.to)->run(whole.src, whole.dst, whole.count, policy);
    return {};
  }
  std::optional<Reporter> reporter;
  if (report != nullptr) reporter.emplace(whole.from, whole.to, policy);
  const Pieces pieces(whole, policy, reporter ? &*reporter : nullptr);
  const Tasks tasks(whole, pieces, reporter ? &*reporter : nullptr);

  // In place, a narrower target of one task lies over the source of another.
  const bool tasks_overlap = whole.is_in_place() && bit_width(whole.from) != bit_width(whole.to);
  const std::size_t bytes = storage_bytes(whole.from, whole.count) + storage_bytes(whole.to, whole.count);
  const bool is_threaded = threads != 1 && !tasks_overlap && bytes >= threads_min_bytes && tasks.count() > 1;
  if (is_threaded && thread_count(threads) > 1) return tasks.run_on_threads(thread_count(threads), report);
  if (report != nullptr) return tasks.run_in_order(report);
  return pieces.convert(whole, nullptr);
}

}  // namespace tensorcast
