#include "formats/npy/row_major_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tensorcast::formats::npy {
namespace {

constexpr std::uint64_t max_block_bytes = std::uint64_t{32} << 20;
// Limit for a source without random access, which is read from the beginning for each block.
constexpr std::uint64_t max_streamed_bytes = std::uint64_t{1} << 30;

// Cuts small ranges that lie close together out of larger reads.
class ReadAhead {
 public:
  ReadAhead(ByteSource& source, std::uint64_t end, bool dense) : source_(source), end_(end), dense_(dense) {}

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) {
    if (offset >= begin_ && offset + out.size() <= begin_ + buffer_.size()) {
      std::memcpy(out.data(), buffer_.data() + (offset - begin_), out.size());
      return {};
    }
    if (!dense_ || out.size() >= buffer_bytes) return source_.read(offset, out);
    // Bytes in the buffer are not read again: a stream cannot go back.
    const std::uint64_t buffered_end = begin_ + buffer_.size();
    if (offset >= begin_ && offset < buffered_end) {
      const auto have = static_cast<std::size_t>(buffered_end - offset);
      std::memcpy(out.data(), buffer_.data() + (offset - begin_), have);
      out = out.subspan(have);
      offset += have;
    }
    buffer_.resize(std::min<std::uint64_t>(buffer_bytes, end_ - offset));
    begin_ = offset;
    if (auto got = source_.read(offset, buffer_); !got) return got;
    std::memcpy(out.data(), buffer_.data(), out.size());
    return {};
  }

 private:
  static constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

  ByteSource& source_;
  std::uint64_t end_;
  bool dense_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> buffer_;
};

template <std::size_t item_bytes>
void scatter_items(const std::byte* src, std::byte* dst, std::uint64_t count, std::uint64_t step) {
  for (std::uint64_t i = 0; i < count; ++i) std::memcpy(dst + i * step, src + i * item_bytes, item_bytes);
}

// Copies `count` adjacent items of `src` to every `step`-th byte of `dst`.
void scatter(const std::byte* src, std::byte* dst, std::uint64_t count, std::uint64_t step, std::uint64_t item_bytes) {
  switch (item_bytes) {
    case 1:
      return scatter_items<1>(src, dst, count, step);
    case 2:
      return scatter_items<2>(src, dst, count, step);
    case 4:
      return scatter_items<4>(src, dst, count, step);
    case 8:
      return scatter_items<8>(src, dst, count, step);
    default:
      for (std::uint64_t i = 0; i < count; ++i) std::memcpy(dst + i * step, src + i * item_bytes, item_bytes);
  }
}

}  // namespace

RowMajorView::RowMajorView(ByteSource& source, std::uint64_t data_offset, std::span<const std::int64_t> shape,
                           std::uint64_t item_bytes, bool fortran_order)
    : source_(source), data_offset_(data_offset), item_bytes_(item_bytes), total_bytes_(item_bytes) {
  if (!fortran_order || std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  for (const std::int64_t extent : shape) {
    if (extent != 1) dimensions_.push_back({.extent = static_cast<std::uint64_t>(extent)});
    total_bytes_ *= static_cast<std::uint64_t>(extent);
  }
  if (dimensions_.size() < 2) {
    dimensions_.clear();
    return;
  }
  plan_blocks();
}

void RowMajorView::plan_blocks() {
  std::uint64_t step = 1;
  for (Dimension& dimension : dimensions_) {
    dimension.column_major_step = step;
    step *= dimension.extent;
  }
  step = 1;
  for (std::size_t k = dimensions_.size(); k-- > 0;) {
    dimensions_[k].row_major_step = step;
    step *= dimensions_[k].extent;
  }
  while (split_ + 1 < dimensions_.size() && dimensions_[split_].row_major_step * item_bytes_ > max_block_bytes)
    ++split_;
  const std::uint64_t row_bytes = dimensions_[split_].row_major_step * item_bytes_;
  rows_ = std::clamp<std::uint64_t>(max_block_bytes / row_bytes, 1, dimensions_[split_].extent);
}

Result<void> RowMajorView::read(std::uint64_t offset, std::span<std::byte> out) {
  if (dimensions_.empty()) return source_.read(data_offset_ + offset, out);
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

Result<void> RowMajorView::load_block(std::uint64_t element) {
  const Dimension& split = dimensions_[split_];
  const bool single = split_ == 0 && rows_ == split.extent;
  if (!single && !checked_) {
    if (!source_.random_access() && total_bytes_ > max_streamed_bytes) {
      return Error{.code = ErrorCode::unsupported,
                   .message = fmt::format("a compressed array of {} bytes in Fortran order is too large to reorder",
                                          fmt::group_digits(total_bytes_)),
                   .hint = "save it in C order (numpy.ascontiguousarray) or without compression"};
    }
    if (auto verified = source_.verify(); !verified) return verified;
    checked_ = true;
  }

  // The beginning of the block, in both orders.
  std::uint64_t row_major = 0;
  std::uint64_t column_major = 0;
  for (std::size_t k = 0; k <= split_; ++k) {
    std::uint64_t index = element / dimensions_[k].row_major_step % dimensions_[k].extent;
    if (k == split_) index -= index % rows_;
    row_major += index * dimensions_[k].row_major_step;
    column_major += index * dimensions_[k].column_major_step;
  }
  const std::uint64_t first_row = element / split.row_major_step % split.extent / rows_ * rows_;
  const std::uint64_t rows = std::min(rows_, split.extent - first_row);
  const std::uint64_t columns = split.row_major_step;

  block_.clear();  // a failed load leaves no block
  std::vector<std::byte> block(rows * columns * item_bytes_);
  constexpr std::uint64_t dense_gap_bytes = 4096;
  const std::uint64_t gap_elements = split_ == 0 ? split.extent : split.column_major_step;
  ReadAhead source(source_, data_offset_ + total_bytes_, gap_elements * item_bytes_ <= dense_gap_bytes || single);

  // A column is the elements of one index of the dimensions after the split; columns ascend in the file.
  const std::uint64_t run_items = split.column_major_step == 1 ? rows : 1;
  std::vector<std::byte> run(run_items * item_bytes_);
  std::vector<std::uint64_t> index(dimensions_.size(), 0);
  std::uint64_t target = 0;
  for (std::uint64_t column = 0; column < columns; ++column) {
    for (std::uint64_t row = 0; row < rows; row += run_items) {
      const std::uint64_t item = column_major + row * split.column_major_step;
      if (auto got = source.read(data_offset_ + item * item_bytes_, run); !got) return got;
      scatter(run.data(), block.data() + (target + row * columns) * item_bytes_, run_items, columns * item_bytes_,
              item_bytes_);
    }
    for (std::size_t k = split_ + 1; k < dimensions_.size(); ++k) {
      target += dimensions_[k].row_major_step;
      column_major += dimensions_[k].column_major_step;
      if (++index[k] < dimensions_[k].extent) break;
      target -= index[k] * dimensions_[k].row_major_step;
      column_major -= index[k] * dimensions_[k].column_major_step;
      index[k] = 0;
    }
  }
  block_begin_ = row_major * item_bytes_;
  block_ = std::move(block);
  return {};
}

}  // namespace tensorcast::formats::npy
