// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "array_types.hpp"
#include "dtype/errors.hpp"
#include "option_values.hpp"
#include "options/cast_options.hpp"

namespace tensorcast::python {
namespace {

PyObject* make_error = nullptr;           // tensorcast._errors.make_error
PyObject* make_unknown_option = nullptr;  // tensorcast._errors.unknown_option

// Spelling -> int object of the DType. Only successes are kept.
PyObject* dtype_cache() {
  static PyObject* const cache = PyDict_New();
  return cache;
}

// Null with a Python error set if it is no text.
const char* utf8(PyObject* text) { return PyUnicode_AsUTF8AndSize(text, nullptr); }

// Returns a new string. Bytes that are not UTF-8 are replaced.
PyObject* decoded(std::string_view text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
}

DType parse_text(PyObject* text) {
  const std::optional<std::string_view> content = text_argument(text);
  if (!content) return DType::undefined;
  const Result<DType> parsed = parse_dtype(*content);
  if (parsed) return *parsed;
  raise_error(parsed.error());
  return DType::undefined;
}

DType from_descr(PyObject* argument) {
  const auto* descr = reinterpret_cast<const PyArray_Descr*>(argument);
  const DType dtype = array_type(descr).dtype;
  if (dtype != DType::undefined) return dtype;
  if (descr->kind == 'U' || descr->kind == 'T') return DType::string;
  // Types of ml_dtypes that no cast has: uint1 can be promoted, for int1 and complex32 there are reasons.
  PyObject* const type_name = PyObject_GetAttrString(argument, "name");
  const char* const text = type_name == nullptr ? nullptr : utf8(type_name);
  if (text == nullptr) PyErr_Clear();
  const Result<DType> named = parse_dtype(text == nullptr ? "" : text);
  Py_XDECREF(type_name);
  if (named && *named == DType::uint1) return DType::uint1;
  const bool has_reason = !named && !named.error().message.starts_with("unknown");
  PyErr_Format(PyExc_TypeError, "no cast knows the NumPy type %R%s%s; see tensorcast.dtypes()", argument,
               has_reason ? ": " : "", has_reason ? named.error().message.c_str() : "");
  return DType::undefined;
}

// Parses numpy.float32, ml_dtypes.bfloat16, float, int, bool, or a class of dtypes such as numpy.dtypes.StringDType.
DType from_type(PyObject* type) {
  PyObject* descr = nullptr;
  if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &PyArrayDescr_Type)) {
    descr = PyObject_CallNoArgs(type);
  } else {
    PyArray_Descr* converted = nullptr;
    if (PyArray_DescrConverter(type, &converted) == NPY_SUCCEED) descr = reinterpret_cast<PyObject*>(converted);
  }
  if (descr == nullptr) return DType::undefined;
  const DType dtype = from_descr(descr);
  Py_DECREF(descr);
  return dtype;
}

bool has_text(PyObject* object, const char* attribute, const char* wanted) {
  PyObject* const value = PyObject_GetAttrString(object, attribute);
  const bool equal = value != nullptr && PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, wanted) == 0;
  if (value == nullptr) PyErr_Clear();
  Py_XDECREF(value);
  return equal;
}

bool is_torch_dtype(PyObject* argument) {
  static PyTypeObject* known = nullptr;  // owned, once one was seen: a process has one PyTorch
  PyTypeObject* const type = Py_TYPE(argument);
  if (known != nullptr) return type == known;
  auto* const object = reinterpret_cast<PyObject*>(type);
  if (!has_text(object, "__name__", "dtype") || !has_text(object, "__module__", "torch")) return false;
  Py_INCREF(object);
  known = type;
  return true;
}

// Reports whether equal arguments name equal types. (1 == True == 1.0 are one key of a dictionary.)
bool may_be_cached(PyObject* argument) {
  return PyUnicode_CheckExact(argument) || PyType_Check(argument) || PyArray_DescrCheck(argument) ||
         (!PyLong_Check(argument) && is_torch_dtype(argument));
}

