// Binds quantization to blocks that share scales: the base of tensorcast.quantize.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

namespace tensorcast::python {

void bind_quantize(nanobind::module_& module);

}  // namespace tensorcast::python
