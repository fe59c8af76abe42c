// What a model format brings: one folder with one of these, and one row in registry.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensorcast/model.hpp"

namespace tensorcast::models {

struct ModelFormat {
  std::string_view name;                         // as LoadModelOptions::format names it
  std::span<const std::string_view> extensions;  // with the dot, lower case
  // Whether a file's first bytes may be of this format; for files whose extension does not tell.
  bool (*recognizes)(std::span<const std::byte> first_bytes);
  Result<Graph> (*load)(const std::string& path, const LoadModelOptions& options);
};

[[nodiscard]] std::span<const ModelFormat> model_formats();

}  // namespace tensorcast::models
