// Binds tensorcast.CastReport.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <Python.h>

#include <nanobind/nanobind.h>

namespace tensorcast::python {

// Adds the class CastReport.
void bind_report(nanobind::module_& module);

}  // namespace tensorcast::python
