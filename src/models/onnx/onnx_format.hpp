// ONNX models of conversion nodes. https://github.com/onnx/onnx/blob/main/docs/IR.md
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "models/model_format.hpp"

namespace tensorcast::models {

extern const ModelFormat onnx_format;

}  // namespace tensorcast::models
