// One ONNX TensorProto in a .pb, as onnx.save_tensor writes it and ONNX's own node tests ship them.
// https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format tensor_proto_format;

}  // namespace tensorcast::formats
