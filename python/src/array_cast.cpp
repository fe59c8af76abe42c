// SPDX-License-Identifier: Apache-2.0
#include "array_cast.hpp"

#include <array>
#include <new>
#include <optional>
#include <span>

#include "arguments.hpp"
#include "array_types.hpp"
#include "dlpack.hpp"
#include "dtype/try.hpp"
#include "report.hpp"
#include "result_pool.hpp"
#include "tensorcast/cast.hpp"
#include "torch_cast.hpp"

namespace tensorcast::python {
namespace {

PyObject* general_cast = nullptr;  // owned for the life of the process

// Reports whether a dtype argument names another byte order than this machine's.
bool is_swapped(PyObject* dtype) {
  if (PyUnicode_Check(dtype)) return PyUnicode_GetLength(dtype) > 0 && PyUnicode_ReadChar(dtype, 0) == '>';
  return PyArray_DescrCheck(dtype) && !PyArray_ISNBO(reinterpret_cast<PyArray_Descr*>(dtype)->byteorder);
}

bool may_be_scales(PyObject* keyword, PyObject* value) {
  return !PyFloat_Check(value) && !PyLong_Check(value) && PyUnicode_CompareWithASCIIString(keyword, "scale") == 0;
}

// The keywords that are no options of a conversion, as far as plain arrays need no preparation.
struct Extras {
  PyArrayObject* out = nullptr;     // borrowed
  PyArrayObject* scales = nullptr;  // borrowed
  PyObject* scale = nullptr;        // borrowed: of scale=, for the report
  bool report = false;

  [[nodiscard]] bool any() const { return out != nullptr || scales != nullptr || report; }

