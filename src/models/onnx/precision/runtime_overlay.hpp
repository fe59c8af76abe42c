// SPDX-License-Identifier: Apache-2.0
// Which operators a runtime lacks kernels for although ONNX allows the type.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/onnx/ir/model_ir.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {

// false: the runtime computes nothing in the type
[[nodiscard]] bool runtime_has_type(::tensorcast::onnx::Runtime runtime, DType dtype);

[[nodiscard]] bool runtime_has_kernel(::tensorcast::onnx::Runtime runtime, const Node& node, int since, DType dtype);

}  // namespace tensorcast::models::onnx
