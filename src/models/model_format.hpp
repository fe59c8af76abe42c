// SPDX-License-Identifier: Apache-2.0
// The interface of a model format. Each has one folder and one row in model_list.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensorcast/model.hpp"

namespace tensorcast::io {
class InputFile;  // io/input_file.hpp
}  // namespace tensorcast::io

namespace tensorcast::models {

struct ModelFormat {
  std::string_view name;                         // the value of LoadModelOptions::format
  std::span<const std::string_view> extensions;  // with the dot, lower case
  // Reports whether a file's first bytes may be of this format; used if the extension does not decide.
  bool (*recognizes)(std::span<const std::byte> first_bytes);
  Result<Graph> (*load)(const std::string& path, const LoadModelOptions& options);
  // Reads a model of one file, which may be in memory. Null: models of this format are read by load() alone.
  Result<Graph> (*parse)(const io::InputFile& file) = nullptr;
};

extern const ModelFormat mdf_format;
extern const ModelFormat onnx_format;
extern const ModelFormat openvino_ir_format;

[[nodiscard]] std::span<const ModelFormat> model_formats();

}  // namespace tensorcast::models
