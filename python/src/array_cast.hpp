// SPDX-License-Identifier: Apache-2.0
// The hot call of the package: tensorcast.cast, a plain CPython function so that a small array costs a few hundred
// nanoseconds.
#pragma once

#include "numpy_api.hpp"

#include <cstdint>
#include <new>
#include <optional>
#include <span>

#include "arguments.hpp"
#include "strided.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::python {

// cast(x, to, /, **options) of a NumPy array, a PyTorch tensor or an object with DLPack. Calls the general cast of
// tensorcast._cast._arrays for everything that needs preparation: other objects, subclasses, strings, other byte
// orders, copy=, order=, packed=, malformed calls, and out=, report= and arrays of scales but of plain arrays.
PyObject* cast_array(PyObject* self, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords);

// A new array of the shape of `array`. Returns null without a Python error if NumPy and ml_dtypes lack the type, or the
// array is too large; the general form says so.
PyObject* new_result(PyArrayObject* array, DType to);

// The same as cast_array() of an array and a type, to a new array. Returns null without a Python error if the general
// form must decide.
PyObject* cast_plain(PyArrayObject* array, DType to, const CastOptions& options);

// Sets the Python function of the general cast.
void set_general_cast(PyObject* function);

// Below this many elements, releasing the GIL costs more time than other threads gain.
inline constexpr std::size_t release_elements = 32768;

// Calls `work`, without the GIL if that pays; it then gets a function to stop for signals.
template <class Work>
Result<void> released(std::size_t elements, Work&& work) {
  const bool release = elements >= release_elements;
  PyThreadState* state = release ? PyEval_SaveThread() : nullptr;
  Result<void> done;
  try {
    done = work(release ? &signal_pending : nullptr);
  } catch (const std::bad_alloc&) {
    done = Error{.code = ErrorCode::internal, .message = "out of memory"};
  }
  if (release) PyEval_RestoreThread(state);
  return done;
}

// Casts `count` elements without gaps, and releases the GIL if that pays. Precondition: both types have 8 bits or more.
Result<void> cast_flat(std::byte* src, DType from, std::byte* dst, DType to, std::int64_t count,
                       const CastOptions& options);

// Calls cast_strided() and releases the GIL if that pays; stops for signals.
Result<void> cast_released(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                           CastReport* report);

// The numbers of an array as scales with these strides; none if they are not float32 or float64 in this machine's
// order.
std::optional<Scales> scales_of(PyArrayObject* array, std::span<const std::int64_t> strides);

// Does the same with a scale of its own for each element.
Result<void> cast_scaled_released(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                                  const CastOptions& options, CastReport* report);

// Does the same for arrays whose types differ from NumPy's.
Result<void> cast_between(PyArrayObject* src, DType from, bool src_one_per_byte, PyArrayObject* dst, DType to,
                          bool dst_one_per_byte, const CastOptions& options, CastReport* report);

}  // namespace tensorcast::python
