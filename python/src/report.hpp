// SPDX-License-Identifier: Apache-2.0
// Python's CastReport for the hot call.
#pragma once

#include <Python.h>

#include "tensorcast/cast_report.hpp"

namespace tensorcast::python {

// Returns a new reference to a report that remembers, weakly, the arrays that it compared, for plot_report(). Null with
// a Python error set on failure.
[[nodiscard]] PyObject* new_report(const CastReport& report, PyObject* source, PyObject* result, PyObject* scale);

}  // namespace tensorcast::python
