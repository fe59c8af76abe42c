#include "formats/pytorch/strided_source.hpp"

#include <algorithm>
#include <cstring>

namespace tensorcast::formats::pytorch {
namespace {

constexpr std::uint64_t max_block_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t window_bytes = std::uint64_t{256} << 10;
// Items that are further apart are read one by one.
constexpr std::uint64_t dense_gap_bytes = 4096;

}  // namespace

bool is_contiguous(const StridedTensor& tensor) {
  std::uint64_t step = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] == 1) continue;
    if (static_cast<std::uint64_t>(tensor.strides[i]) != step) return false;
    step *= static_cast<std::uint64_t>(tensor.shape[i]);
  }
  return true;
}

StridedSource::StridedSource(const StridedTensor& tensor, std::uint64_t storage_bytes, bool swap, ReadStorage read)
    : item_bytes_(tensor.type->item_bytes),
      word_bytes_(swap ? tensor.type->word_bytes : 1),
      offset_(tensor.offset),
      storage_bytes_(storage_bytes),
      read_(std::move(read)),
      direct_(word_bytes_ == 1 && is_contiguous(tensor)) {
  std::uint64_t step = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(tensor.shape[i]);
    if (extent != 1) {
      dimensions_.insert(dimensions_.begin(),
                         {.extent = extent, .stride = static_cast<std::uint64_t>(tensor.strides[i]), .step = step});
    }
    step *= extent;
  }
  if (dimensions_.empty()) dimensions_.push_back({.extent = 1, .stride = 1, .step = 1});
}

Result<void> StridedSource::read(std::uint64_t offset, std::span<std::byte> out) {
  if (direct_) return read_(offset_ * item_bytes_ + offset, out);
  while (!out.empty()) {
    if (offset < block_begin_ || offset - block_begin_ >= block_.size()) {
      if (auto loaded = load_block(offset / item_bytes_); !loaded) return loaded;
    }
    const auto begin = static_cast<std::size_t>(offset - block_begin_);
    const std::size_t count = std::min(out.size(), block_.size() - begin);
    std::memcpy(out.data(), block_.data() + begin, count);
    out = out.subspan(count);
    offset += count;
  }
  return {};
}

// A block is some indices of one dimension, and everything in the dimensions after it.
Result<void> StridedSource::load_block(std::uint64_t item) {
  std::size_t split = 0;
  while (split + 1 < dimensions_.size() && dimensions_[split].step * item_bytes_ > max_block_bytes) ++split;
  const Dimension& rows = dimensions_[split];
  const std::uint64_t rows_at_once =
      std::clamp<std::uint64_t>(max_block_bytes / (rows.step * item_bytes_), 1, rows.extent);
  std::uint64_t source = offset_;
  std::uint64_t target = 0;
  for (std::size_t k = 0; k <= split; ++k) {
    std::uint64_t index = item / dimensions_[k].step % dimensions_[k].extent;
    if (k == split) index -= index % rows_at_once;
    source += index * dimensions_[k].stride;
    target += index * dimensions_[k].step;
  }
  const std::uint64_t first_row = item / rows.step % rows.extent / rows_at_once * rows_at_once;
  std::vector<Dimension> varying(dimensions_.begin() + static_cast<std::ptrdiff_t>(split), dimensions_.end());
  varying.front().extent = std::min(rows_at_once, rows.extent - first_row);

  block_.clear();  // a failed load leaves no block
  std::vector<std::byte> block(varying.front().extent * rows.step * item_bytes_);
  block_.swap(block);
  if (auto gathered = gather(source, std::move(varying)); !gathered) {
    block_.clear();
    return gathered;
  }
  block_begin_ = target * item_bytes_;
  return {};
}

Result<void> StridedSource::gather(std::uint64_t first, std::vector<Dimension> dimensions) {
  // In descending order of strides, so that the storage is read from front to back.
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.stride > b.stride; });
  const Dimension run = dimensions.back();
  dimensions.pop_back();
  const bool ahead = !dimensions.empty() && dimensions.back().stride * item_bytes_ <= dense_gap_bytes;
  std::vector<std::uint64_t> index(dimensions.size(), 0);
  std::uint64_t source = first;
  std::uint64_t target = 0;
  while (true) {
    if (auto copied = copy_run(source, run, target, ahead); !copied) return copied;
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

Result<void> StridedSource::copy_run(std::uint64_t item, const Dimension& run, std::uint64_t target, bool ahead) {
  const std::uint64_t gap_bytes = run.stride * item_bytes_;
  const std::uint64_t per_read =
      run.stride == 0 ? run.extent
                      : (gap_bytes <= dense_gap_bytes ? std::max<std::uint64_t>(window_bytes / gap_bytes, 1) : 1);
  for (std::uint64_t done = 0; done < run.extent;) {
    const std::uint64_t count = std::min(per_read, run.extent - done);
    const std::uint64_t begin = (item + done * run.stride) * item_bytes_;
    const std::uint64_t bytes = (run.stride == 0 ? 0 : (count - 1) * gap_bytes) + item_bytes_;
    if (begin < window_begin_ || begin + bytes > window_begin_ + window_.size()) {
      const std::uint64_t wanted = ahead ? std::max(bytes, window_bytes) : bytes;
      window_.resize(std::min(wanted, storage_bytes_ - begin));
      window_begin_ = begin;
      if (auto got = read_(begin, window_); !got) {
        window_.clear();
        return got;
      }
      swap_bytes(window_);
    }
    const std::byte* src = window_.data() + (begin - window_begin_);
    std::byte* dst = block_.data() + (target + done * run.step) * item_bytes_;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(dst + i * run.step * item_bytes_, src + i * gap_bytes, item_bytes_);
    }
    done += count;
  }
  return {};
}

void StridedSource::swap_bytes(std::span<std::byte> items) const {
  if (word_bytes_ == 1) return;
  for (std::size_t begin = 0; begin + word_bytes_ <= items.size(); begin += word_bytes_) {
    std::reverse(items.begin() + static_cast<std::ptrdiff_t>(begin),
                 items.begin() + static_cast<std::ptrdiff_t>(begin + word_bytes_));
  }
}

}  // namespace tensorcast::formats::pytorch
