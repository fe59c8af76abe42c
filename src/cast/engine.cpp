#include "cast/engine.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cast/parallel.hpp"
#include "cast/report.hpp"
#include "cast/streaming.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"
#include "kernels/byte_table/table_conversion.hpp"
#include "kernels/ops.hpp"
#include "kernels/refusal.hpp"
#include "kernels/scaled.hpp"

namespace tensorcast {
namespace {

// Elements per task of a threaded conversion: a multiple of 8, so that tasks of any type start at a whole byte.
constexpr std::size_t task_elements = std::size_t{1} << 18;

// Of the wider type, per block where a block is looked at twice (report, refusals): small, so that memory is read all
// the time.
constexpr std::size_t block_bytes = std::size_t{1} << 13;

// Below this, starting threads costs more than it gives.
constexpr std::size_t threads_min_bytes = std::size_t{1} << 20;

// From here on (source and target together) the target will not stay in the cache: streaming.hpp.
constexpr std::size_t stream_min_bytes = std::size_t{32} << 20;
constexpr std::size_t stream_buffer_bytes = 8192;  // pieces that are seen may have to be larger than seen_piece_bytes
constexpr std::size_t cache_line_bytes = 64;
// Of the source, for reports that look at nothing else: what becomes wider fills a buffer too soon, and each block
// costs them some time. Measured: with 8 KiB, memory waits for them, and from 8 to 16 bits takes a tenth longer.
// Scans for refusals share it: the CPU loads the next piece meanwhile. With 16 KiB it cannot: 1.5 times the time.
constexpr std::size_t seen_source_bytes = 2048;
constexpr std::size_t seen_piece_bytes = 2048;     // of the wider type, where results are looked at
constexpr std::size_t scanned_piece_bytes = 4096;  // of the wider type, at most
constexpr std::size_t seen_short_bytes = 4096;     // to at most 8 bits: 0.95 of the time with 2048

Conversion slice(const Conversion& whole, std::size_t first, std::size_t count) {
  return {whole.src + storage_bytes(whole.from, first), whole.from, whole.dst + storage_bytes(whole.to, first),
          whole.to, count};
}

// D0: the same type is a copy of the bits; D11: except that unused bits of the last byte become zero.
void copy_same_type(const Conversion& c) {
  const std::size_t bytes = storage_bytes(c.to, c.count);
  if (c.src != c.dst) std::memmove(c.dst, c.src, bytes);
  const auto used_bits = c.count * static_cast<std::size_t>(bit_width(c.to)) % 8;
  if (used_bits != 0) c.dst[bytes - 1] &= static_cast<std::byte>((1u << used_bits) - 1);
}

// Integers of one width of whole bytes share their codes.
bool is_copy(DType from, DType to) {
  return family(from) == Family::integer && family(to) == Family::integer && bit_width(from) == bit_width(to) &&
         bit_width(to) >= 8;
}

std::size_t bytes_into_line(const std::byte* address) {
  return reinterpret_cast<std::uintptr_t>(address) % cache_line_bytes;
}

// Elements up to the next cache line of the target, or of the source if it has many more of them, if they end at whole
// bytes on both sides; otherwise 0. Measured: from 16 to 8 bits, the source's lines cost a tenth.
std::size_t elements_to_alignment(const Conversion& c) {
  const auto from_bits = static_cast<std::size_t>(bit_width(c.from)),
             to_bits = static_cast<std::size_t>(bit_width(c.to));
  const bool aligns_source = from_bits > 4 * to_bits;
  const std::size_t misaligned = bytes_into_line(aligns_source ? c.src : c.dst);
  const std::size_t head_bits = misaligned == 0 ? 0 : (cache_line_bytes - misaligned) * 8;
  const std::size_t aligned_bits = aligns_source ? from_bits : to_bits;
  const std::size_t other_bits = aligns_source ? to_bits : from_bits;
  const std::size_t head = head_bits / aligned_bits;
  const bool whole = head * aligned_bits == head_bits && head * other_bits % 8 == 0;
  return whole ? std::min(head, c.count) : 0;
}

Error with_offset(Error error, std::size_t first) {
  if (error.element) *error.element += first;
  return error;
}

std::size_t block_elements(const Conversion& c) {
  return block_bytes * 8 / static_cast<std::size_t>(std::max(bit_width(c.from), bit_width(c.to)));
}

// How one request is carried out: decided once, applied to every block.
class Plan {
 public:
  Plan(const Conversion& whole, const codec::Policy& policy) : policy_(policy), kernel_policy_(policy) {
    const DType from = whole.from, to = whole.to;
    target_ = active_target();
    if (kernels::may_ever_refuse(from, to, policy)) refusals_.emplace(target_, from, to, policy, whole.count);
    if (policy.integer_range == codec::IntegerRange::error) kernel_policy_.integer_range = codec::IntegerRange::wrap;
    kernel_policy_.invalid_is_error = false;
    if (policy.scale != 1.0 && kernels::TableConversion::pays(target_, from, to, whole.count)) {
      table_.emplace(target_, from, to, kernel_policy_);
    } else if (policy.scale != 1.0) {
      scaled_.emplace(target_, from, to, kernel_policy_, whole.count);
    } else if (from != to) {
      run_ = kernels::find_kernel(target_, from, to)->run;
    }
    const std::size_t bytes = storage_bytes(from, whole.count) + storage_bytes(to, whole.count);
    const bool copies = from == to && policy.scale == 1.0;
    streams_ = bytes >= stream_min_bytes && whole.src != whole.dst && !copies;
    copies_ = policy.scale == 1.0 && is_copy(from, to);
    const bool is_light = run_ != nullptr || (scaled_ && scaled_->is_light());
    if (streams_) streaming_ = streaming_of(target_, from, to, is_light);
  }

