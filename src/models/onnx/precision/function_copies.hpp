// SPDX-License-Identifier: Apache-2.0
// Functions that are called with several types: each signature gets a copy, so that the types inside are known.
#pragma once

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/precision/precision_plan.hpp"

namespace tensorcast::models::onnx {

// Infers the types of a model. A function that is called with several signatures, of which one has a type that
// `settings` convert, gets a copy for each but the first; Function::origin and Node::callee say so. Copies together are
// at most as large as the file: functions beyond that keep unknown types. Errors: as read_model().
[[nodiscard]] Result<void> separate_signatures(const io::InputFile& file, Model& model,
                                               const PrecisionPlan::Settings& settings);

}  // namespace tensorcast::models::onnx
