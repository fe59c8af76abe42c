// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>
#include "block/format/description.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// `length` items of `from` bits each, as codes of `to` bits.
Result<std::int64_t> codes_in(std::int64_t length, std::int64_t from, std::int64_t to) {
  if (length < 0 || length > largest / from) return invalid(formatted("a dimension of {}", length));
  return length * from / to;
}

// gpt-oss gives the codes of one block a dimension of their own, which its scales lack.
Result<void> join_blocks(std::vector<std::int64_t>& dims, const Shape& scales) {
  if (scales.size() < 2 || dims.size() != scales.size() + 1) return {};
  const auto [scale, code] = std::mismatch(scales.begin(), scales.end(), dims.begin());
  if (scale != scales.end()) {
    return invalid(
        formatted("dimension {} of the codes is {}, of the scales {}", scale - scales.begin(), *code, *scale));
  }
  const std::int64_t length = dims.back();
  dims.pop_back();
  if (length < 0 || dims.back() < 0 || (length > 0 && dims.back() > largest / length)) {
    return invalid(formatted("a dimension of {}", length));
  }
  dims.back() *= length;
  return {};
}

Result<Shape> find_shape(const BlockCoding& coding, DType dtype, const Shape& codes, const Shape& scales) {
  TRY(block::check_coding(coding));
  if (bit_width(dtype) == 0) return invalid("codes of no numeric type");
  std::vector<std::int64_t> dims(codes.begin(), codes.end());
  if (coding.transposed) TRY(join_blocks(dims, scales));
  if (dims.size() < (block::has_whole_matrices(coding) ? 2u : 1u))
    return invalid(formatted("codes of {} dimensions", dims.size()));
  // Codes of less than a byte in a type of their own are one an element.
  const std::int64_t item = bit_width(dtype) < 8 ? coding.bits : bit_width(dtype);
  const std::size_t down = dims.size() - 2;
  const auto widen = [](std::int64_t& length, std::int64_t from, std::int64_t to) -> Result<void> {
    length = TRY(codes_in(length, from, to));
    return {};
  };
  Result<void> done;
  if (coding.packing == BlockPacking::gguf) {
    const GgufBlockSize size = block_size(coding.gguf);
    if (size.bytes == 0 || dims.back() % size.bytes != 0) {
      return invalid(formatted("rows of {} bytes are no whole blocks of {}", dims.back(), size.bytes));
    }
    done = widen(dims.back(), size.elements, size.bytes);
  } else if (coding.packing == BlockPacking::words_down) {
    done = widen(dims[down], item, coding.bits);
  } else if (coding.packing == BlockPacking::row_pairs) {
    done = widen(dims[down], 2, 1);
  } else {
    done = widen(dims.back(), item, coding.bits);
  }
  TRY(std::move(done));
  if (block::is_transposed(coding)) std::swap(dims[down], dims.back());
  return Shape(dims);
}

}  // namespace

Result<Shape> weight_shape(const BlockCoding& coding, DType codes_dtype, const Shape& codes_shape,
                           const Shape& scales_shape) {
  return guarded([&] { return find_shape(coding, codes_dtype, codes_shape, scales_shape); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
