// What a model that is run must have besides what every model must: tensors alone, values of the types that they say.
#pragma once

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

// Also gives attributes that name no type the type of their value. `model` was read whole. Errors: parse; unsupported:
// sparse initializers, inputs or outputs that are no tensors, more nodes than the file's size explains.
[[nodiscard]] Result<void> check_runnable(Model& model, const io::InputFile& file);

}  // namespace tensorcast::models::onnx
