// SPDX-License-Identifier: Apache-2.0
// Random calls of cast_strided(), compared with cast() of the same elements in C order. For tests and for the fuzzer.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "dtype/choices_testing.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/strided.hpp"

namespace tensorcast::strided_testing {

using testing::Choices;

// Where the elements of an array are: a StridedView without memory.
struct Layout {
  DType dtype = DType::undefined;
  Shape shape = {};
  Shape strides = {};  // empty: C order
  bool one_per_byte = false;
  bool swapped = false;
  std::int64_t lowest = 0, end = 0;  // bytes from the element of indices 0

  [[nodiscard]] bool is_packed() const { return bit_width(dtype) < 8 && !one_per_byte; }
  [[nodiscard]] std::int64_t item() const { return std::max(1, bit_width(dtype) / 8); }
};

inline std::size_t count_of(const Shape& shape) {
  return static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, [](auto a, auto b) { return a * b; }));
}

inline Shape shape_from(Choices& choices) {
  if (choices.one_in(24)) {  // several blocks, and tiles
    return {static_cast<std::int64_t>(100 + choices.below(160)), static_cast<std::int64_t>(100 + choices.below(160))};
  }
  std::vector<std::int64_t> shape(choices.below(5));
  for (std::int64_t& length : shape) length = static_cast<std::int64_t>(choices.one_in(16) ? 0 : 1 + choices.below(9));
  return shape;
}

// Sets strides of any order, sign and distance; of sources also 0.
inline void choose_strides(Choices& choices, bool may_repeat, Layout& layout) {
  const std::size_t rank = layout.shape.size();
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = rank; i > 1; --i) std::swap(order[i - 1], order[choices.below(i)]);
  std::vector<std::int64_t> strides(rank);
  std::int64_t step = layout.item();
  for (const std::size_t axis : order) {
    if (choices.one_in(4)) step += static_cast<std::int64_t>(choices.below(20));
    strides[axis] = choices.one_in(3) ? -step : step;
    if (may_repeat && choices.one_in(6)) strides[axis] = 0;
    step *= std::max<std::int64_t>(1, layout.shape[axis]);
  }
  layout.strides = strides;
}

inline Layout layout_from(Choices& choices, DType dtype, const Shape& shape, bool may_repeat) {
  Layout layout{.dtype = dtype, .shape = shape};
  layout.one_per_byte = bit_width(dtype) < 8 && choices.below(2) == 1;
  layout.swapped = choices.one_in(4);
  if (!layout.is_packed() && choices.below(4) != 0) choose_strides(choices, may_repeat, layout);
  if (layout.strides.empty()) {
    const std::size_t count = count_of(shape);
    layout.end = static_cast<std::int64_t>(layout.one_per_byte ? count : storage_bytes(dtype, count));
    return layout;
  }
  if (count_of(shape) == 0) return layout;
  layout.end = layout.item();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const std::int64_t reach = layout.strides[axis] * (shape[axis] - 1);
    (reach < 0 ? layout.lowest : layout.end) += reach;
  }
  return layout;
}

// Calls visit(index in C order, byte offset from the element of indices 0). Not of packed arrays.
template <class Visit>
void for_each_element(const Layout& layout, Visit&& visit) {
  const std::size_t count = count_of(layout.shape), rank = layout.shape.size();
  for (std::size_t element = 0; element < count; ++element) {
    std::int64_t offset = 0, step = layout.item();
    std::size_t left = element;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto length = static_cast<std::size_t>(layout.shape[axis]);
      offset += static_cast<std::int64_t>(left % length) * (layout.strides.empty() ? step : layout.strides[axis]);
      step *= layout.shape[axis];
      left /= length;
    }
    visit(element, offset);
  }
}

// Element `index` of dense ones: its bytes, or its code in one byte.
inline std::uint64_t element_of(DType dtype, const std::byte* dense, std::size_t index) {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  std::uint64_t value = 0;
  if (bits >= 8) {
    std::memcpy(&value, dense + index * (bits / 8), bits / 8);
    return value;
  }
  for (std::size_t i = 0; i < bits; ++i) {
    const std::size_t bit = index * bits + i;
    value |= static_cast<std::uint64_t>(std::to_integer<unsigned>(dense[bit / 8]) >> (bit % 8) & 1u) << i;
  }
  return value;
}

inline std::uint64_t swapped_bytes(std::uint64_t value, std::int64_t bytes) {
  std::uint64_t result = 0;
  for (std::int64_t i = 0; i < bytes; ++i) result |= (value >> (8 * i) & 0xFF) << (8 * (bytes - 1 - i));
  return result;
}

// Writes dense elements where the layout has them. `high`: what the unused bits of codes of a byte each are.
inline void scatter(const Layout& layout, const std::byte* dense, std::byte* origin, std::uint64_t high) {
  if (layout.is_packed()) {
    std::copy_n(dense, layout.end, origin);
    return;
  }
  const std::int64_t item = layout.item();
  for_each_element(layout, [&](std::size_t index, std::int64_t offset) {
    std::uint64_t value = element_of(layout.dtype, dense, index);
    if (layout.one_per_byte) value |= high << bit_width(layout.dtype);
    if (layout.swapped) value = swapped_bytes(value, item);
    std::memcpy(origin + offset, &value, static_cast<std::size_t>(item));
  });
}

