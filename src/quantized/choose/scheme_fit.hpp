// SPDX-License-Identifier: Apache-2.0
// Measures what quantization to schemes would do to a tensor.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "block/encode/weight_layout.hpp"
#include "formats/format.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// Fills `schemes` and `exponents` of `stats`, whose other fields are those of the tensor. `importance`: as
// QuantizeOptions. Errors: those of reading; invalid_argument (no such scheme or recipe). Memory: a window of elements,
// and some blocks for each thread.
[[nodiscard]] Result<void> fit_schemes(formats::Reader& reader, std::size_t index,
                                       std::span<const SchemeCandidate> schemes, std::span<const float> importance,
                                       const Execution& execution, TensorStats& stats);

struct FittedScheme {
  SchemeCandidate candidate;
  Result<block::SharedLayout> layout;  // an error: why the weight cannot be quantized so
};

// The same with layouts that are made already, for the type of the reader's tensor.
[[nodiscard]] Result<void> fit_layouts(formats::Reader& reader, std::size_t index, std::vector<FittedScheme> schemes,
                                       const Execution& execution, TensorStats& stats);

// Counts the numbers of a tensor: the fields of TensorStats but those of candidates. Errors: unsupported (texts,
// foreign types), those of reading.
[[nodiscard]] Result<TensorStats> count_numbers(formats::Reader& reader, std::size_t index, const Execution& execution);

}  // namespace tensorcast::file_conversion
