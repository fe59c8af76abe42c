// SPDX-License-Identifier: Apache-2.0
// Casts between arrays of any strides, byte order and packing, block by block.
#include "tensorcast/strided.hpp"

#include <algorithm>
#include <optional>

#include "cast/conversion.hpp"
#include "cast/strided_array.hpp"
#include "cast/strided_block.hpp"
#include "cast/strided_boxes.hpp"
#include "cast/strided_tiles.hpp"
#include "cast/walk.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Converts elements in C order, with any strides.
class Blocks {
 public:
  Blocks(const StridedArray& src, const StridedArray& dst, std::size_t count, const Work& work)
      : src_(src), dst_(dst), count_(count), work_(work) {
    has_long_runs_ = has_long_runs(src, dst);
  }

  Result<void> run() const {
    return in_tasks(src_, count_, work_, [&](std::size_t first, std::size_t count) { return convert(first, count); });
  }

 private:
  Result<void> convert(std::size_t first, std::size_t count) const {
    Walk from(src_, first), to(dst_, first);
    if (has_long_runs_) return convert_runs(from, to, first, count);
    Block block(src_, dst_, std::min(block_elements, count), dst_.one_per_byte);
    return in_pieces(count, block_elements, nullptr, [&](std::size_t done, std::size_t piece) {
      return convert_block(block, from, to, first + done, piece);
    });
  }

  // Where they are: both arrays have the same runs.
  Result<void> convert_runs(Walk& from, Walk& to, std::size_t first, std::size_t count) const {
    for (std::size_t done = 0; done < count;) {
      const std::size_t run = std::min(from.run(), count - done);
      const std::byte* source = nullptr;
      std::byte* target = nullptr;
      from.advance(run, [&](const std::byte* at, std::int64_t, std::size_t) { source = at; });
      to.advance(run, [&](std::byte* at, std::int64_t, std::size_t) { target = at; });
      if (Result<void> cast = cast_block(src_.dtype, source, dst_.dtype, target, run, first + done, work_); !cast) {
        if (cast.error().element) *cast.error().element += done;
        return cast;
      }
      done += run;
    }
    return {};
  }

  Result<void> convert_block(Block& block, Walk& from, Walk& to, std::size_t first, std::size_t count) const {
    const auto src_item = static_cast<std::int64_t>(src_.item_bytes());
    const auto dst_item = static_cast<std::int64_t>(dst_.item_bytes());
    const std::byte* source = src_.data + storage_bytes(src_.dtype, first);
    if (!src_.is_packed()) {
      source = block.gathered();
      std::byte* fill = block.gathered();
      from.advance(count, [&](const std::byte* run, std::int64_t stride, std::size_t length) {
        copy_run(run, stride, fill, src_item, length, src_.item_bytes(), src_.swapped);
        fill += static_cast<std::int64_t>(length) * src_item;
      });
    }
    if (dst_.is_packed()) {
      return block.convert(source, dst_.data + storage_bytes(dst_.dtype, first), count, first, work_);
    }
    TRY(block.convert(source, block.converted(), count, first, work_));
    const std::byte* drain = block.items(count);
    to.advance(count, [&](std::byte* run, std::int64_t stride, std::size_t length) {
      copy_run(drain, dst_item, run, stride, length, dst_.item_bytes(), dst_.swapped);
      drain += static_cast<std::int64_t>(length) * dst_item;
    });
    return {};
  }

  const StridedArray& src_;
  const StridedArray& dst_;
  std::size_t count_;
  const Work& work_;
  bool has_long_runs_ = false;
};

Result<void> cast_dense(const Conversion& whole, const Work& work) {
  TRY(check(whole, work.options));  // overlap concerns all pieces together
  // In place, a piece of the narrower target may be written where a part of its source is.
  const bool is_one = work.stop == nullptr || (whole.is_in_place() && bit_width(whole.from) != bit_width(whole.to));
  return in_pieces(whole.count, is_one ? std::max<std::size_t>(1, whole.count) : dense_elements, work.stop,
                   [&](std::size_t first, std::size_t elements) {
                     const Conversion piece = whole.slice(first, elements);
                     return cast_block(piece.from, piece.src, piece.to, piece.dst, piece.count, first, work);
                   });
}

Result<void> cast_views(const StridedView& src, const MutableStridedView& dst, const Work& work) {
  if (src.shape != dst.shape) return invalid("source and target have different shapes");
  const std::size_t count = TRY(element_count(src.shape));
  TRY(check_numeric(src.dtype, dst.dtype));
  TRY(check_strides("source", src, count));
  TRY(check_strides("target", dst, count));
  if (count == 0 || (is_dense(src) && is_dense(dst))) {
    return cast_dense({src.data, src.dtype, dst.data, dst.dtype, count}, work);
  }
  StridedArray from = squeezed(src), to = squeezed(dst);
  TRY(check_overlap(from, to, count));
  merge_axes(from, to);
  // Stochastic rounding depends on places in C order, which tiles are not in.
  const bool may_tile = work.options.rounding != Rounding::stochastic;
  const std::optional<std::size_t> rows = may_tile ? tile_axis(from, count) : std::nullopt;
  if (rows && from.data != to.data) {
    Result<void> done = cast_tiles(from, to, count, *rows, work);
    // Tiles are not in C order, so another error may come first.
    if (done || !done.error().element) return done;
    if (work.report != nullptr) *work.report = {};
  }
  if (from.data != to.data && has_boxes(from, to, work)) return cast_boxes(from, to, count, work);
  return Blocks(from, to, count, work).run();
}

// Adds to the report only if all goes well.
Result<void> cast_guarded(const StridedView& src, const MutableStridedView& dst, const Work& work) {
  CastReport added;
  Work inner = work;
  if (work.report != nullptr) inner.report = &added;
  Result<void> done = guarded([&] { return cast_views(src, dst, inner); });
  if (done && work.report != nullptr) work.report->merge(added);
  return done;
}

}  // namespace

Result<void> cast_strided(const StridedView& src, const MutableStridedView& dst, const CastOptions& options,
                          const Execution& execution, bool (*stop)()) {
  return cast_guarded(src, dst, {options, execution, nullptr, stop});
}

Result<void> cast_strided(const StridedView& src, const MutableStridedView& dst, const CastOptions& options,
                          CastReport& report, const Execution& execution, bool (*stop)()) {
  return cast_guarded(src, dst, {options, execution, &report, stop});
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
