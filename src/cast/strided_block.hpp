// SPDX-License-Identifier: Apache-2.0
// Blocks of arrays of any strides: copied, packed, converted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cast/strided_array.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Copies elements that are so many bytes apart.
void copy_run(const std::byte* src, std::int64_t src_stride, std::byte* dst, std::int64_t dst_stride, std::size_t count,
              std::size_t item_bytes, bool swapped);

// The functions for types of one width.
struct Packing {
  void (*pack)(const std::byte* codes, std::byte* packed, std::size_t count);
  void (*unpack)(const std::byte* packed, std::byte* codes, std::size_t count);
};

// Precondition: `dtype` has fewer than 8 bits.
const Packing& packing_of(DType dtype);

// Copies `count` bits from bit `from` of `src` to bit `to` of `dst`, low bits first, and changes no others: other
// threads may write those at the same time, by this function. The arrays are disjoint.
void copy_bits(const std::byte* src, std::size_t from, std::byte* dst, std::size_t to, std::size_t count);

// Writes zeros to the bits of the last byte that no element has.
void clear_padding(DType dtype, std::byte* packed, std::size_t count);

// `first`: the place of the block's first element in its tensor.
Result<void> cast_block(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count,
                        std::uint64_t first, const Work& work);

// Gather -> pack -> convert -> unpack -> scatter, each step on a block in the cache; unnecessary steps are left out.
class Block {
 public:
  // `codes`: results under 8 bits are wanted one a byte.
  Block(const StridedArray& src, const StridedArray& dst, std::size_t count, bool codes)
      : src_(src),
        dst_(dst),
        gathered_(src.is_packed() ? 0 : count * src.item_bytes()),
        packed_(src.one_per_byte ? count : 0),
        converted_(count * dst.item_bytes()),
        unpacked_(codes ? count : 0) {}

  [[nodiscard]] std::byte* gathered() { return gathered_.data(); }

  [[nodiscard]] std::byte* converted() { return converted_.data(); }

  // Converts `count` elements, which have bytes of their own or are packed as in the source, to dense ones.
  Result<void> convert(const std::byte* src, std::byte* dst, std::size_t count, std::uint64_t first, const Work& work) {
    if (src_.one_per_byte) src = packed_source(src, count);
    return cast_block(src_.dtype, src, dst_.dtype, dst, count, first, work);
  }

  // Codes of a byte each as they are packed.
  [[nodiscard]] const std::byte* packed_source(const std::byte* codes, std::size_t count) {
    packing_of(src_.dtype).pack(codes, packed_.data(), count);
    return packed_.data();
  }

  // The first `count` elements of converted(), each in bytes of its own if `codes` was set.
  [[nodiscard]] const std::byte* items(std::size_t count) {
    if (unpacked_.empty()) return converted_.data();
    packing_of(dst_.dtype).unpack(converted_.data(), unpacked_.data(), count);
    return unpacked_.data();
  }

 private:
  const StridedArray& src_;
  const StridedArray& dst_;
  std::vector<std::byte> gathered_, packed_, converted_, unpacked_;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
