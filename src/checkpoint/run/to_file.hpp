// SPDX-License-Identifier: Apache-2.0
// Converts a checkpoint to one file, if the output's name is that of a file.
#pragma once

#include "convert/run/convert_reader.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::checkpoint {

// Reports whether the output of a checkpoint's conversion is a file: its name has the extension of a format, or
// `output_format` names another than safetensors. An existing folder and a name that ends in / are folders.
[[nodiscard]] bool is_file_output(const ConvertRequest& request);

// Writes one tensor to a file of one array, or with `single_file` the tensors of one model to a safetensors file.
// Errors: those of convert_folder(); unsupported if the file cannot hold what is chosen.
// `derivation`: null: the file is written.
[[nodiscard]] Result<ConvertOutcome> convert_to_file(const ConvertRequest& request,
                                                     const file_conversion::Derivation* derivation = nullptr);

}  // namespace tensorcast::checkpoint
