// Hugging Face safetensors: 8 bytes of header length, a JSON header, the tensors' bytes without gaps.
#pragma once

#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format safetensors_format;

}  // namespace tensorcast::formats