// cast_strided(), or what wraps it.
using Call = Result<void> (*)(const StridedView&, const MutableStridedView&, const CastOptions&, const Execution&);

struct Request {
  Layout src, dst;
  CastOptions options = {};
  Execution execution = {};
};

inline Request request_from(Choices& choices) {
  const DType from = choices.dtype(), to = choices.dtype();
  const Shape shape = shape_from(choices);
  Request request{.src = layout_from(choices, from, shape, true), .dst = layout_from(choices, to, shape, false)};
  request.options.out_of_range = static_cast<OutOfRange>(choices.below(8) < 5 ? 0 : choices.below(4));
  if (choices.one_in(8)) request.options.invalid = Invalid::error;
  if (choices.one_in(8)) request.options.scale = 0.5;
  request.execution.threads = static_cast<int>(choices.below(4));
  return request;
}

inline std::string describe(const Request& request) {
  const auto side = [](const Layout& layout) {
    std::string text(name(layout.dtype));
    text += layout.one_per_byte ? " one_per_byte" : "";
    text += layout.swapped ? " swapped" : "";
    text += layout.strides.empty() ? " dense" : " strides";
    for (const std::int64_t stride : layout.strides) text += " " + std::to_string(stride);
    return text;
  };
  std::string text = side(request.src) + " -> " + side(request.dst) + ", shape";
  for (const std::int64_t length : request.src.shape) text += " " + std::to_string(length);
  return text;
}

// Runs one request in buffers of exactly its size, and reports what is wrong: "" is nothing.
inline std::string check(std::span<const std::uint8_t> bytes, Call call) {
  Choices choices(bytes);
  const Request request = request_from(choices);
  const Layout &src = request.src, &dst = request.dst;
  const std::size_t count = count_of(src.shape);
  // A broadcast element has one value: all that are at one place get the last one's.
  std::vector<std::byte> elements(storage_bytes(src.dtype, count));
  choices.fill(elements);
  const auto src_bytes = static_cast<std::size_t>(src.end - src.lowest);
  const auto dst_bytes = static_cast<std::size_t>(dst.end - dst.lowest);
  const std::unique_ptr<std::byte[]> from(new std::byte[src_bytes]), to(new std::byte[dst_bytes]);
  choices.fill({from.get(), src_bytes});
  choices.fill({to.get(), dst_bytes});
  const std::vector<std::byte> before(to.get(), to.get() + dst_bytes);
  scatter(src, elements.data(), from.get() - src.lowest, choices.below(256));

  const auto run = [&](const Shape& from_strides) {
    return call({src.dtype, src.shape, from_strides, from.get() - src.lowest, src.one_per_byte, src.swapped},
                {dst.dtype, dst.shape, dst.strides, to.get() - dst.lowest, dst.one_per_byte, dst.swapped},
                request.options, request.execution);
  };
  if (src.is_packed() && !src.shape.empty() && choices.one_in(8)) {  // bytes in C order, as if an element had one
    std::vector<std::int64_t> strides(src.shape.size(), 1);
    for (std::size_t axis = strides.size() - 1; axis-- > 0;) strides[axis] = strides[axis + 1] * src.shape[axis + 1];
    if (run(strides)) return describe(request) + ": strides of packed elements are not refused";
  }

  // The elements as they now are, in C order: what the dense conversion gets.
  std::vector<std::byte> dense(elements.size());
  if (src.is_packed()) {
    std::copy_n(from.get(), src_bytes, dense.begin());
  } else {
    std::vector<std::uint64_t> values(count);
    for_each_element(src, [&](std::size_t index, std::int64_t offset) {
      std::memcpy(&values[index], from.get() - src.lowest + offset, static_cast<std::size_t>(src.item()));
      if (src.swapped) values[index] = swapped_bytes(values[index], src.item());
    });
    const auto bits = static_cast<std::size_t>(bit_width(src.dtype));
    for (std::size_t index = 0; index < count; ++index) {
      for (std::size_t i = 0; i < bits; ++i) {
        const std::size_t bit = index * bits + i;
        dense[bit / 8] |= static_cast<std::byte>((values[index] >> i & 1) << (bit % 8));
      }
    }
  }
  std::vector<std::byte> expected(storage_bytes(dst.dtype, count));
  const Shape flat = {static_cast<std::int64_t>(count)};
  const Result<void> right = cast({src.dtype, flat, dense}, {dst.dtype, flat, expected}, request.options);
  const Result<void> done = run(src.strides);
  if (right.ok() != done.ok()) return describe(request) + (done ? ": not refused" : ": " + done.error().describe());
  if (!right) {
    if (right.error().code != done.error().code || right.error().element != done.error().element) {
      return describe(request) + ": " + done.error().describe() + ", not " + right.error().describe();
    }
    return {};
  }
  std::vector<std::byte> wanted = before;
  scatter(dst, expected.data(), wanted.data() - dst.lowest, 0);
  if (!std::equal(wanted.begin(), wanted.end(), to.get())) return describe(request) + ": other bytes";
  return {};
}

}  // namespace tensorcast::strided_testing
