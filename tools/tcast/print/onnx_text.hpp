// SPDX-License-Identifier: Apache-2.0
// Words that several commands of `tcast onnx` use.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "process/printable.hpp"
#include "tensorcast/dtype.hpp"

namespace tcast {

// "?" for a type that is unknown.
inline std::string type_text(tensorcast::DType dtype) {
  return dtype == tensorcast::DType::undefined ? "?" : std::string(name(dtype));
}

// null for a type that is unknown.
inline nlohmann::ordered_json type_json(tensorcast::DType dtype) {
  return dtype == tensorcast::DType::undefined ? nlohmann::ordered_json() : nlohmann::ordered_json(name(dtype));
}

// "SCOPE: NAME", or "NAME" in the main graph; printable.
inline std::string place_text(const std::string& scope, const std::string& name) {
  return printable(scope.empty() ? name : scope + ": " + name);
}

}  // namespace tcast
