// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/strided_elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::uint64_t max_block_bytes = std::uint64_t{32} << 20;
// Limit for a source without random access, which is read from the beginning for each block.
constexpr std::uint64_t max_streamed_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t window_bytes = std::uint64_t{256} << 10;
// Items that are further apart are read one by one.
constexpr std::uint64_t dense_gap_bytes = 4096;

template <std::size_t item_bytes>
void copy_items(const std::byte* src, std::uint64_t src_gap, std::byte* dst, std::uint64_t dst_gap,
                std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(dst + i * dst_gap, src + i * src_gap, item_bytes);
}

// Copies items that are `src_gap` bytes apart to places that are `dst_gap` bytes apart.
void copy_items(const std::byte* src, std::uint64_t src_gap, std::byte* dst, std::uint64_t dst_gap, std::uint64_t count,
                std::uint64_t item_bytes) {
  switch (item_bytes) {
    case 1:
      return copy_items<1>(src, src_gap, dst, dst_gap, count);
    case 2:
      return copy_items<2>(src, src_gap, dst, dst_gap, count);
    case 4:
      return copy_items<4>(src, src_gap, dst, dst_gap, count);
    case 8:
      return copy_items<8>(src, src_gap, dst, dst_gap, count);
    default:
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(dst + i * dst_gap, src + i * src_gap, item_bytes);
  }
}

template <std::size_t width>
void reverse_each(std::span<std::byte> words) {
  for (std::size_t i = 0; i < words.size(); i += width) std::reverse(words.data() + i, words.data() + i + width);
}

void swap_bytes(std::span<std::byte> words, std::uint64_t width) {
  if (width == 2) return reverse_each<2>(words);
  if (width == 4) return reverse_each<4>(words);
  reverse_each<8>(words);
}

}  // namespace

bool is_contiguous(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (std::ranges::find(shape, 0) != shape.end()) return true;
  std::uint64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (static_cast<std::uint64_t>(strides[i]) != step) return false;
    step *= static_cast<std::uint64_t>(shape[i]);
  }
  return true;
}

StridedElements::StridedElements(StreamSource& source, const StridedLayout& layout)
    : source_(source), begin_(layout.begin), item_bytes_(layout.item_bytes), word_bytes_(layout.word_bytes) {
  if (is_contiguous(layout.shape, layout.strides)) return;
  std::uint64_t step = 1;
  for (std::size_t i = layout.shape.size(); i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(layout.shape[i]);
    if (extent != 1) {
      dimensions_.push_back({.extent = extent, .stride = static_cast<std::uint64_t>(layout.strides[i]), .step = step});
    }
    step *= extent;
  }
  std::ranges::reverse(dimensions_);
  while (split_ + 1 < dimensions_.size() && dimensions_[split_].step * item_bytes_ > max_block_bytes) ++split_;
  const Dimension& rows = dimensions_[split_];
  rows_ = std::clamp<std::uint64_t>(max_block_bytes / (rows.step * item_bytes_), 1, rows.extent);
}

Result<void> StridedElements::read(std::uint64_t offset, std::span<std::byte> out) {
  if (word_bytes_ == 1) return read_words(offset, out);
  while (!out.empty()) {
    const std::uint64_t begin = offset % word_bytes_;
    std::size_t done = out.size() / word_bytes_ * word_bytes_;
    if (begin == 0 && done > 0) {
      TRY(read_words(offset, out.first(done)));
      swap_bytes(out.first(done), word_bytes_);
    } else {
      // Kept until the rest is read: a stream cannot go back.
      const std::span<std::byte> word = std::span(split_word_).first(word_bytes_);
      if (split_index_ != offset / word_bytes_) {
        TRY(read_words(offset - begin, word));
        swap_bytes(word, word_bytes_);
        split_index_ = offset / word_bytes_;
      }
      done = std::min<std::size_t>(out.size(), word_bytes_ - begin);
      std::memcpy(out.data(), word.data() + begin, done);
    }
    out = out.subspan(done);
    offset += done;
  }
  return {};
}

