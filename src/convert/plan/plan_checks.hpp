// SPDX-License-Identifier: Apache-2.0
// Whether a tensor can become what is planned for it.
#pragma once

#include "formats/format.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::file_conversion {

// Checks the options for the pair of types by converting no elements. Errors: as cast().
[[nodiscard]] Result<void> check_pair(DType from, DType to, const CastOptions& options);

// Checks that a format has the tensor's type. Errors: unsupported, naming the tensor.
[[nodiscard]] Result<void> check_holds(const formats::Format& output, const formats::Format& input,
                                       const formats::TensorInfo& tensor);

}  // namespace tensorcast::file_conversion
