// SPDX-License-Identifier: Apache-2.0
// Names of files between Python and the library, which has them as bytes.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include <string>

namespace tensorcast::python {

// The name of a file or folder, or a URL. Python has bytes that are not UTF-8 as lone surrogates, as os.fsdecode()
// makes them; nanobind's own strings refuse these.
struct PathText {
  std::string text;

  operator const std::string&() const noexcept { return text; }  // NOLINT(google-explicit-constructor)
};

}  // namespace tensorcast::python

namespace nanobind::detail {

template <>
struct type_caster<tensorcast::python::PathText> {
  NB_TYPE_CASTER(tensorcast::python::PathText, const_name("str"))

  bool from_python(handle src, std::uint8_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(src.ptr())) return false;
    PyObject* const bytes = PyUnicode_EncodeFSDefault(src.ptr());
    if (bytes == nullptr) {
      PyErr_Clear();
      return false;
    }
    value.text.assign(PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes)));
    Py_DECREF(bytes);
    return true;
  }

  static handle from_cpp(const tensorcast::python::PathText& path, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeFSDefaultAndSize(path.text.data(), static_cast<Py_ssize_t>(path.text.size()));
  }
};

}  // namespace nanobind::detail
