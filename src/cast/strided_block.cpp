// SPDX-License-Identifier: Apache-2.0
#include "cast/strided_block.hpp"

#include <algorithm>
#include <cstring>

#include "cast/tiles.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

template <class Item, bool swapped>
void copy_items(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride,
                std::size_t count) {
  const auto copy = [&](const std::byte* from, std::byte* to) {
    Item item;
    std::memcpy(&item, from, sizeof item);
    if constexpr (swapped) item = swap_bytes(item);
    std::memcpy(to, &item, sizeof item);
  };
  constexpr auto dense = static_cast<std::int64_t>(sizeof(Item));
  if (src_stride == dense && dst_stride == dense) {  // a loop that the compiler vectorizes
    for (std::size_t i = 0; i < count; ++i) copy(src + i * sizeof(Item), dst + i * sizeof(Item));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    copy(src, dst);
    src += src_stride;
    dst += dst_stride;
  }
}

template <class Item>
void copy_items(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride,
                std::size_t count, bool swapped) {
  if (swapped) return copy_items<Item, true>(src, src_stride, dst, dst_stride, count);
  copy_items<Item, false>(src, src_stride, dst, dst_stride, count);
}

// Packs elements of one byte each, low bits first. `unit` elements are whole bytes.
template <unsigned bits>
void pack(const std::byte* codes, std::byte* packed, std::size_t count) {
  constexpr std::size_t unit = bits == 6 ? 4 : 8 / bits;
  constexpr std::size_t unit_bytes = unit * bits / 8;
  constexpr unsigned mask = (1u << bits) - 1;
  for (std::size_t first = 0; first < count; first += unit) {
    unsigned together = 0;
    const std::size_t length = std::min(unit, count - first);
    for (std::size_t j = 0; j < length; ++j)
      together |= (std::to_integer<unsigned>(codes[first + j]) & mask) << (bits * j);
    for (std::size_t j = 0; j < (length * bits + 7) / 8; ++j) packed[j] = static_cast<std::byte>(together >> (8 * j));
    packed += unit_bytes;
  }
}

// Unpacks to one byte each, with zero high bits like ml_dtypes.
template <unsigned bits>
void unpack(const std::byte* packed, std::byte* codes, std::size_t count) {
  constexpr std::size_t unit = bits == 6 ? 4 : 8 / bits;
  constexpr std::size_t unit_bytes = unit * bits / 8;
  constexpr unsigned mask = (1u << bits) - 1;
  for (std::size_t first = 0; first < count; first += unit) {
    unsigned together = 0;
    const std::size_t length = std::min(unit, count - first);
    for (std::size_t j = 0; j < (length * bits + 7) / 8; ++j)
      together |= std::to_integer<unsigned>(packed[j]) << (8 * j);
    for (std::size_t j = 0; j < length; ++j) codes[first + j] = static_cast<std::byte>((together >> (bits * j)) & mask);
    packed += unit_bytes;
  }
}

template <unsigned bits>
constexpr Packing packing = {pack<bits>, unpack<bits>};

}  // namespace

void copy_run(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride, std::size_t count,
              std::size_t item_bytes, bool swapped) {
  const auto item = static_cast<std::int64_t>(item_bytes);
  if (src_stride == item && dst_stride == item && !swapped) {
    std::memcpy(dst, src, count * item_bytes);
    return;
  }
  with_item(item_bytes, [&](auto one) { copy_items<decltype(one)>(src, src_stride, dst, dst_stride, count, swapped); });
}

// Precondition: `dtype` has fewer than 8 bits.
const Packing& packing_of(DType dtype) {
  const int bits = bit_width(dtype);
  return bits == 2 ? packing<2> : bits == 4 ? packing<4> : packing<6>;
}

void copy_bits(const std::byte* src, std::size_t from, std::byte* dst, std::size_t to, std::size_t count) {
  const auto byte_at = [src](std::size_t bit) { return std::to_integer<unsigned>(src[bit / 8]); };
  // The first `bits` of those that are left, all of one byte of the target.
  const auto merge = [&](std::size_t bits) {
    if (bits == 0) return;
    unsigned value = byte_at(from) >> from % 8;
    if (from % 8 + bits > 8) value |= byte_at(from + 8) << (8 - from % 8);
    const unsigned ones = (1u << bits) - 1, place = ones << to % 8, moved = (value & ones) << to % 8;
    auto* const at = reinterpret_cast<std::uint8_t*>(dst + to / 8);
    std::uint8_t before = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &before, static_cast<std::uint8_t>((before & ~place) | moved), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    from += bits;
    to += bits;
    count -= bits;
  };
  merge(std::min(count, (0 - to) % 8));
  const std::size_t shift = from % 8, whole = count / 8;
  if (shift == 0) {
    std::memcpy(dst + to / 8, src + from / 8, whole);
  } else {
    const std::byte* const read = src + from / 8;
    std::byte* const write = dst + to / 8;
    std::size_t i = 0;
    for (; i + 8 <= whole; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, read + i, sizeof word);
      word = word >> shift | std::to_integer<std::uint64_t>(read[i + 8]) << (64 - shift);
      std::memcpy(write + i, &word, sizeof word);
    }
    for (; i < whole; ++i) write[i] = read[i] >> shift | read[i + 1] << (8 - shift);
  }
  from += whole * 8;
  to += whole * 8;
  count -= whole * 8;
  merge(count);
}

void clear_padding(DType dtype, std::byte* packed, std::size_t count) {
  const std::size_t bits = count % 8 * static_cast<std::size_t>(bit_width(dtype)) % 8;
  if (bits != 0) packed[storage_bytes(dtype, count) - 1] &= static_cast<std::byte>((1u << bits) - 1);
}

Result<void> cast_block(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count,
                        std::uint64_t first, const Work& work) {
  const std::int64_t shape[1] = {static_cast<std::int64_t>(count)};
  const TensorView source{from, shape, {src, storage_bytes(from, count)}};
  const MutableTensorView target{to, shape, {dst, storage_bytes(to, count)}};
  Execution execution = work.execution;
  execution.first_element += first;
  return work.report != nullptr ? cast(source, target, work.options, *work.report, execution)
                                : cast(source, target, work.options, execution);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