  // Calls seen(block) for what is done of the block, in order: the target's elements may lie in a buffer by then, or be
  // gone where seen.needs_results() is false. All blocks but the last of `c` have a multiple of seen.multiple elements.
  template <class Seen>
  [[nodiscard]] Result<void> convert(const Conversion& c, const Seen& seen) const {
    const bool is_looked_at = refusals_ || !std::is_same_v<Seen, Unseen>;
    return streams_ && (streaming_.around_caches || is_looked_at) ? convert_streaming(c, seen) : convert_block(c, seen);
  }
  [[nodiscard]] Result<void> convert(const Conversion& c) const { return convert(c, Unseen{}); }

  // After the last block: other threads may read the target then.
  void finish() const {
    if (streams_) kernels::ops_of(target_).stream_fence();
  }

  // Whether a conversion of any length makes good use of the cache: each element is looked at only once, or in the
  // pieces that streaming cuts.
  [[nodiscard]] bool in_one_go(bool is_seen) const { return streams_ || !(is_seen || refusals_); }

 private:
  struct Unseen {
    static constexpr std::size_t multiple = 1;
    void operator()(const Conversion& block) const { static_cast<void>(block); }
    [[nodiscard]] bool needs_results() const { return false; }
  };

  template <class Seen>
  Result<void> convert_block(const Conversion& c, const Seen& seen) const {
    if (may_refuse(c)) {
      if (Result<void> done = convert_by_reference(c); !done) return done;
    } else {
      convert_by_kernel(c);
    }
    seen(c);
    return {};
  }

  [[nodiscard]] bool may_refuse(const Conversion& c) const {
    return refusals_ && refusals_->may_refuse(c.src, c.count);
  }

  [[nodiscard]] Result<void> convert_by_reference(const Conversion& c) const {
    return codec::reference_cast(c.src, c.from, c.dst, c.to, c.count, policy_);
  }

