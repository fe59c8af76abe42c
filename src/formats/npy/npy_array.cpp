// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy_array.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/bytes/buffer_bytes.hpp"
#include "formats/npy/npy_text.hpp"
#include "io/memory_budget.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::formats::npy {
namespace {

StridedLayout layout_of(const Header& header, const ElementLayout& element) {
  StridedLayout layout{.shape = header.shape, .item_bytes = element.item_bytes, .begin = header.data_offset};
  if (element.big_endian && element.text == Text::none) layout.word_bytes = element.item_bytes;
  layout.strides.resize(header.shape.size());
  std::int64_t step = 1;
  for (std::size_t i = 0; i < header.shape.size(); ++i) {
    const std::size_t axis = header.fortran_order ? i : header.shape.size() - 1 - i;
    layout.strides[axis] = step;
    // Where a dimension is 0, the others may have a product beyond any integer; strides mean nothing then.
    if (__builtin_mul_overflow(step, header.shape[axis], &step)) step = 0;
  }
  return layout;
}

}  // namespace

Array::Array(StreamSource& source, const Header& header, ElementLayout layout, TensorInfo info)
    : layout_(layout), info_(std::move(info)), items_(source, layout_of(header, layout)) {}

Result<Array> Array::open(StreamSource& source, DType from) {
  Header header = TRY(read_header(source));
  const ElementLayout layout = TRY(parse_descr(header.descr, from));
  const Result<std::size_t> count = element_count(header.shape);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, layout.item_bytes, &bytes)) {
    return parse_error("the shape has more elements than any file can hold");
  }
  const std::uint64_t there = source.size() - header.data_offset;
  if (there < bytes) {
    return parse_error(fmt::format("the shape needs {} bytes, but only {} follow the header", bytes, there));
  }
  if (there > bytes) return parse_error(fmt::format("{} bytes follow the array's last", there - bytes));
  TensorInfo info{.name = {}, .dtype = layout.dtype, .shape = header.shape, .count = *count};
  info.bytes = storage_bytes(layout.dtype, *count);
  if (layout.text != Text::none) {
    info.bytes = bytes;
    constexpr std::uint64_t strings_at_once = 8;  // of a block
    io::MemoryBudget budget(source.stored_bytes());
    TRY(budget.take(std::min<std::uint64_t>(*count, strings_at_once) * layout.item_bytes));
  }
  return Array(source, header, layout, std::move(info));
}

Result<void> Array::read(std::uint64_t offset, std::span<std::byte> out) {
  if (bit_width(layout_.dtype) < 8) return read_packed(offset, out);
  return items_.read(offset, out);
}

// Reads elements of one byte each and packs them, low bits first. Bits above the element's width are ignored.
Result<void> Array::read_packed(std::uint64_t offset, std::span<std::byte> out) {
  const auto bits = static_cast<unsigned>(bit_width(layout_.dtype));
  const unsigned mask = (1u << bits) - 1;
  std::array<std::byte, buffer_bytes> items;
  if (offset != packed_end_) {
    next_element_ = offset / bits * 8 + offset % bits * 8 / bits;
    kept_ = 0;
    kept_bits_ = 0;
    if (const unsigned before = static_cast<unsigned>(offset % bits * 8 % bits); before != 0) {
      TRY(items_.read(next_element_++, std::span(items).first(1)));
      kept_ = (std::to_integer<unsigned>(items[0]) & mask) >> before;
      kept_bits_ = bits - before;
    }
  }
  packed_end_ = offset + out.size();
  while (!out.empty()) {
    const std::uint64_t wanted = std::min<std::uint64_t>((out.size() * 8 - kept_bits_ + bits - 1) / bits, items.size());
    const std::uint64_t count = std::min(wanted, info_.count - next_element_);
    if (count == 0) {  // the last bits of the storage
      out[0] = static_cast<std::byte>(kept_);
      break;
    }
    TRY(items_.read(next_element_, std::span(items).first(count)));
    next_element_ += count;
    std::size_t filled = 0;
    for (std::size_t i = 0; i < count; ++i) {
      kept_ |= (std::to_integer<unsigned>(items[i]) & mask) << kept_bits_;
      kept_bits_ += bits;
      if (kept_bits_ < 8) continue;
      out[filled++] = static_cast<std::byte>(kept_);
      kept_ >>= 8;
      kept_bits_ -= 8;
    }
    out = out.subspan(filled);
  }
  return {};
}

// Returns the bytes of one string. Reads many items at once.
Result<std::span<const std::byte>> Array::text_item(std::uint64_t index) {
  const std::uint64_t width = layout_.item_bytes;
  if (index == 0) batch_.clear();  // reads the file again
  if (index < batch_begin_ || index - batch_begin_ >= batch_.size() / width) {
    const std::uint64_t batch = std::clamp<std::uint64_t>(buffer_bytes / width, 1, info_.count - index);
    batch_.resize(batch * width);
    batch_begin_ = index;
    if (Result<void> got = items_.read(index * width, batch_); !got) {
      batch_.clear();
      return std::move(got).error();
    }
  }
  return std::span<const std::byte>(batch_).subspan((index - batch_begin_) * width, width);
}

Result<StringBuffer> Array::read_strings(std::uint64_t first, std::size_t block_bytes) {
  if (layout_.text == Text::none) return Error{.code = ErrorCode::internal, .message = "not an array of strings"};
  StringBuffer strings;
  strings.offsets.push_back(0);
  for (std::uint64_t index = first; index < info_.count; ++index) {
    const Result<std::span<const std::byte>> item = text_item(index);
    TRY(of_element(index, item ? decode_text(*item, layout_, strings.data) : item.error()));
    strings.offsets.push_back(static_cast<std::int64_t>(strings.data.size()));
    if (is_full_block(strings, block_bytes)) break;
  }
  return strings;
}

}  // namespace tensorcast::formats::npy
