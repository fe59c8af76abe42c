// SPDX-License-Identifier: Apache-2.0
// Whether a tensor can become what is planned for it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "formats/format.hpp"
#include "quantized/layer/quantized_tensors.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::file_conversion {

// Checks the options for the pair of types by converting no elements. Errors: as cast().
[[nodiscard]] Result<void> check_pair(DType from, DType to, const CastOptions& options);

// Checks that a format has the tensor's type. Errors: unsupported, naming the tensor.
[[nodiscard]] Result<void> check_holds(const formats::Format& output, const formats::Format& input,
                                       const formats::TensorInfo& tensor);

// Returns a sentence about those of the `copied` tensors whose sizes, and those of their scales, are the ones of MXFP4
// or MXFP6; "": there are none. `parts`: of all tensors.
[[nodiscard]] std::string warning_of_mx_codes(std::span<const formats::TensorInfo> tensors,
                                              std::span<const QuantizedPart> parts,
                                              std::span<const std::size_t> copied);

}  // namespace tensorcast::file_conversion
