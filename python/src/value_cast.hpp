// SPDX-License-Identifier: Apache-2.0
// Zarr's cast_value of plain arrays, as one call.
#pragma once

#include "numpy_api.hpp"

namespace tensorcast::python {

// cast_value(array, target, rounding, out_of_range, entries), with the words of Zarr's text. Returns None if the
// general form of tensorcast._interop._cast_value must decide: other arrays and targets, wrong arguments, numbers that
// no cast maps, and errors of scalar maps.
PyObject* cast_value(PyObject* self, PyObject* const* arguments, Py_ssize_t count);

}  // namespace tensorcast::python