DType resolve(PyObject* argument) {
  if (PyUnicode_Check(argument)) return parse_text(argument);
  if (PyLong_Check(argument) && !PyBool_Check(argument)) {
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(argument, &overflow);
    const auto dtype = static_cast<DType>(number);
    if (overflow == 0 && number > 0 && number < 10000 && is_castable(dtype)) return dtype;
    PyErr_Format(PyExc_TypeError, "%R is not a number of an ONNX type; see tensorcast.dtypes()", argument);
    return DType::undefined;
  }
  if (PyArray_DescrCheck(argument)) return from_descr(argument);
  if (argument == reinterpret_cast<PyObject*>(&PyUnicode_Type)) return DType::string;
  if (PyType_Check(argument)) return from_type(argument);
  if (is_torch_dtype(argument)) {
    PyObject* text = PyObject_Str(argument);
    if (text == nullptr) return DType::undefined;
    const DType dtype = parse_text(text);
    Py_DECREF(text);
    return dtype;
  }
  PyErr_Format(PyExc_TypeError,
               "a dtype is a name such as \"float8_e4m3fn\", a numpy, ml_dtypes or torch type, "
               "or an ONNX number, not %R",
               argument);
  return DType::undefined;
}

}  // namespace

std::optional<std::string_view> text_argument(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data != nullptr) return std::string_view(data, static_cast<std::size_t>(size));
  if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) return std::nullopt;
  PyErr_Clear();
  PyObject* const shown = PyObject_ASCII(text);
  const char* words = shown == nullptr ? nullptr : utf8(shown);
  if (words != nullptr) raise_error(invalid(std::string(words) + " has half of a surrogate pair, which UTF-8 lacks"));
  Py_XDECREF(shown);
  return std::nullopt;
}

int refuse(PyObject* keyword, const char* needed, PyObject* value) {
  PyObject* text = PyUnicode_FromFormat("%U must be %s, not %R", keyword, needed, value);
  const char* words = text == nullptr ? nullptr : utf8(text);
  if (words != nullptr) raise_error({.code = ErrorCode::invalid_argument, .message = words});
  Py_XDECREF(text);
  return -1;
}

int word_number(PyObject* keyword, PyObject* value, const options::Words& words, int& number, const char* or_else) {
  const std::optional<std::string_view> text = PyUnicode_Check(value) ? text_argument(value) : std::nullopt;
  if (!text && PyUnicode_Check(value)) return -1;
  std::string allowed;
  number = text ? words.find(*text) : -1;
  if (number >= 0) return 1;
  for (const char* word : words) {
    allowed.append(allowed.empty() ? "one of '" : ", '").append(word).append("'");
  }
  return refuse(keyword, allowed.append(or_else).c_str(), value);
}

int whole_number(PyObject* keyword, PyObject* value, std::int64_t largest, std::int64_t& result) {
  PyObject* index = PyBool_Check(value) ? nullptr : PyNumber_Index(value);  // of NumPy, too
  result = index == nullptr ? -1 : PyLong_AsLongLong(index);
  Py_XDECREF(index);
  if (result >= 0 && result <= largest) return 1;
  PyErr_Clear();
  return refuse(keyword, "a whole number from 0 on", value);
}

int seed_number(PyObject* keyword, PyObject* value, std::uint64_t& result) {
  PyObject* index = PyBool_Check(value) ? nullptr : PyNumber_Index(value);
  result = index == nullptr ? 0 : PyLong_AsUnsignedLongLong(index);
  Py_XDECREF(index);
  if (index != nullptr && PyErr_Occurred() == nullptr) return 1;
  PyErr_Clear();
  return refuse(keyword, "a whole number of 64 bits, from 0 on", value);
}

int truth_value(PyObject* keyword, PyObject* value, bool& result) {
  const bool is_bool = PyBool_Check(value) || PyArray_IsScalar(value, Bool);
  const long number = !is_bool && PyLong_CheckExact(value) ? PyLong_AsLong(value) : -1;
  if (!is_bool && number != 0 && number != 1) {
    PyErr_Clear();
    return refuse(keyword, "True or False", value);
  }
  const int truth = PyObject_IsTrue(value);
  result = truth == 1;
  return truth < 0 ? -1 : 1;
}

int real_number(PyObject* keyword, PyObject* value, double& result) {
  result = PyFloat_AsDouble(value);
  if (result != -1.0 || PyErr_Occurred() == nullptr) return 1;
  if (PyErr_ExceptionMatches(PyExc_TypeError) != 0) {
    PyErr_Format(PyExc_TypeError, "%U must be a real number here, not %R", keyword, value);
  } else if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
    PyErr_Clear();
    return refuse(keyword, "a number that float64 can hold", value);
  }
  return -1;
}

