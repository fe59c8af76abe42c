// SPDX-License-Identifier: Apache-2.0
// Whether the fields of a description of blocks make sense, and their arrays have the shapes that they say.
#pragma once
#include <cstddef>
#include <initializer_list>

#include "tensorcast/block.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::block {

// Errors: invalid_argument: an enumerator or a number that does not exist, or fields that exclude each other.
[[nodiscard]] Result<void> check_coding(const BlockCoding& coding);

// Whether the codes lie as [..., columns, rows] of the weight.
[[nodiscard]] constexpr bool is_transposed(const BlockCoding& coding) noexcept {
  return coding.transposed || coding.packing == BlockPacking::words_down || coding.packing == BlockPacking::awq;
}

// Whether the bytes of a row are among those of its whole matrix, and not one after the other.
[[nodiscard]] constexpr bool has_whole_matrices(const BlockCoding& coding) noexcept {
  return is_transposed(coding) || coding.packing == BlockPacking::row_pairs;
}

// Errors: invalid_argument: the bytes are not those of the type and the shape. `what` names the array.
[[nodiscard]] Result<void> check_bytes(const TensorView& view, const char* what);

// Reports whether `shape` has these dimensions, apart from those of 1, where dimensions may be joined or split but not
// change places: [2, 3], [6] and [2, 3, 1] are 2 x 3, [3, 2] is not.
[[nodiscard]] bool has_dimensions(const Shape& shape, std::initializer_list<std::size_t> dimensions);

// Reports whether `shape` is one dimension, or some first ones of it are `rows` rows.
[[nodiscard]] bool has_rows(const Shape& shape, std::size_t rows);

}  // namespace tensorcast::block
