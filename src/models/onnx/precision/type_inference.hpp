// The element types of all values of a model, from the schemas of its operators; shapes are not needed.
#pragma once

#include "models/onnx/precision/model_ir.hpp"

namespace tensorcast::models::onnx::precision {

// Sets Value::type of all values whose type follows from what defines them; others keep the type that the model
// declares, or stay unknown. The types inside a function are those of its calls if all calls agree, and unknown
// otherwise.
void infer_types(Model& model);

}  // namespace tensorcast::models::onnx::precision
