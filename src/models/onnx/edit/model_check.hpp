// SPDX-License-Identifier: Apache-2.0
// Finds what would keep a runtime from loading a model: types that do not fit, values used before they are made.
#pragma once

#include <string>
#include <vector>

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

struct Fault {
  std::string place;  // the node or value, without types: the same fault before and after a conversion has one place
  std::string text;
};

// Checks by the schemas of the standard operators, as far as types are known. Infers the types of `model`.
[[nodiscard]] std::vector<Fault> find_faults(Model& model);

// Refuses a new model with faults that the one it was made from does not have. Errors: internal, io.
[[nodiscard]] Result<void> check_new_model(const io::InputFile& old_file, const std::string& new_path);

}  // namespace tensorcast::models::onnx
