// SPDX-License-Identifier: Apache-2.0
// The boundary of functions that work on one file: exceptions become errors, and errors name the file.
#pragma once

#include <string>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/guarded.hpp"

namespace tensorcast::models::onnx {

// As guarded(). An error that names no file gets `path`.
template <class Body>
[[nodiscard]] auto guarded_for_file(const std::string& path, Body&& body) -> decltype(std::forward<Body>(body)()) {
  return in_file(path, guarded(path, std::forward<Body>(body)));
}

}  // namespace tensorcast::models::onnx
