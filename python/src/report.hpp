// Binds tensorcast.CastReport.
#pragma once

#include <Python.h>

#include <nanobind/nanobind.h>

namespace tensorcast::python {

// Adds the class CastReport.
void bind_report(nanobind::module_& module);

}  // namespace tensorcast::python
