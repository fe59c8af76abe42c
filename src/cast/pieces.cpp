// SPDX-License-Identifier: Apache-2.0
#include "cast/pieces.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cast/pages.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/prefetch.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::size_t line_bytes = 64;

static_assert(piece_granule % report::piece_multiple == 0, "pieces are what reports take");

// Elements before the target's first whole cache line: 0 if an element crosses its start, or if they do not end at a
// whole byte of the source. Pieces that begin at a line take 0.8 to 0.9 of the time to store.
std::size_t elements_to_line(const Conversion& c) {
  const auto from_bits = static_cast<std::size_t>(bit_width(c.from)),
             to_bits = static_cast<std::size_t>(bit_width(c.to));
  const std::size_t bits = (0 - reinterpret_cast<std::uintptr_t>(c.dst)) % line_bytes * 8;
  const std::size_t elements = bits / to_bits;
  const bool is_whole = elements * to_bits == bits && elements * from_bits % 8 == 0;
  return is_whole ? std::min(elements, c.count) : 0;
}

// Stores pieces one after the other and bypasses the cache. Each whole line of the target is written once: the part of
// a line that ends a piece waits in front of the next piece.
class BypassingStore {
 public:
  BypassingStore(const kernels::Ops& ops, std::byte* dst) : ops_(ops), dst_(dst) {}

  [[nodiscard]] std::byte* piece() { return buffer_ + line_bytes; }

  void store(std::size_t piece_bytes, bool is_last) {
    const std::size_t bytes = waiting_ + piece_bytes;
    const std::byte* const begin = piece() - waiting_;
    const std::size_t rest = is_last ? 0 : std::min(reinterpret_cast<std::uintptr_t>(dst_ + bytes) % line_bytes, bytes);
    ops_.stream_copy(begin, dst_, bytes - rest);
    if (rest != 0) std::memmove(piece() - rest, begin + bytes - rest, rest);
    dst_ += bytes - rest;
    waiting_ = rest;
  }

 private:
  const kernels::Ops& ops_;
  std::byte* dst_;
  std::size_t waiting_ = 0;
  alignas(line_bytes) std::byte buffer_[line_bytes + largest_piece_bytes];
};

}  // namespace

Pieces::Pieces(const Conversion& whole, const codec::Policy& policy, const report::Reporter* reporter, Stores stores)
    : policy_(policy),
      ops_(&kernels::ops_of(active_target())),
      reporter_(reporter),
      converter_(active_target(), whole, policy.without_errors()) {
  if (report::may_ever_fail(whole.from, whole.to, policy)) {
    strict_.emplace(whole.from, whole.to, policy, whole.count);
    if (const kernels::Interval* const accepted = strict_->accepted()) {
      const bool refuses_rest = policy.range == codec::RangeRule::error && family(whole.to) == Family::integer;
      converter_.check_sources(*accepted, refuses_rest);
    }
    if (policy.inexact_is_error && bit_width(whole.from) > 8 && family(whole.to) != Family::boolean) {
      codec::Policy by_default = policy.without_errors();  // what no word changes, none would
      by_default.rounding = Rounding::automatic;
      changes_.emplace(whole.from, whole.to, by_default);
    }
  }
  is_scanned_ = strict_ || reporter != nullptr;
  choose_stores(whole, stores);
  if (!is_scanned_ && (!bypasses_cache_ || converter_.is_copy())) return;
  const bool is_checked = converter_.checks_sources() && reporter == nullptr && !whole.is_in_place();
  PieceTuning tuning = is_checked ? checked_pieces : scanned_pieces;
  if (bypasses_cache_ && (is_checked || !is_scanned_)) {
    tuning = converted_pieces(active_target(), whole.from, whole.to, converter_.is_memory_bound());
    if (is_checked && tuning.bytes == 0) tuning.bytes = largest_piece_bytes;
  }
  const auto wider_bits = static_cast<std::size_t>(std::max(bit_width(whole.from), bit_width(whole.to)));
  piece_elements_ = tuning.bytes * 8 / wider_bits / piece_granule * piece_granule;
  prefetch_pieces_ = tuning.prefetch_pieces;
}

