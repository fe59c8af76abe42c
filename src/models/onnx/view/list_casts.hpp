// Lists the Casts of a model, and why each is there.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "models/onnx/ir/model_ir.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {

// The types of `model` must be inferred.
[[nodiscard]] std::vector<::tensorcast::onnx::CastInfo> list_casts(const Model& model);

}  // namespace tensorcast::models::onnx
