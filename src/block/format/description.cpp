// SPDX-License-Identifier: Apache-2.0
#include "block/format/description.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "block/format/codings.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/try.hpp"
#include "kernels/gguf_low_bits.hpp"

namespace tensorcast::block {
namespace {

// Larger ones are no sums of a byte.
constexpr int largest_offset = 256;

bool is_offset(int number) { return number >= -largest_offset && number <= largest_offset; }

bool has_nibbles(BlockPacking packing) {
  return packing == BlockPacking::high_nibble_first || packing == BlockPacking::flat || packing == BlockPacking::awq ||
         packing == BlockPacking::row_pairs;
}

Result<void> check_enumerators(const BlockCoding& coding) {
  if (coding.packing > BlockPacking::gguf) {
    return invalid(formatted("`packing` is {}, which is no BlockPacking", static_cast<int>(coding.packing)));
  }
  if (coding.global > GlobalScale::divisor) {
    return invalid(formatted("`global` is {}, which is no GlobalScale", static_cast<int>(coding.global)));
  }
  if (coding.gguf > kernels::last_gguf_block) {
    return invalid(formatted("`gguf` is {}, which is no GgufBlock", static_cast<int>(coding.gguf)));
  }
  if ((coding.packing == BlockPacking::gguf) != (coding.gguf != GgufBlock::none)) {
    return invalid("the packing gguf and one of its formats belong together");
  }
  return {};
}

Result<void> check_element(const BlockCoding& coding) {
  if (coding.bits < 1 || coding.bits > 8) return invalid(formatted("`bits` is {}, expected 1 to 8", coding.bits));
  if (has_nibbles(coding.packing) && coding.bits != 4) {
    return invalid(formatted("`bits` is {}, but codes of this packing have 4", coding.bits));
  }
  if (is_integer(coding.element) || coding.element == DType::undefined) return {};
  if (family(coding.element) != Family::floating || bit_width(coding.element) > 8) {
    return invalid(formatted("`element` is {}, expected int8, uint8 or a floating-point type of 8 bits or fewer",
                             name(coding.element)));
  }
  if (bit_width(coding.element) != coding.bits) {
    return invalid(
        formatted("`bits` is {}, but {} has {}", coding.bits, name(coding.element), bit_width(coding.element)));
  }
  return {};
}

// The products of the last dimensions, without those of 1.
std::vector<std::size_t> sizes_of(const std::size_t* first, std::size_t count) {
  std::vector<std::size_t> sizes;
  std::size_t product = 1;
  for (std::size_t i = count; i-- > 0;) {
    if (first[i] == 1) continue;
    product *= first[i];
    sizes.push_back(product);
  }
  return sizes;
}

}  // namespace

Result<void> check_coding(const BlockCoding& coding) {
  TRY(check_enumerators(coding));
  const bool is_gguf = coding.gguf != GgufBlock::none;
  if (is_gguf) {
    const BlockCoding alone{.packing = BlockPacking::gguf, .gguf = coding.gguf};
    return coding == alone ? Result<void>() : invalid("blocks of GGUF have no other coding than their own");
  }
  if (coding.transposed && coding.packing == BlockPacking::flat) return invalid("flat codes cannot be transposed");
  TRY(check_element(coding));
  const BlockPacking zeros = coding.zeros;
  if (zeros != BlockPacking::stream && zeros != BlockPacking::words_down && zeros != BlockPacking::awq) {
    return invalid("`zeros` is a packing that zero points do not have", "use stream, words_down or awq");
  }
  if (zeros == BlockPacking::awq && coding.bits != 4) {
    return invalid(formatted("`bits` is {}, but zero points of this packing have 4", coding.bits));
  }
  if (!is_offset(coding.offset)) return invalid(formatted("`offset` is {}, expected -256 to 256", coding.offset));
  if (!is_offset(coding.zero_added)) {
    return invalid(formatted("`zero_added` is {}, expected -256 to 256", coding.zero_added));
  }
  if (coding.scale != DType::undefined && (family(coding.scale) != Family::floating || bit_width(coding.scale) != 8)) {
    return invalid(formatted("`scale` is {}, expected a floating-point type of 8 bits", name(coding.scale)));
  }
  if (!std::isfinite(coding.factor))
    return invalid(formatted("`factor` is {}, expected a finite number", coding.factor));
  return {};
}

Result<void> check_bytes(const TensorView& view, const char* what) {
  const std::size_t count = TRY(element_count(view.shape));
  const std::size_t bytes = storage_bytes(view.dtype, count);
  if (view.bytes.size() != bytes) {
    return invalid(formatted("{} have {} bytes, but {} elements of {} take {}", what, view.bytes.size(), count,
                             name(view.dtype), bytes));
  }
  if (view.bytes.data() == nullptr && bytes != 0) return invalid(formatted("{} are null", what));
  return {};
}

bool has_dimensions(const Shape& shape, std::initializer_list<std::size_t> dimensions) {
  std::vector<std::size_t> given;
  for (const std::int64_t length : shape) given.push_back(static_cast<std::size_t>(length));
  const std::vector<std::size_t> a = sizes_of(given.data(), given.size());
  const std::vector<std::size_t> b = sizes_of(dimensions.begin(), dimensions.size());
  // Sizes ascend. Joining dimensions leaves some out, splitting adds some.
  return std::includes(a.begin(), a.end(), b.begin(), b.end()) || std::includes(b.begin(), b.end(), a.begin(), a.end());
}

bool has_rows(const Shape& shape, std::size_t rows) {
  std::size_t product = 1, longer = 0;
  for (const std::int64_t length : shape) {
    if (product == rows && longer != 0) return true;
    product *= static_cast<std::size_t>(length);
    longer += length == 1 ? 0 : 1;
  }
  return product == rows || rows == 1 || longer < 2;
}

}  // namespace tensorcast::block
