// SPDX-License-Identifier: Apache-2.0
// The files of external data that a model names.
#pragma once

#include <set>
#include <string>

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/precision/tensor_conversion.hpp"

namespace tensorcast::models::onnx {

// Returns the locations as the file has them, unchecked. Errors: parse, io.
[[nodiscard]] Result<std::set<std::string>> external_locations(const io::InputFile& file, const Model& model);

// Checks that writing `output` would change none of the files that the model at `model` names. Errors:
// invalid_argument, io.
[[nodiscard]] Result<void> check_apart_from_data(const std::string& model, const std::set<std::string>& locations,
                                                 const std::string& output);

// Adds copies of the files, for a model in another folder. Errors: parse if a location leads elsewhere; io.
[[nodiscard]] Result<void> copy_external_files(const io::InputFile& file, const std::set<std::string>& locations,
                                               ExternalFiles& copies);

}  // namespace tensorcast::models::onnx
