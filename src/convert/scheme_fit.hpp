// Measures what quantization to schemes would do to a tensor.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "formats/format.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// Fills `schemes` and `exponents` of `stats`, whose other fields are those of the tensor. Errors: those of reading;
// invalid_argument (no such scheme or recipe). Memory: a window of elements, and some blocks for each thread.
[[nodiscard]] Result<void> fit_schemes(formats::Reader& reader, std::size_t index,
                                       std::span<const SchemeCandidate> schemes, const Execution& execution,
                                       TensorStats& stats);

}  // namespace tensorcast::file_conversion
