// SPDX-License-Identifier: Apache-2.0
#include "graph_tensor.hpp"

#include <memory>
#include <string>
#include <utility>

#include "bound_arguments.hpp"

namespace tensorcast::python {
namespace {

// Drops a reference to a Python object, on the thread that releases the last tensor.
struct ReleaseObject {
  void operator()(PyObject* object) const {
    if (!nb::is_alive()) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(object);
    PyGILState_Release(state);
  }
};

}  // namespace

std::shared_ptr<PyObject> shared_object(nb::handle object) { return {object.inc_ref().ptr(), ReleaseObject{}}; }

Tensor tensor_on_array(nb::handle storage, nb::handle dtype, const std::vector<std::int64_t>& shape) {
  if (!PyArray_Check(storage.ptr())) throw nb::type_error("expected a NumPy array");
  auto* array = reinterpret_cast<PyArrayObject*>(storage.ptr());
  if (!PyArray_IS_C_CONTIGUOUS(array) || !PyArray_ISNOTSWAPPED(array)) {
    throw nb::value_error("packed storage is contiguous and in this machine's byte order");
  }
  const auto* data = static_cast<const std::byte*>(PyArray_DATA(array));
  const auto size = static_cast<std::size_t>(PyArray_NBYTES(array));
  return checked(Tensor::share({dtype_of(dtype), shape, {data, size}}, shared_object(storage)));
}

Tensor tensor_of_texts(const nb::list& texts, const std::vector<std::int64_t>& shape) {
  StringBuffer strings{{}, {0}};
  for (const nb::handle text : texts) {
    Py_ssize_t size = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (utf8 == nullptr) throw nb::python_error();
    strings.data.insert(strings.data.end(), utf8, utf8 + size);
    strings.offsets.push_back(static_cast<std::int64_t>(strings.data.size()));
  }
  return checked(Tensor::own(shape, std::move(strings)));
}

nb::object array_on_tensor(const Tensor& tensor) {
  const bool is_alone = tensor.use_count() == 1;
  auto kept = std::make_unique<Tensor>(tensor);
  const nb::capsule owner(kept.get(), [](void* pointer) noexcept { delete static_cast<Tensor*>(pointer); });
  const std::span<const std::byte> bytes = kept.release()->bytes();
  npy_intp size[1] = {static_cast<npy_intp>(bytes.size())};
  if (bytes.empty()) {
    PyObject* empty = PyArray_SimpleNew(1, size, NPY_UINT8);
    if (empty == nullptr) throw nb::python_error();
    return nb::steal(empty);
  }
  // NumPy takes no const pointer; the read-only flag prevents writes.
  void* data = const_cast<std::byte*>(bytes.data());
  const int flags = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | (is_alone ? NPY_ARRAY_WRITEABLE : 0);
  PyObject* made = PyArray_New(&PyArray_Type, 1, size, NPY_UINT8, nullptr, data, 0, flags, nullptr);
  if (made == nullptr) throw nb::python_error();
  nb::object result = nb::steal(made);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(made), nb::object(owner).release().ptr()) != 0) {
    throw nb::python_error();
  }
  return result;
}

nb::list texts_of_tensor(const Tensor& tensor) {
  const StringView strings = tensor.strings();
  nb::list texts;
  for (std::size_t i = 0; i + 1 < strings.offsets.size(); ++i) {
    const auto begin = static_cast<std::size_t>(strings.offsets[i]);
    const auto size = static_cast<std::size_t>(strings.offsets[i + 1]) - begin;
    PyObject* text = PyUnicode_DecodeUTF8(strings.data.data() + begin, static_cast<Py_ssize_t>(size), "replace");
    if (text == nullptr) throw nb::python_error();
    texts.append(nb::steal(text));
  }
  return texts;
}

}  // namespace tensorcast::python