// Reads as read(), in the source's byte order.
Result<void> StridedElements::read_words(std::uint64_t offset, std::span<std::byte> out) {
  if (dimensions_.empty()) return source_.read(begin_ + offset, out);
  while (!out.empty()) {
    if (offset < block_begin_ || offset - block_begin_ >= block_.size()) {
      TRY(load_block(offset / item_bytes_));
    }
    const auto begin = static_cast<std::size_t>(offset - block_begin_);
    const std::size_t count = std::min(out.size(), block_.size() - begin);
    std::memcpy(out.data(), block_.data() + begin, count);
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

// Blocks do not read to the end in order, so a source cannot check itself meanwhile.
Result<void> StridedElements::check_source() {
  if (checked_ || (split_ == 0 && rows_ == dimensions_.front().extent)) return {};
  const std::uint64_t bytes = dimensions_.front().extent * dimensions_.front().step * item_bytes_;
  if (!source_.random_access() && bytes > max_streamed_bytes) {
    return unsupported(fmt::format("a compressed array of {} bytes in Fortran order is too large to reorder",
                                   fmt::group_digits(bytes)),
                       "save it in C order (numpy.ascontiguousarray) or without compression");
  }
  TRY(source_.verify());
  checked_ = true;
  return {};
}

Result<void> StridedElements::load_block(std::uint64_t item) {
  TRY(check_source());
  std::uint64_t source = 0;
  std::uint64_t target = 0;
  std::uint64_t first_row = 0;
  for (std::size_t k = 0; k <= split_; ++k) {
    std::uint64_t index = item / dimensions_[k].step % dimensions_[k].extent;
    if (k == split_) first_row = index -= index % rows_;
    source += index * dimensions_[k].stride;
    target += index * dimensions_[k].step;
  }
  std::vector<Dimension> varying(dimensions_.begin() + static_cast<std::ptrdiff_t>(split_), dimensions_.end());
  varying.front().extent = std::min(rows_, varying.front().extent - first_row);

  block_.resize(varying.front().extent * varying.front().step * item_bytes_);
  if (auto gathered = gather(source, std::move(varying)); !gathered) {
    block_.clear();  // a failed load leaves no block
    return gathered;
  }
  block_begin_ = target * item_bytes_;
  return {};
}

Result<void> StridedElements::gather(std::uint64_t first, std::vector<Dimension> dimensions) {
  // In descending order of strides, so that the source is read from front to back.
  std::ranges::stable_sort(dimensions, std::ranges::greater{}, &Dimension::stride);
  const Dimension run = dimensions.back();
  dimensions.pop_back();
  const bool ahead = !dimensions.empty() && dimensions.back().stride * item_bytes_ <= dense_gap_bytes;
  std::vector<std::uint64_t> index(dimensions.size(), 0);
  std::uint64_t source = first;
  std::uint64_t target = 0;
  while (true) {
    TRY(copy_run(source, run, target, ahead));
    std::size_t k = dimensions.size();
    while (k > 0) {
      Dimension& dimension = dimensions[k - 1];
      source += dimension.stride;
      target += dimension.step;
      if (++index[k - 1] < dimension.extent) break;
      source -= dimension.extent * dimension.stride;
      target -= dimension.extent * dimension.step;
      index[--k] = 0;
    }
    if (k == 0) return {};
  }
}

// Copies items `stride` apart in the source to every `step`-th item of the block. `ahead`: the next run is close.
Result<void> StridedElements::copy_run(std::uint64_t item, const Dimension& run, std::uint64_t target, bool ahead) {
  const std::uint64_t gap = run.stride * item_bytes_;
  const std::uint64_t per_read = gap == 0                 ? run.extent
                                 : gap <= dense_gap_bytes ? std::max<std::uint64_t>(window_bytes / gap, 1)
                                                          : 1;
  for (std::uint64_t done = 0; done < run.extent;) {
    const std::uint64_t count = std::min(per_read, run.extent - done);
    const std::uint64_t begin = begin_ + (item + done * run.stride) * item_bytes_;
    const std::uint64_t bytes = (count - 1) * gap + item_bytes_;
    if (begin < window_begin_ || begin + bytes > window_begin_ + window_.size()) {
      const std::uint64_t wanted = ahead ? std::max(bytes, window_bytes) : bytes;
      TRY(load_window(begin, std::min(wanted, source_.size() - begin)));
    }
    copy_items(window_.data() + (begin - window_begin_), gap, block_.data() + (target + done * run.step) * item_bytes_,
               run.step * item_bytes_, count, item_bytes_);
    done += count;
  }
  return {};
}

// Bytes that the window has are not read again: a stream cannot go back.
Result<void> StridedElements::load_window(std::uint64_t begin, std::uint64_t bytes) {
  std::size_t kept = 0;
  if (begin >= window_begin_ && begin < window_begin_ + window_.size()) {
    const auto dropped = static_cast<std::ptrdiff_t>(begin - window_begin_);
    std::copy(window_.begin() + dropped, window_.end(), window_.begin());
    kept = window_.size() - static_cast<std::size_t>(dropped);
  }
  window_.resize(bytes);
  window_begin_ = begin;
  auto got = source_.read(begin + kept, std::span(window_).subspan(kept));
  if (!got) window_.clear();
  return got;
}

}  // namespace tensorcast::formats