  void convert_by_kernel(const Conversion& c) const {
    if (table_) {
      table_->run(c.src, c.dst, c.count);
    } else if (scaled_) {
      scaled_->run(c.src, c.dst, c.count);
    } else if (run_ == nullptr) {
      copy_same_type(c);
    } else {
      run_(c.src, c.dst, c.count, kernel_policy_);
    }
  }

  // Around the caches, for targets much larger than them. Whether an element is refused is asked after it is converted:
  // the kernel then is what meets the memory, with more loads in flight, and the scan finds its source in the cache.
  // What is not refused is right as it is.
  template <class Seen>
  Result<void> convert_streaming(const Conversion& c, const Seen& seen) const {
    constexpr bool is_seen = !std::is_same_v<Seen, Unseen>;
    if (copies_ && !is_seen) {
      kernels::ops_of(target_).stream_copy(c.src, c.dst, storage_bytes(c.to, c.count));
      return {};
    }
    std::size_t first = elements_to_alignment(c);
    if (first % seen.multiple != 0) first = 0;
    if (first != 0) {
      if (Result<void> done = convert_block(slice(c, 0, first), seen); !done) return done;
    }
    // Before the piece, what the one before it left of the target's last cache line: each line is written whole, and
    // only once, wherever the target begins.
    alignas(cache_line_bytes) std::byte buffer[cache_line_bytes + stream_buffer_bytes];
    std::byte* const piece = buffer + cache_line_bytes;
    std::size_t left = 0;
    const int wider_bits = std::max(bit_width(c.from), bit_width(c.to));
    const bool sees_results = is_seen && seen.needs_results();
    const bool is_short = is_seen && !sees_results && wider_bits <= 8;
    const std::size_t piece_bytes = is_short    ? seen_short_bytes
                                    : is_seen   ? seen_piece_bytes
                                    : refusals_ ? std::min(streaming_.piece_bytes, scanned_piece_bytes)
                                                : streaming_.piece_bytes;
    const std::size_t ahead = is_seen || refusals_ ? 0 : streaming_.pieces_ahead;
    const std::size_t per_buffer = std::max(piece_bytes * 8 / static_cast<std::size_t>(wider_bits), seen.multiple);
    const std::size_t seen_bytes = is_short ? seen_short_bytes : seen_source_bytes;
    std::size_t seen_to = first, accepted_to = first;
    // Computed before the loop, whose pieces take hardly longer than some calls.
    const std::size_t src_step = storage_bytes(c.from, per_buffer), dst_step = storage_bytes(c.to, per_buffer);
    const std::byte* src = c.src + storage_bytes(c.from, first);
    std::byte* dst = c.dst + storage_bytes(c.to, first);
    for (; first < c.count; first += per_buffer, src += src_step, dst += dst_step) {
      const bool is_last = c.count - first <= per_buffer;
      const Conversion block = {src, c.from, piece, c.to, is_last ? c.count - first : per_buffer};
      if (ahead != 0 && c.count - first >= (ahead + 1) * per_buffer) fetch(src + ahead * src_step, src_step);
      convert_by_kernel(block);
      if (sees_results) seen(block);
      const std::size_t end = first + block.count;
      const std::size_t bytes = is_last ? storage_bytes(c.to, block.count) : dst_step;
      const std::size_t rest = is_last ? 0 : std::min(bytes_into_line(dst + bytes), left + bytes);
      kernels::ops_of(target_).stream_copy(piece - left, dst - left, left + bytes - rest);
      if (rest != 0) std::memmove(piece - rest, piece + bytes - rest, rest);
      left = rest;
      if (refusals_ && (end == c.count || storage_bytes(c.from, end - accepted_to) >= seen_source_bytes)) {
        const Conversion part = slice(c, accepted_to, end - accepted_to);
        if (may_refuse(part)) {
          if (Result<void> done = convert_by_reference(part); !done)
            return with_offset(std::move(done).error(), accepted_to);
        }
        accepted_to = end;
      }
      if (!is_seen || sees_results) continue;
      if (end < c.count && storage_bytes(c.from, end - seen_to) < seen_bytes) continue;
      seen(slice(c, seen_to, end - seen_to));
      seen_to = end;
    }
    return {};
  }

