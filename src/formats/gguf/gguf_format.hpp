// GGUF, the file format of llama.cpp.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format gguf_format;

}  // namespace tensorcast::formats
