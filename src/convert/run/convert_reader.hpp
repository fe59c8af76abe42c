// SPDX-License-Identifier: Apache-2.0
// Converts tensors that a reader has, which may be in several files, to one file.
#pragma once

#include "quantized/layout/open_input.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// As convert_file(), of `input` instead of `request.input`, which is for messages. `input.file` may be null.
[[nodiscard]] Result<ConvertOutcome> convert_reader(const ConvertRequest& request, OpenedInput& input);

}  // namespace tensorcast::file_conversion
