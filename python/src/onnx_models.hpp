// Binds the precision of ONNX models: the base of tensorcast.onnx.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

// Adds the function onnx_convert.
void bind_onnx_models(nanobind::module_& module);

}  // namespace tensorcast::python