  // Reads a keyword. Returns false if it is none of these.
  bool take(PyObject* keyword, PyObject* value) {
    const auto is = [&](const char* name) { return PyUnicode_CompareWithASCIIString(keyword, name) == 0; };
    if (PyArray_CheckExact(value)) {
      auto* const array = reinterpret_cast<PyArrayObject*>(value);
      if (is("out")) {
        out = array;
        return true;
      }
      if (!is("scale")) return false;
      scales = array;
      scale = value;
      return true;
    }
    if (!PyBool_Check(value) || !is("report")) return false;
    report = value == Py_True;
    return true;
  }
};

Result<void> cast_dense(PyArrayObject* src, DType from, PyArrayObject* dst, DType to, const CastOptions& options) {
  const StridedArray source = strided_array(src, from, false);
  const auto count = static_cast<std::size_t>(PyArray_SIZE(src));
  const StridedArray target = strided_array(dst, to, false);
  return cast({from, source.shape, {source.data, storage_bytes(from, count)}},
              {to, target.shape, {target.data, storage_bytes(to, count)}}, options, options.execution);
}

// Reports whether `out` can take the result as it is: of its type and shape, dense, and apart from the source.
bool takes_result(PyArrayObject* out, PyArrayObject* array, DType to) {
  const ArrayType type = array_type(PyArray_DESCR(out));
  if (type.dtype != to || type.one_per_byte || !PyArray_SAMESHAPE(out, array) || !PyArray_ISCARRAY(out)) return false;
  const char* const first = PyArray_BYTES(out);
  const char* const source = PyArray_BYTES(array);
  return first + PyArray_NBYTES(out) <= source || source + PyArray_NBYTES(array) <= first;
}

// Fills the strides of scales that broadcast to `array`. Returns false if they do not.
bool broadcast_strides(PyArrayObject* scales, PyArrayObject* array, std::span<std::int64_t> strides) {
  const int missing = PyArray_NDIM(array) - PyArray_NDIM(scales);
  if (missing < 0) return false;
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    const npy_intp length = axis < missing ? 1 : PyArray_DIM(scales, axis - missing);
    if (length != 1 && length != PyArray_DIM(array, axis)) return false;
    strides[static_cast<std::size_t>(axis)] = length == 1 ? 0 : PyArray_STRIDE(scales, axis - missing);
  }
  return true;
}

// Converts with a scale for each element. Returns false if the general form must decide.
Result<bool> cast_by_scales(PyArrayObject* array, DType from, PyArrayObject* result, DType to, PyArrayObject* scales,
                            const CastOptions& options, CastReport* report) {
  std::array<std::int64_t, NPY_MAXDIMS> strides;
  const std::span used = std::span(strides).first(static_cast<std::size_t>(PyArray_NDIM(array)));
  const std::optional<Scales> by = scales_of(scales, used);
  if (!by || !broadcast_strides(scales, array, used)) return false;
  TRY(cast_scaled_released(strided_array(array, from, false), strided_array(result, to, bit_width(to) < 8), *by,
                           options, report));
  return true;
}

// The result, or the result and its report, with what `extras` ask for. Returns null without a Python error if the
// general form must decide.
PyObject* cast_with_extras(PyArrayObject* array, DType to, const CastOptions& options, const Extras& extras) {
  const ArrayType from = array_type(PyArray_DESCR(array));
  if (from.dtype == DType::undefined || from.one_per_byte || to == DType::string || bit_width(to) < 8) return nullptr;
  if (!PyArray_IS_C_CONTIGUOUS(array) || !PyArray_ISNOTSWAPPED(array)) return nullptr;
  if (extras.out != nullptr && !takes_result(extras.out, array, to)) return nullptr;
  PyObject* result = reinterpret_cast<PyObject*>(extras.out);
  Py_XINCREF(result);
  if (result == nullptr) result = new_result(array, to);
  if (result == nullptr) return nullptr;
  auto* const target = reinterpret_cast<PyArrayObject*>(result);
  CastReport report;
  CastReport* const told = extras.report ? &report : nullptr;
  const bool small = static_cast<std::size_t>(PyArray_SIZE(array)) < release_elements && told == nullptr;
  const auto run = [&]() -> Result<bool> {
    if (extras.scales != nullptr) return cast_by_scales(array, from.dtype, target, to, extras.scales, options, told);
    TRY(small ? cast_dense(array, from.dtype, target, to, options)
              : cast_between(array, from.dtype, false, target, to, false, options, told));
    return true;
  };
  const Result<bool> done = run();
  if (done && *done && told != nullptr) {
    PyObject* const one = PyFloat_FromDouble(1.0);
    PyObject* const scale = extras.scale != nullptr ? extras.scale : one;
    PyObject* const told_object = new_report(report, reinterpret_cast<PyObject*>(array), result, scale);
    Py_XDECREF(one);
    return told_object == nullptr ? (Py_DECREF(result), nullptr) : Py_BuildValue("(NN)", result, told_object);
  }
  if (done && *done) return result;
  Py_DECREF(result);
  return done ? nullptr : raise_error(done.error());
}

}  // namespace

PyObject* new_result(PyArrayObject* array, DType to) {
  PyArray_Descr* const descr = array_descr(to);
  if (descr == nullptr) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject*>(descr));
  PyObject* const made = new_array(PyArray_NDIM(array), PyArray_DIMS(array), descr);
  if (made == nullptr) PyErr_Clear();
  return made;
}

PyObject* cast_plain(PyArrayObject* array, DType to, const CastOptions& options) {
  const ArrayType from = array_type(PyArray_DESCR(array));
  if (from.dtype == DType::undefined || from.one_per_byte || to == DType::string) return nullptr;
  PyObject* made = new_result(array, to);
  if (made == nullptr) return nullptr;
  auto* result = reinterpret_cast<PyArrayObject*>(made);
  const bool simple = PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISNOTSWAPPED(array) && bit_width(to) >= 8;
  Result<void> done = simple && static_cast<std::size_t>(PyArray_SIZE(array)) < release_elements
                          ? cast_dense(array, from.dtype, result, to, options)
                          : cast_between(array, from.dtype, false, result, to, bit_width(to) < 8, options, nullptr);
  if (done) return made;
  Py_DECREF(made);
  return raise_error(done.error());
}

Result<void> cast_between(PyArrayObject* src, DType from, bool src_one_per_byte, PyArrayObject* dst, DType to,
                          bool dst_one_per_byte, const CastOptions& options, CastReport* report) {
  return cast_released(strided_array(src, from, src_one_per_byte), strided_array(dst, to, dst_one_per_byte), options,
                       report);
}

