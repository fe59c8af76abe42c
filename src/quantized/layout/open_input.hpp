// SPDX-License-Identifier: Apache-2.0
// Opens a file with the reader of its format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "io/input_file.hpp"
#include "quantized/layout/config_text.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::file_conversion {

struct OpenedInput {
  std::unique_ptr<io::InputFile> file;  // the reader refers to it
  const formats::Format* format = nullptr;
  std::unique_ptr<formats::Reader> reader;
  std::string claim = {};  // what other files say about the quantization (quantization_claim.hpp)
  std::vector<quantized::ConfigText> configs = {};  // the texts of those files, and of metadata
};

// Opens the file `path`, or `source`, whose name `path` then is. If `format_name` is empty: raw if a layout is given,
// else detected by content and extension. Errors: io, parse, unsupported, invalid_argument (no such format), all with
// Error::file.
[[nodiscard]] Result<OpenedInput> open_input(const std::string& path, const std::string& format_name,
                                             const formats::ReadOptions& options,
                                             const std::shared_ptr<ByteSource>& source = nullptr);

// The same, with `configs`, if the format's tensors have names. Nothing is beside a source.
[[nodiscard]] Result<OpenedInput> open_model_file(const std::string& path, const std::string& format_name = "",
                                                  const formats::ReadOptions& options = {},
                                                  const std::shared_ptr<ByteSource>& source = nullptr);

// The quantized layers that `configs` and the reader's tensors tell of; none if these have no names.
[[nodiscard]] quantized::FoundLayers layers_of(const OpenedInput& input);

// Lists the tensors of an opened file.
[[nodiscard]] FileSummary summary_of(const OpenedInput& input);

// Returns how a tensor is read: one of a type without DType as rows of bytes, of uint8.
[[nodiscard]] formats::TensorInfo readable(const formats::TensorInfo& stored);

// Errors: invalid_argument.
[[nodiscard]] Result<const formats::Format*> format_by_name(const std::string& name);
// The format `name`, to write `path`. Errors: invalid_argument; unsupported if the format is only read.
[[nodiscard]] Result<const formats::Format*> output_format(const std::string& path, const std::string& name);

}  // namespace tensorcast::file_conversion
