// GGUF, the file format of llama.cpp.
#pragma once

#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format gguf_format;

}  // namespace tensorcast::formats