Result<void> cast_released(const StridedArray& src, const StridedArray& dst, const CastOptions& options,
                           CastReport* report) {
  return released(TRY(element_count(src.shape)),
                  [&](bool (*stop)()) { return cast_strided(src, dst, options, report, stop); });
}

std::optional<Scales> scales_of(PyArrayObject* array, std::span<const std::int64_t> strides) {
  const int type = PyArray_TYPE(array);
  if ((type != NPY_FLOAT64 && type != NPY_FLOAT32) || !PyArray_ISNOTSWAPPED(array)) return std::nullopt;
  return Scales{static_cast<const std::byte*>(PyArray_DATA(array)),
                type == NPY_FLOAT64 ? DType::float64 : DType::float32, strides};
}

Result<void> cast_scaled_released(const StridedArray& src, const StridedArray& dst, const Scales& scales,
                                  const CastOptions& options, CastReport* report) {
  return released(TRY(element_count(src.shape)),
                  [&](bool (*stop)()) { return cast_scaled(src, dst, scales, options, report, stop); });
}

Result<void> cast_flat(std::byte* src, DType from, std::byte* dst, DType to, std::int64_t count,
                       const CastOptions& options) {
  const std::int64_t shape[] = {count};
  const auto elements = static_cast<std::size_t>(count);
  const TensorView source{from, shape, {src, storage_bytes(from, elements)}};
  const MutableTensorView target{to, shape, {dst, storage_bytes(to, elements)}};
  if (elements < release_elements) return cast(source, target, options, options.execution);
  const std::int64_t steps[] = {bit_width(from) / 8, bit_width(to) / 8};
  return cast_released({src, shape, std::span(steps).first(1), from}, {dst, shape, std::span(steps).last(1), to},
                       options, nullptr);
}

void set_general_cast(PyObject* function) {
  Py_INCREF(function);
  Py_XDECREF(general_cast);
  general_cast = function;
}

PyObject* cast_array(PyObject*, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
  const auto hand_over = [&] {
    return PyObject_Vectorcall(general_cast, arguments, static_cast<std::size_t>(positional), keywords);
  };
  if (positional != 2) return hand_over();
  PyObject* const x = arguments[0];
  const bool is_array = PyArray_CheckExact(x), is_torch = is_torch_tensor(x);
  if ((!is_array && !is_torch && !lends_memory(x)) || is_swapped(arguments[1])) return hand_over();
  const DType to = dtype_argument(arguments[1]);
  if (to == DType::undefined) {  // perhaps a text type of NumPy, such as U12; the general form reports the error
    if (!PyUnicode_Check(arguments[1])) return nullptr;
    PyErr_Clear();
    return hand_over();
  }
  CastOptions options;
  Extras extras;
  const Py_ssize_t keyword_count = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < keyword_count; ++i) {
    PyObject* const keyword = PyTuple_GetItem(keywords, i);
    PyObject* const value = arguments[positional + i];
    if (is_array && extras.take(keyword, value)) continue;
    if (may_be_scales(keyword, value)) return hand_over();
    const int taken = option_argument(keyword, value, options);
    if (taken < 0) return nullptr;
    if (PyUnicode_CompareWithASCIIString(keyword, "scale") == 0) extras.scale = value;
    if (taken == 0) return hand_over();
  }
  PyObject* result = nullptr;
  if (is_array && extras.any()) {
    result = cast_with_extras(reinterpret_cast<PyArrayObject*>(x), to, options, extras);
  } else if (is_array) {
    result = cast_plain(reinterpret_cast<PyArrayObject*>(x), to, options);
  } else if (is_torch) {
    result = cast_torch(x, to, options);
  } else if (PyObject* const array = array_on_dlpack(x); array != nullptr) {
    result = cast_plain(reinterpret_cast<PyArrayObject*>(array), to, options);
    Py_DECREF(array);
  } else {
    PyErr_Clear();
  }
  return result != nullptr || PyErr_Occurred() != nullptr ? result : hand_over();
}

}  // namespace tensorcast::python
