// The interface of a model format. Each has one folder and one row in registry.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensorcast/model.hpp"

namespace tensorcast::models {

struct ModelFormat {
  std::string_view name;                         // the value of LoadModelOptions::format
  std::span<const std::string_view> extensions;  // with the dot, lower case
  // Reports whether a file's first bytes may be of this format; used if the extension does not decide.
  bool (*recognizes)(std::span<const std::byte> first_bytes);
  Result<Graph> (*load)(const std::string& path, const LoadModelOptions& options);
};

[[nodiscard]] std::span<const ModelFormat> model_formats();

}  // namespace tensorcast::models
