// SPDX-License-Identifier: Apache-2.0
// Rows of a weight that was not quantized, in the order of a layer's codes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "dtype/try.hpp"
#include "formats/format.hpp"
#include "quantized/layer/layer.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::quantized {

// Reads elements of a weight from `first` on, in the weight's type, which has whole bytes.
using ReadNumbers = std::function<Result<void>(std::uint64_t first, std::span<std::byte> out)>;

// Reads those of a tensor of `reader`, which outlives it.
[[nodiscard]] inline ReadNumbers stored_numbers(formats::Reader& reader, std::size_t tensor) {
  return [&reader, tensor](std::uint64_t first, std::span<std::byte> out) {
    return reader.read(tensor, storage_bytes(reader.tensors()[tensor].dtype, first), out);
  };
}

class OriginalRows {
 public:
  // `columns`: of the codes. The weight has the shape of the layer.
  OriginalRows(DType dtype, const Layer& layer, std::uint64_t columns, ReadNumbers read)
      : item_(storage_bytes(dtype, 1)), columns_(columns), transposed_(layer.is_transposed()), read_(std::move(read)) {
    if (transposed_) matrix_rows_ = static_cast<std::uint64_t>(layer.shape.back());
  }

  // Rows of codes from `first` on, over all matrices. Memory: a matrix, if the codes are its transpose.
  [[nodiscard]] Result<void> read(std::uint64_t first, std::uint64_t count, std::vector<std::byte>& out) {
    const std::uint64_t row_bytes = columns_ * item_;
    out.resize(count * row_bytes);
    if (!transposed_) return read_(first * columns_, out);
    constexpr std::uint64_t most_together = 64;  // rows whose elements of one column are side by side
    for (std::uint64_t i = 0, together = 0; i < count; i += together) {
      const std::uint64_t matrix = (first + i) / matrix_rows_, row = (first + i) % matrix_rows_;
      together = std::min({count - i, matrix_rows_ - row, most_together});
      if (matrix != loaded_) {
        matrix_.resize(matrix_rows_ * row_bytes);
        TRY(read_(matrix * matrix_rows_ * columns_, matrix_));
        loaded_ = matrix;
      }
      for (std::uint64_t column = 0; column < columns_; ++column) {
        const std::byte* from = matrix_.data() + (column * matrix_rows_ + row) * item_;
        std::byte* to = out.data() + i * row_bytes + column * item_;
        for (std::uint64_t k = 0; k < together; ++k) std::memcpy(to + k * row_bytes, from + k * item_, item_);
      }
    }
    return {};
  }

 private:
  std::uint64_t item_, columns_;
  bool transposed_;
  ReadNumbers read_;
  std::uint64_t matrix_rows_ = 1;
  std::optional<std::uint64_t> loaded_;  // the matrix in matrix_
  std::vector<std::byte> matrix_;
};

}  // namespace tensorcast::quantized
