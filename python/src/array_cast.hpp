// The hot call of the package: tensorcast.cast, a plain CPython function so that a small array costs a few hundred
// nanoseconds.
#pragma once

#include "numpy_api.hpp"

#include "strided.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::python {

// cast(x, dtype, **options). Hands over to the general cast of tensorcast._arrays what needs preparation: other
// objects, subclasses, strings, out=, copy=, order=, packed=, report=, and calls that are not well-formed.
PyObject* cast_array(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords);

// The Python function to hand over to.
void set_general_cast(PyObject* function);

// cast_strided() with the GIL released meanwhile, where that pays; stops for signals.
Result<void> cast_released(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                           CastReport* report);

// The same for arrays whose types the caller knows better than NumPy.
Result<void> cast_between(PyArrayObject* src, DType from, bool src_one_per_byte, PyArrayObject* dst, DType to,
                          bool dst_one_per_byte, const CastOptions& options, CastReport* report);

}  // namespace tensorcast::python
