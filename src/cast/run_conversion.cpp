// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cast/conversion.hpp"
#include "cast/parallel.hpp"
#include "cast/pieces.hpp"
#include "cast/tuning.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/errors.hpp"
#include "dtype/platform.hpp"
#include "dtype/try.hpp"
#include "kernels/kernel.hpp"
#include "report/reporter.hpp"
#if TENSORCAST_HAS_THREADS
#include <atomic>
#include <mutex>
#endif

namespace tensorcast {
inline namespace TENSORCAST_ABI {

#if TENSORCAST_HAS_KERNELS
namespace {

bool needs_one_kernel(const Conversion& c, const codec::Policy& policy) {
  return c.from != c.to && policy.scale == 1.0 && !policy.demands_errors();
}

using report::ReportAccumulator;
using report::Reporter;

// The tasks of a conversion, in order or on several threads. Each has an accumulator of its own; they are merged in the
// order of the tasks.
class Tasks {
 public:
  Tasks(const Conversion& whole, const Pieces& pieces) : whole_(whole), pieces_(pieces) {}

  [[nodiscard]] std::size_t count() const { return (whole_.count + task_elements - 1) / task_elements; }

  // `total`: null without a report.
  Result<void> run_in_order(ReportAccumulator* total) const {
    for (std::size_t task = 0; task < count(); ++task) {
      ReportAccumulator accumulator;
      TRY(run(task, total == nullptr ? nullptr : &accumulator));
      if (total != nullptr) total->merge(accumulator);
    }
    return {};
  }

#if TENSORCAST_HAS_THREADS
  // The error is that of the first task that fails, as if they had run in order.
  Result<void> run_on_threads(const Execution& execution, ReportAccumulator* total) const {
    std::vector<ReportAccumulator> accumulators(total != nullptr ? count() : 0);
    std::atomic<std::size_t> failed_task = std::numeric_limits<std::size_t>::max();
    std::mutex mutex;
    Result<void> outcome;
    run_tasks(count(), execution, [&](std::size_t task) {
      if (failed_task.load(std::memory_order_relaxed) < task) return;
      Result<void> done = run(task, accumulators.empty() ? nullptr : &accumulators[task]);
      if (done) return;
      const std::scoped_lock lock(mutex);
      if (task > failed_task) return;
      failed_task = task;
      outcome = std::move(done);
    });
    if (!outcome) return outcome;
    for (const ReportAccumulator& part : accumulators) total->merge(part);
    return outcome;
  }
#else
  Result<void> run_on_threads(const Execution&, ReportAccumulator* total) const { return run_in_order(total); }
#endif

 private:
  Result<void> run(std::size_t task, ReportAccumulator* accumulator) const {
    const std::size_t first = task * task_elements;
    const Conversion part = whole_.slice(first, std::min(task_elements, whole_.count - first));
    Result<void> done = pieces_.convert(part, accumulator);
    if (!done) *done.error().element += first;
    return done;
  }

  const Conversion& whole_;
  const Pieces& pieces_;
};

[[gnu::noinline]] Result<void> run_in_stages(const Conversion& whole, const codec::Policy& policy,
                                             const Execution& execution, CastReport* report) {
  std::optional<Reporter> reporter;
  if (report != nullptr) reporter.emplace(whole.from, whole.to, policy);
  const Pieces pieces(whole, policy, reporter ? &*reporter : nullptr);
  const Tasks tasks(whole, pieces);

  // In place, the narrower target of one task overlaps the source of another.
  const bool tasks_overlap = whole.is_in_place() && bit_width(whole.from) != bit_width(whole.to);
  const std::size_t bytes = storage_bytes(whole.from, whole.count) + storage_bytes(whole.to, whole.count);
  const bool is_threaded = execution.threads != 1 && !tasks_overlap && bytes >= threads_min_bytes && tasks.count() > 1;
  const bool runs_on_threads = is_threaded && may_use_threads(execution);
  if (!runs_on_threads && report == nullptr) return pieces.convert(whole, nullptr);
  ReportAccumulator accumulator;
  ReportAccumulator* const total = report == nullptr ? nullptr : &accumulator;
  Result<void> done = runs_on_threads ? tasks.run_on_threads(execution, total) : tasks.run_in_order(total);
  if (done && report != nullptr) report->merge(reporter->report(accumulator));
  return done;
}

// Precondition: there are 1 to small_elements of them, so that no size overflows.
bool is_right(const Conversion& c, const DTypeRow& from, const DTypeRow& to) {
  if (c.src == nullptr || c.dst == nullptr) return false;
  const std::size_t src_bytes = storage_bytes(from, c.count), dst_bytes = storage_bytes(to, c.count);
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(c.dst) - reinterpret_cast<std::uintptr_t>(c.src);
  return (ahead >= src_bytes && 0 - ahead >= dst_bytes) || (ahead == 0 && to.bits <= from.bits);
}

// Null if there are none, more than small_elements, or none of two different types of numbers.
const kernels::Kernel* small_kernel(const Conversion& c) {
  if (c.count - 1 >= small_elements) return nullptr;
  return (c.count <= kernels::few_elements ? kernels::find_few_kernel : kernels::find_kernel)(active_target(), c.from,
                                                                                              c.to);
}

void run_by_defaults(const kernels::Kernel& kernel, const Conversion& c) {
  static constexpr codec::Policy defaults;
  const bool are_few = c.count <= kernels::few_elements && kernel.few != nullptr;
  (are_few ? kernel.few : kernel.run)(c.src, c.dst, c.count, defaults);
}

}  // namespace

bool run_small(const Conversion& c) noexcept {
  const kernels::Kernel* const kernel = small_kernel(c);
  if (kernel == nullptr || !is_right(c, row(c.from), row(c.to))) return false;
  run_by_defaults(*kernel, c);
  return true;
}

bool run_small(const Conversion& c, std::size_t src_bytes, std::size_t dst_bytes) noexcept {
  const kernels::Kernel* const kernel = small_kernel(c);
  if (kernel == nullptr) return false;
  const DTypeRow &from = row(c.from), &to = row(c.to);
  if (storage_bytes(from, c.count) != src_bytes || storage_bytes(to, c.count) != dst_bytes || !is_right(c, from, to)) {
    return false;
  }
  run_by_defaults(*kernel, c);
  return true;
}

Result<void> run(const Conversion& whole, const codec::Policy& policy, const Execution& execution, CastReport* report) {
  if (whole.count == 0) return {};
  if (whole.count > small_elements || report != nullptr || !needs_one_kernel(whole, policy)) {
    return run_in_stages(whole, policy, execution, report);
  }
  const bool are_few = whole.count <= kernels::few_elements;
  const kernels::Kernel* const kernel =
      (are_few ? kernels::find_few_kernel : kernels::find_kernel)(active_target(), whole.from, whole.to);
  kernel->run(whole.src, whole.dst, whole.count, policy);
  return {};
}

#else

bool run_small(const Conversion&) noexcept { return false; }
bool run_small(const Conversion&, std::size_t, std::size_t) noexcept { return false; }

Result<void> run(const Conversion& whole, const codec::Policy& policy, const Execution&, CastReport* report) {
  if (report != nullptr) return unsupported("this build has no reports");
  return codec::reference_cast(whole.src, whole.from, whole.dst, whole.to, whole.count, policy);
}

#endif

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
