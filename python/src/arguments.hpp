// Python arguments to tensorcast's types, and tensorcast's errors to Python's exceptions.
#pragma once

#include "numpy_api.hpp"

#include <string>

#include "strided.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::python {

// A dtype argument: name, number, numpy.dtype, ml_dtypes or NumPy scalar type, torch.dtype, anything whose str() is a
// spelling. undefined with a Python error set when there is no such type. A cache makes names a dictionary look-up.
[[nodiscard]] DType dtype_argument(PyObject* argument);

// One keyword of CastOptions. 1: taken; 0: no such option; -1: a Python error is set.
int option_argument(PyObject* keyword, PyObject* value, CastOptions& options);

// Sets tensorcast.CastError (or KeyboardInterrupt's own error where one is pending). Returns null.
PyObject* raise_error(const Error& error);

// "interrupted" of cast_strided(): whether a signal handler raised. Takes the GIL.
bool signal_pending();

int load_exceptions(PyObject* module);

// The memory of an array whose type is known. Precondition: `shape` and `strides` outlive the result.
[[nodiscard]] StridedArray strided_array(PyArrayObject* array, DType dtype, bool one_per_byte);

}  // namespace tensorcast::python
