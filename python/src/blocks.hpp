// Binds numbers in blocks that share scales: the base of tensorcast.dequantize.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

void bind_blocks(nanobind::module_& module);

}  // namespace tensorcast::python