DType dtype_argument(PyObject* argument) {
  if (!may_be_cached(argument)) return resolve(argument);
  PyObject* known = PyDict_GetItemWithError(dtype_cache(), argument);
  if (known != nullptr) return static_cast<DType>(PyLong_AsLong(known));
  if (PyErr_Occurred()) return DType::undefined;
  const DType dtype = resolve(argument);
  if (dtype == DType::undefined) return dtype;
  PyObject* number = PyLong_FromLong(static_cast<long>(dtype));
  if (number == nullptr || PyDict_SetItem(dtype_cache(), argument, number) != 0) PyErr_Clear();
  Py_XDECREF(number);
  return dtype;
}

int option_argument(PyObject* keyword, PyObject* value, CastOptions& options) {
  const char* name = utf8(keyword);
  if (name == nullptr) return -1;
  if (std::strcmp(name, "threads") == 0) return read_int(keyword, value, options.execution.threads);
  int read = 0;
  options::all_of(options::cast_options, [&](const auto& option) {
    if (std::strcmp(name, option.name) != 0) return true;
    read = read_option(keyword, value, option, options.*option.member);
    return false;
  });
  return read;
}

std::vector<GivenOption> given_options(const tensorcast::CastOptions& options) {
  std::vector<GivenOption> given;
  options::for_each(options::cast_options, [&](const auto& option) {
    const auto value = options.*option.member;
    if (value == option.usual()) return;
    if constexpr (std::is_enum_v<decltype(value)>) {
      given.push_back({option.name, option.word(value)});
    } else {
      given.push_back({option.name, value});
    }
  });
  return given;
}

PyObject* raise_error(const Error& error) {
  if (PyErr_Occurred()) return nullptr;  // KeyboardInterrupt is already set
  PyObject* parts[] = {decoded(error.describe()),
                       PyUnicode_FromString(tensorcast::name(error.code).data()),
                       decoded(error.hint),
                       PyUnicode_DecodeFSDefaultAndSize(error.file.data(), static_cast<Py_ssize_t>(error.file.size())),
                       decoded(error.tensor),
                       error.element ? PyLong_FromUnsignedLongLong(*error.element) : Py_NewRef(Py_None),
                       PyLong_FromLong(error.system_error)};
  bool complete = true;
  for (const PyObject* part : parts) complete = complete && part != nullptr;
  PyObject* exception = complete ? PyObject_Vectorcall(make_error, parts, std::size(parts), nullptr) : nullptr;
  for (PyObject* part : parts) Py_XDECREF(part);
  if (exception == nullptr) return nullptr;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception)), exception);
  Py_DECREF(exception);
  return nullptr;
}

PyObject* raise_unknown_option(PyObject* keyword) {
  PyObject* exception = PyObject_CallFunctionObjArgs(make_unknown_option, keyword, nullptr);
  if (exception == nullptr) return nullptr;
  PyErr_SetObject(PyExc_TypeError, exception);
  Py_DECREF(exception);
  return nullptr;
}

bool signal_pending() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return raised;
}

int load_exceptions(PyObject* module) {
  make_error = PyObject_GetAttrString(module, "make_error");
  make_unknown_option = PyObject_GetAttrString(module, "unknown_option");
  return make_error == nullptr || make_unknown_option == nullptr ? -1 : 0;
}

StridedArray strided_array(PyArrayObject* array, DType dtype, bool one_per_byte) {
  static_assert(sizeof(npy_intp) == sizeof(std::int64_t));
  const auto rank = static_cast<std::size_t>(PyArray_NDIM(array));
  return {.data = static_cast<std::byte*>(PyArray_DATA(array)),
          .shape = {reinterpret_cast<const std::int64_t*>(PyArray_DIMS(array)), rank},
          .strides = {reinterpret_cast<const std::int64_t*>(PyArray_STRIDES(array)), rank},
          .dtype = dtype,
          .one_per_byte = one_per_byte,
          .swapped = PyArray_ISBYTESWAPPED(array) != 0};
}

}  // namespace tensorcast::python
