// Binds files of tensors: the base of tensorcast.convert, inspect, open and save.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

// Adds the functions convert, inspect, save and the class TensorFile.
void bind_files(nanobind::module_& module);

}  // namespace tensorcast::python
