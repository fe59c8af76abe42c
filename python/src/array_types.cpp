// SPDX-License-Identifier: Apache-2.0
#include "array_types.hpp"

#include <array>
#include <string>
#include <vector>

namespace tensorcast::python {
namespace {

constexpr int type_number_limit = 1024;  // ml_dtypes registers its types from 256 upwards

std::array<ArrayType, type_number_limit> type_of_number;
std::vector<PyArray_Descr*> descr_of_dtype;

// Returns false without an error if the module lacks the type: NumPy has few, and older versions of ml_dtypes lack
// some.
bool register_type(PyObject* module, const char* name, DType dtype) {
  PyObject* const scalar_type = PyObject_GetAttrString(module, name);
  if (scalar_type == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) != 0) PyErr_Clear();
    return false;
  }
  PyArray_Descr* descr = nullptr;
  const int converted = PyArray_DescrConverter(scalar_type, &descr);
  Py_DECREF(scalar_type);
  if (converted != NPY_SUCCEED) return false;
  if (descr->type_num >= 0 && descr->type_num < type_number_limit) {
    type_of_number[static_cast<std::size_t>(descr->type_num)] = {dtype, bit_width(dtype) < 8};
  }
  const auto code = static_cast<std::size_t>(dtype);
  if (code >= descr_of_dtype.size()) descr_of_dtype.resize(code + 1);
  if (descr_of_dtype[code] == nullptr) {
    descr_of_dtype[code] = descr;  // kept for the life of the process
  } else {
    Py_DECREF(descr);
  }
  return true;
}

// Every type is one of NumPy or ml_dtypes, under its own name except bool.
bool register_types(PyObject* numpy, PyObject* ml_dtypes) {
  for (const DType dtype : all_dtypes()) {
    if (family(dtype) == Family::text) continue;
    const std::string type_name(dtype == DType::boolean ? "bool_" : name(dtype));
    if (!register_type(numpy, type_name.c_str(), dtype)) register_type(ml_dtypes, type_name.c_str(), dtype);
    if (PyErr_Occurred() != nullptr) return false;
  }
  // NumPy has two types of 64-bit integers if `long` has as many bits as `long long`.
  register_type(numpy, "longlong", DType::int64);
  register_type(numpy, "ulonglong", DType::uint64);
  return PyErr_Occurred() == nullptr;
}

}  // namespace

int load_array_types() {
  PyObject* const numpy = PyImport_ImportModule("numpy");
  PyObject* const ml_dtypes = PyImport_ImportModule("ml_dtypes");
  const bool done = numpy != nullptr && ml_dtypes != nullptr && register_types(numpy, ml_dtypes);
  Py_XDECREF(numpy);
  Py_XDECREF(ml_dtypes);
  return done ? 0 : -1;
}

ArrayType array_type(const PyArray_Descr* descr) noexcept {
  const int number = descr->type_num;
  if (number < 0 || number >= type_number_limit) return {};
  return type_of_number[static_cast<std::size_t>(number)];
}

PyArray_Descr* array_descr(DType dtype) noexcept {
  const auto code = static_cast<std::size_t>(dtype);
  return code < descr_of_dtype.size() ? descr_of_dtype[code] : nullptr;
}

}  // namespace tensorcast::python