  // Into the second-level cache.
  static void fetch(const std::byte* data, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += cache_line_bytes) __builtin_prefetch(data + at, 0, 2);
  }

  codec::Policy policy_;
  codec::Policy kernel_policy_;  // the same, without demands for errors
  Target target_ = Target::portable;
  kernels::KernelFn run_ = nullptr;  // null without one of the following: bit copy
  bool streams_ = false;
  bool copies_ = false;
  Streaming streaming_;
  std::optional<kernels::RefusalScan> refusals_;
  std::optional<kernels::ScaledConversion> scaled_;
  std::optional<kernels::TableConversion> table_;
};

struct Counted {
  const Reporter& reporter;
  Reporter::Count& count;
  std::size_t multiple = reporter.block_multiple();

  void operator()(const Conversion& done) const { reporter.add(done, count); }
  [[nodiscard]] bool needs_results() const { return reporter.needs_results(); }
};

// `count` is null without a reporter.
Result<void> convert_and_count(const Plan& plan, const Conversion& whole, const Reporter* reporter,
                               Reporter::Count* count) {
  const auto convert = [&](const Conversion& part) {
    return reporter == nullptr ? plan.convert(part) : plan.convert(part, Counted{*reporter, *count});
  };
  if (plan.in_one_go(reporter != nullptr)) return convert(whole);
  std::vector<std::byte> kept;  // the source of an in-place block, for the report
  const std::size_t step = block_elements(whole);
  for (std::size_t first = 0; first < whole.count; first += step) {
    Conversion block = slice(whole, first, std::min(step, whole.count - first));
    if (reporter != nullptr && whole.src == whole.dst) {
      kept.assign(block.src, block.src + storage_bytes(block.from, block.count));
      block.src = kept.data();
    }
    Result<void> converted = convert(block);
    if (!converted) return with_offset(std::move(converted).error(), first);
  }
  return {};
}

}  // namespace

Result<void> run_conversion(const Conversion& whole, const codec::Policy& policy, int threads, CastReport* report) {
  if (whole.count == 0) return {};
  const Plan plan(whole, policy);
  std::optional<Reporter> reporter;
  if (report != nullptr) reporter.emplace(whole.from, whole.to, policy);
  const Reporter* const asked = reporter ? &*reporter : nullptr;
  // `count` is null where no report is asked for.
  const auto convert = [&](const Conversion& part, Reporter::Count* count) -> Result<void> {
    Result<void> converted = convert_and_count(plan, part, asked, count);
    plan.finish();
    return converted;
  };

  // In place, a narrower target of one task lies over the source of another.
  const bool tasks_may_overlap = whole.src == whole.dst && bit_width(whole.from) != bit_width(whole.to);
  const std::size_t tasks = (whole.count + task_elements - 1) / task_elements;
  const std::size_t bytes = storage_bytes(whole.from, whole.count) + storage_bytes(whole.to, whole.count);
  const bool threaded = threads != 1 && !tasks_may_overlap && tasks > 1 && bytes >= threads_min_bytes;
  if (!threaded && report == nullptr) return convert(whole, nullptr);

  const bool is_order_free = report != nullptr && reporter->is_order_free();
  if (!threaded && is_order_free) {
    Reporter::Count count;
    if (Result<void> converted = convert(whole, &count); !converted) return converted;
    report->merge(reporter->report(count));
    return {};
  }

  // Reports add up per task and then in order, threads or not, so that they are the same for any number of threads.
  std::vector<CastReport> reports(report != nullptr && !is_order_free ? tasks : 0);
  std::optional<Reporter::Count> total;
  if (is_order_free) total.emplace();
  std::mutex mutex;
  std::size_t failed_task = std::numeric_limits<std::size_t>::max();
  Result<void> outcome;
  run_tasks(tasks, threaded ? thread_count(threads) : 1, [&](std::size_t task) {
    {
      const std::scoped_lock lock(mutex);
      if (failed_task < task) return;  // a later error than the one to be told
    }
    const std::size_t first = task * task_elements;
    const Conversion part = slice(whole, first, std::min(task_elements, whole.count - first));
    std::optional<Reporter::Count> count;
    if (report != nullptr) count.emplace();
    Result<void> converted = convert(part, count ? &*count : nullptr);
    if (converted && report == nullptr) return;
    if (converted && !is_order_free) {
      reports[task] = reporter->report(*count);
      return;
    }
    const std::scoped_lock lock(mutex);
    if (converted) {
      total->merge(*count);
    } else if (task < failed_task) {
      failed_task = task;
      outcome = with_offset(std::move(converted).error(), first);
    }
  });
  if (!outcome || report == nullptr) return outcome;
  if (is_order_free) reports.push_back(reporter->report(*total));
  for (const CastReport& part : reports) report->merge(part);
  return {};
}

