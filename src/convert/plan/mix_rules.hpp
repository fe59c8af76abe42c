// SPDX-License-Identifier: Apache-2.0
// Mixtures of GGUF: rules for each tensor, which come after those of the request.
#pragma once

#include "formats/format.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// The request with a rule for each type of its mixture; the request itself if it has none.
// Errors: invalid_argument (a mixture that does not exist, a type or scheme beside it), unsupported (files that are not
// GGUF, a model that mixtures cannot be for).
[[nodiscard]] Result<ConvertRequest> with_mix(const ConvertRequest& request, const formats::Reader& reader,
                                              const formats::Format& input, const formats::Format& output);

}  // namespace tensorcast::file_conversion