void Pieces::choose_stores(const Conversion& whole, Stores stores) {
  const std::size_t written = storage_bytes(whole.to, whole.count);
  if (whole.is_in_place() || written < asked_pages_min_bytes) return;
  const Pages pages = pages_of(whole.dst, written, stores == Stores::tuned);
  populates_ = pages == Pages::new_small && stores != Stores::bypass_cache;
  bypasses_cache_ = stores == Stores::tuned ? stores_bypass_cache(active_target(), whole.from, whole.to, whole.count,
                                                                  pages, converter_.is_memory_bound())
                                            : stores == Stores::bypass_cache;
}

Result<void> Pieces::convert(const Conversion& part, report::ReportAccumulator* accumulator) const {
  if (!populates_) return convert_present(part, accumulator);
  // Each thread gets the pages that it converts, while they are in its cache. A task has one accumulator.
  const std::size_t step = accumulator == nullptr ? task_elements : part.count;
  for (std::size_t first = 0; first < part.count; first += step) {
    const Conversion now = part.slice(first, std::min(step, part.count - first));
    populate(now.dst, storage_bytes(now.to, now.count));
    Result<void> done = convert_present(now, accumulator);
    if (!done) {
      *done.error().element += first;
      return done;
    }
  }
  return {};
}

Result<void> Pieces::convert_present(const Conversion& part, report::ReportAccumulator* accumulator) const {
  if (piece_elements_ != 0) {
    Result<void> done = convert_pieces(part, accumulator);
    if (bypasses_cache_) ops_->stream_fence();  // other threads may read the target after this
    return done;
  }
  if (bypasses_cache_ && converter_.is_copy()) {
    ops_->stream_copy(part.src, part.dst, storage_bytes(part.to, part.count));
    ops_->stream_fence();
  } else {
    converter_.run(part);
  }
  return {};
}

Result<void> Pieces::convert_pieces(const Conversion& part, report::ReportAccumulator* accumulator) const {
  alignas(line_bytes) std::byte kept_source[largest_piece_bytes];
  const bool keeps_source = is_scanned_ && part.is_in_place();
  const std::size_t src_bytes = storage_bytes(part.from, piece_elements_);
  const std::size_t dst_bytes = storage_bytes(part.to, piece_elements_);
  const std::size_t prefetch_bytes = prefetch_pieces_ * src_bytes;
  // Reports need whole pieces from the first element on.
  const std::size_t head = bypasses_cache_ && accumulator == nullptr ? elements_to_line(part) : 0;
  if (head != 0) {
    const Conversion piece = part.slice(0, head);
    if (Result<void> done = convert_and_scan(piece, nullptr); !done) return done;
  }
  const std::byte* src = part.src + storage_bytes(part.from, head);
  std::byte* dst = part.dst + storage_bytes(part.to, head);
  BypassingStore store(*ops_, dst);
  for (std::size_t left = part.count - head; left != 0; src += src_bytes, dst += dst_bytes) {
    const bool is_last = left <= piece_elements_;
    Conversion piece = {src, part.from, dst, part.to, is_last ? left : piece_elements_, part.first + part.count - left};
    left -= piece.count;
    if (prefetch_bytes != 0 && left > prefetch_pieces_ * piece_elements_) prefetch(src + prefetch_bytes, src_bytes);
    if (keeps_source) {
      std::memcpy(kept_source, src, storage_bytes(part.from, piece.count));
      piece.src = kept_source;
    }
    if (bypasses_cache_) piece.dst = store.piece();
    if (Result<void> done = convert_and_scan(piece, accumulator); !done) {
      *done.error().element += static_cast<std::size_t>(part.count - left - piece.count);
      return done;
    }
    if (bypasses_cache_) store.store(is_last ? storage_bytes(part.to, piece.count) : dst_bytes, is_last);
  }
  return {};
}

Result<void> Pieces::convert_and_scan(const Conversion& piece, report::ReportAccumulator* accumulator) const {
  const bool is_clear = converter_.run(piece);
  const report::ConvertedPiece converted = {piece.src, piece.dst, piece.count, piece.first};
  if (changes_ ? changes_->finds_change(converted)
               : strict_ && !is_clear && strict_->may_fail(piece.src, piece.count)) {
    Result<void> done =
        codec::reference_cast(piece.src, piece.from, piece.dst, piece.to, piece.count, policy_, piece.first);
    if (!done) return done;
  }
  if (accumulator != nullptr) reporter_->add(converted, *accumulator);
  return {};
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
