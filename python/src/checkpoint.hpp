// The steps of a checkpoint's conversion, bound for tensorcast/checkpoint.py.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

namespace tensorcast::python {

void bind_checkpoint(nanobind::module_& module);

}  // namespace tensorcast::python
