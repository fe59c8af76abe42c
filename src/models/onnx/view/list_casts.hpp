// SPDX-License-Identifier: Apache-2.0
// Lists the Casts of a model, and why each is there.
#pragma once

#include <vector>

#include "models/onnx/ir/model_ir.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {

// With the file, lists also the QuantizeLinear nodes that give back the codes of a DequantizeLinear. The types of
// `model` must be inferred.
[[nodiscard]] std::vector<::tensorcast::onnx::CastInfo> list_casts(const Model& model,
                                                                   const io::InputFile* file = nullptr);

}  // namespace tensorcast::models::onnx
