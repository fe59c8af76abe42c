// SPDX-License-Identifier: Apache-2.0
// Converts tensors that a reader has, which may be in several files, to one file.
#pragma once

#include <functional>
#include <string>

#include "quantized/layout/open_input.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// A conversion whose output is looked at, and does not appear under its name.
struct Derivation {
  std::string version;                                             // of the program that its metadata name
  std::function<Result<void>(const std::string& path)> look = {};  // at the complete file
};

// Returns the format that the request's output gets. Errors: as convert_file().
[[nodiscard]] Result<const formats::Format*> output_format_of(const ConvertRequest& request);
// As convert_file(), of `input` instead of `request.input`, which is for messages, to the request's format.
// `input.file` may be null.
// `derivation`: null: the output is written.
[[nodiscard]] Result<ConvertOutcome> convert_reader(const ConvertRequest& request, const OpenedInput& input,
                                                    const formats::Format& format,
                                                    const Derivation* derivation = nullptr);
// As convert_file(), to a file without a name.
[[nodiscard]] Result<ConvertOutcome> derive_file(const ConvertRequest& request, const Derivation& derivation);

}  // namespace tensorcast::file_conversion