bool convert_small(const Conversion& c, const codec::Policy& policy) noexcept {
  if (c.count > small_count || c.from == c.to || c.src == nullptr || c.dst == nullptr) return false;
  const DTypeRow* const from = find_row(c.from);
  const DTypeRow* const to = find_row(c.to);
  if (from == nullptr || to == nullptr || from->bits == 0 || to->bits == 0) return false;
  const auto bytes = [&](const DTypeRow& type) { return (c.count * static_cast<std::size_t>(type.bits) + 7) / 8; };
  const std::less<const std::byte*> before;
  const bool disjoint = !before(c.src, c.dst + bytes(*to)) || !before(c.dst, c.src + bytes(*from));
  if (!disjoint) return false;
  kernels::find_kernel(active_target(), c.from, c.to)->run(c.src, c.dst, c.count, policy);
  return true;
}

Result<void> check_numeric(DType from, DType to) {
  for (const DType dtype : {from, to}) {
    if (!is_castable(dtype)) {
      const bool exists = dtype == DType::uint1;
      return Error{.code = exists ? ErrorCode::unsupported : ErrorCode::invalid_argument,
                   .message = exists ? "u1 can be promoted but not cast"
                                     : fmt::format("dtype number {} does not exist", static_cast<std::int32_t>(dtype))};
    }
  }
  if (from == DType::string || to == DType::string) {
    return Error{.code = ErrorCode::unsupported,
                 .message = "strings are no dense numbers",
                 .hint = from == DType::string ? "use cast_from_strings" : "use cast_to_strings"};
  }
  return {};
}

Result<void> check_buffers(const Conversion& c) {
  if (c.count == 0) return {};
  if (c.src == nullptr || c.dst == nullptr) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the {} buffer is null", c.src == nullptr ? "source" : "target")};
  }
  const std::size_t src_bytes = storage_bytes(c.from, c.count);
  const std::size_t dst_bytes = storage_bytes(c.to, c.count);
  if (src_bytes == std::numeric_limits<std::size_t>::max() || dst_bytes == std::numeric_limits<std::size_t>::max()) {
    return Error{.code = ErrorCode::invalid_argument, .message = fmt::format("{} elements do not fit memory", c.count)};
  }
  if (c.src == c.dst) {
    if (bit_width(c.to) <= bit_width(c.from)) return {};
    return Error{.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{} cannot become the wider {} in place", name(c.from), name(c.to)),
                 .hint = "give the target a buffer of its own"};
  }
  const std::less<const std::byte*> before;
  if (before(c.src, c.dst + dst_bytes) && before(c.dst, c.src + src_bytes)) {
    return Error{.code = ErrorCode::invalid_argument,
                 .message = "source and target overlap",
                 .hint = "use the same address for both, or disjoint buffers"};
  }
  return {};
}

}  // namespace tensorcast
