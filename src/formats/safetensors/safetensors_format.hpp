// Hugging Face safetensors: 8 bytes of header length, a JSON header, the tensors' bytes without gaps.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format safetensors_format;

}  // namespace tensorcast::formats
