// SPDX-License-Identifier: Apache-2.0
// The formats; each has a folder.
#pragma once

#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format gguf_format;
extern const Format npy_format;
extern const Format npz_format;
extern const Format pytorch_format;
extern const Format raw_format;
extern const Format safetensors_format;
extern const Format tensor_proto_format;

}  // namespace tensorcast::formats
