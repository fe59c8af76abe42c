// SPDX-License-Identifier: Apache-2.0
// Converts Python arguments to tensorcast's types, and tensorcast's errors to Python's exceptions.
#pragma once

#include "numpy_api.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "strided.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::python {

// Parses a dtype argument: name, number, numpy.dtype, ml_dtypes or NumPy scalar type, torch.dtype, or any object whose
// str() is a spelling. Returns undefined with a Python error set if there is no such type. A cache makes names a
// dictionary look-up.
[[nodiscard]] DType dtype_argument(PyObject* argument);

// Returns the content of a str, in its memory. nullopt with CastError set if it has half of a surrogate pair.
[[nodiscard]] std::optional<std::string_view> text_argument(PyObject* text);

// Reads one keyword of CastOptions. Returns 1: read; 0: no such option; -1: a Python error is set.
int option_argument(PyObject* keyword, PyObject* value, CastOptions& options);

// A keyword of CastOptions and the value that option_argument() reads.
struct GivenOption {
  const char* name;
  std::variant<bool, int, double, const char*, std::uint64_t> value;
};
// Lists the options that differ from their defaults; those of Execution are not among them.
[[nodiscard]] std::vector<GivenOption> given_options(const tensorcast::CastOptions& options);

// Sets tensorcast.CastError or one of its subclasses, or keeps a pending KeyboardInterrupt. Returns null.
PyObject* raise_error(const Error& error);

// Sets TypeError for a keyword that is not an option, with the nearest one. Returns null.
PyObject* raise_unknown_option(PyObject* keyword);

// Reports whether a signal handler raised; the `stop` of cast_strided(). Takes the GIL.
bool signal_pending();

int load_exceptions(PyObject* module);

// Describes the memory of an array of a known type. Precondition: `shape` and `strides` outlive the result.
[[nodiscard]] StridedArray strided_array(PyArrayObject* array, DType dtype, bool one_per_byte);

}  // namespace tensorcast::python
