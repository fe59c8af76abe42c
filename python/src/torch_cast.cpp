// SPDX-License-Identifier: Apache-2.0
#include "torch_cast.hpp"

#include <array>
#include <cstdint>
#include <string>

#include "arguments.hpp"
#include "array_cast.hpp"
#include "options/cast_options.hpp"
#include "result_pool.hpp"

namespace tensorcast::python {
namespace {

// Functions that return true, or a number above 0, while PyTorch must see every call.
constexpr std::array observer_names = {"transforms_active", "dispatch_modes", "function_modes", "is_tracing"};

// Owned for the life of the process.
struct Torch {
  PyTypeObject* tensor = nullptr;
  PyTypeObject* parameter = nullptr;
  PyObject* strided = nullptr;  // torch.strided
  PyObject* empty_like = nullptr;
  PyObject* from_numpy = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* is_profiled = nullptr;
  PyObject* forward_ad = nullptr;  // the module's dictionary
  std::array<PyObject*, observer_names.size()> observers = {};
  std::array<PyObject*, 64> dtypes = {};  // torch.dtype of a DType's number
  PyObject* empty_like_keywords = nullptr;
};
Torch torch;

// Names of attributes and methods.
struct Names {
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* view = PyUnicode_InternFromString("view");
  PyObject* layout = PyUnicode_InternFromString("layout");
  PyObject* is_cpu = PyUnicode_InternFromString("is_cpu");
  PyObject* is_nested = PyUnicode_InternFromString("is_nested");
  PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
  PyObject* is_contiguous = PyUnicode_InternFromString("is_contiguous");
  PyObject* is_neg = PyUnicode_InternFromString("is_neg");
  PyObject* numel = PyUnicode_InternFromString("numel");
  PyObject* data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* current_level = PyUnicode_InternFromString("_current_level");
};
const Names& names() {
  static const Names instance;
  return instance;
}

// A reference that is dropped at the end; null after an error.
class Owned {
 public:
  explicit Owned(PyObject* object) : object_(object) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Py_XDECREF(object_); }
  [[nodiscard]] PyObject* get() const { return object_; }
  [[nodiscard]] PyObject* give() {
    PyObject* given = object_;
    object_ = nullptr;
    return given;
  }

 private:
  PyObject* object_;
};

// The answers of PyTorch's own objects. -1 is an error, whose Python error is cleared: the general form then meets it.
std::int64_t number(const Owned& answer) {
  if (answer.get() != nullptr && PyBool_Check(answer.get())) return answer.get() == Py_True ? 1 : 0;
  const std::int64_t value = answer.get() == nullptr ? -1 : PyLong_AsLongLong(answer.get());
  if (value < 0) PyErr_Clear();
  return value;
}
std::int64_t attribute(PyObject* x, PyObject* name) { return number(Owned(PyObject_GetAttr(x, name))); }
std::int64_t answer_of(PyObject* x, PyObject* method) {
  return number(Owned(PyObject_VectorcallMethod(method, &x, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
}
std::int64_t call(PyObject* function) { return number(Owned(PyObject_CallNoArgs(function))); }

DType dtype_of_tensor(PyObject* x) {
  const Owned dtype(PyObject_GetAttr(x, names().dtype));
  if (dtype.get() == nullptr) PyErr_Clear();
  for (std::size_t code = 0; dtype.get() != nullptr && code < torch.dtypes.size(); ++code) {
    if (torch.dtypes[code] == dtype.get()) return static_cast<DType>(code);
  }
  return DType::undefined;
}

// Reports whether PyTorch must see the call: it traces, transforms, counts, or computes derivatives.
bool is_observed(PyObject* x) {
  for (PyObject* observer : torch.observers) {
    if (call(observer) != 0) return true;
  }
  PyObject* level = PyDict_GetItemWithError(torch.forward_ad, names().current_level);  // borrowed
  if (level == nullptr || PyLong_AsLong(level) >= 0) {
    PyErr_Clear();
    return true;
  }
  PyErr_Clear();
  const std::int64_t requires_grad = attribute(x, names().requires_grad);
  return requires_grad != 0 && (requires_grad < 0 || call(torch.is_grad_enabled) != 0);
}

bool is_plain(PyObject* x) {
  const Owned layout(PyObject_GetAttr(x, names().layout));
  if (layout.get() == nullptr) PyErr_Clear();
  return layout.get() == torch.strided && attribute(x, names().is_cpu) == 1 && attribute(x, names().is_nested) == 0 &&
         answer_of(x, names().is_neg) == 0 && answer_of(x, names().is_contiguous) == 1;
}

std::byte* data_of(PyObject* x) {
  const Owned address(PyObject_VectorcallMethod(names().data_ptr, &x, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  return address.get() == nullptr ? nullptr : static_cast<std::byte*>(PyLong_AsVoidPtr(address.get()));
}

// Calls x.view(argument), and drops the reference to x, which may be null.
PyObject* viewed(PyObject* x, PyObject* argument) {
  if (x == nullptr || argument == nullptr) {
    Py_XDECREF(x);
    return nullptr;
  }
  PyObject* const arguments[] = {x, argument};
  PyObject* const made = PyObject_VectorcallMethod(names().view, arguments, 2, nullptr);
  Py_DECREF(x);
  return made;
}

// A tensor of the shape of `x` in memory of the result pool.
PyObject* new_pooled_tensor(PyObject* x, DType to, std::size_t bytes) {
  const npy_intp shape[] = {static_cast<npy_intp>(bytes)};
  PyObject* const array = new_array(1, shape, PyArray_DescrFromType(NPY_UINT8));
  if (array == nullptr) return nullptr;
  PyObject* const flat = PyObject_CallFunctionObjArgs(torch.from_numpy, array, nullptr);
  Py_DECREF(array);  // the tensor keeps it
  const Owned shape_of_x(PyObject_GetAttr(x, names().shape));
  return viewed(viewed(flat, torch.dtypes[static_cast<std::size_t>(to)]), shape_of_x.get());
}

PyObject* new_tensor(PyObject* x, DType to, std::int64_t count) {
  const std::size_t bytes = storage_bytes(to, static_cast<std::size_t>(count));
  if (bytes >= pooled_bytes) return new_pooled_tensor(x, to, bytes);
  PyObject* const arguments[] = {x, torch.dtypes[static_cast<std::size_t>(to)]};
  return PyObject_Vectorcall(torch.empty_like, arguments, 1, torch.empty_like_keywords);
}

bool has_torch_type(DType dtype) {
  const auto code = static_cast<std::size_t>(dtype);
  return code < torch.dtypes.size() && torch.dtypes[code] != nullptr;
}

// Reads the keywords of an operator's call. Returns false, without a Python error, for what the dispatcher must judge.
bool read_keywords(PyObject* const* values, PyObject* keywords, CastOptions& options) {
  const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const keyword = PyTuple_GetItem(keywords, i);
    bool is_for_strings = false;
    options::for_each(options::cast_options, [&](const auto& option) {
      is_for_strings |= option.for_strings && PyUnicode_CompareWithASCIIString(keyword, option.name) == 0;
    });
    if (is_for_strings || option_argument(keyword, values[i], options) != 1) {
      PyErr_Clear();
      return false;
    }
  }
  return true;
}

PyObject* run_operator(PyObject* dispatched, PyObject* const* arguments, Py_ssize_t positional, PyObject* keywords) {
  CastOptions options;
  if (positional == 2 && is_torch_tensor(arguments[0]) && PyUnicode_CheckExact(arguments[1]) &&
      call(torch.is_profiled) == 0 && read_keywords(arguments + positional, keywords, options)) {
    const DType to = dtype_argument(arguments[1]);
    if (to == DType::undefined) PyErr_Clear();
    PyObject* const result = to == DType::undefined ? nullptr : cast_torch(arguments[0], to, options);
    if (result != nullptr || PyErr_Occurred() != nullptr) return result;
  }
  return PyObject_Vectorcall(dispatched, arguments, static_cast<std::size_t>(positional), keywords);
}

PyMethodDef operator_method = {"cast", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&run_operator)),
                               METH_FASTCALL | METH_KEYWORDS, nullptr};

}  // namespace

int load_torch(PyObject* parts) {
  bool complete = true;
  const auto part = [&](PyObject* from, const char* name) {
    PyObject* const found = PyDict_GetItemString(from, name);  // borrowed
    complete = complete && found != nullptr;
    Py_XINCREF(found);
    return found;
  };
  Torch made;
  made.tensor = reinterpret_cast<PyTypeObject*>(part(parts, "Tensor"));
  made.parameter = reinterpret_cast<PyTypeObject*>(part(parts, "Parameter"));
  made.strided = part(parts, "strided");
  made.empty_like = part(parts, "empty_like");
  made.from_numpy = part(parts, "from_numpy");
  made.is_grad_enabled = part(parts, "is_grad_enabled");
  made.is_profiled = part(parts, "is_profiled");
  made.forward_ad = part(parts, "forward_ad");
  for (std::size_t i = 0; i < observer_names.size(); ++i) made.observers[i] = part(parts, observer_names[i]);
  made.empty_like_keywords = Py_BuildValue("(s)", "dtype");
  PyObject* const dtypes = PyDict_GetItemString(parts, "dtypes");
  if (!complete || dtypes == nullptr || made.empty_like_keywords == nullptr) {
    PyErr_SetString(PyExc_TypeError, "a part of PyTorch is missing");
    return -1;
  }
  for (const DType dtype : all_dtypes()) {
    const auto code = static_cast<std::size_t>(dtype);
    PyObject* const found = PyDict_GetItemString(dtypes, std::string(name(dtype)).c_str());
    if (found == nullptr || code >= made.dtypes.size()) continue;
    Py_INCREF(found);
    made.dtypes[code] = found;
  }
  torch = made;
  return 0;
}

bool is_torch_tensor(PyObject* x) noexcept {
  return torch.tensor != nullptr && (Py_TYPE(x) == torch.tensor || Py_TYPE(x) == torch.parameter);
}

bool may_be_torch_tensor(PyObject* x) noexcept {
  if (torch.tensor != nullptr) return PyType_IsSubtype(Py_TYPE(x), torch.tensor) != 0;
  PyObject* const modules = PyImport_GetModuleDict();  // borrowed
  return modules == nullptr || PyDict_GetItemString(modules, "torch") != nullptr;
}

PyObject* cast_torch(PyObject* x, DType to, const CastOptions& options) {
  const DType from = dtype_of_tensor(x);
  if (from == DType::undefined || !has_torch_type(to) || is_observed(x) || !is_plain(x)) return nullptr;
  const std::int64_t count = answer_of(x, names().numel);
  std::byte* const src = count > 0 ? data_of(x) : nullptr;
  if (count < 0 || (count > 0 && src == nullptr)) {  // a tensor without memory, such as a functional one
    PyErr_Clear();
    return nullptr;
  }
  Owned result(new_tensor(x, to, count));
  if (result.get() == nullptr) return nullptr;
  std::byte* const dst = count > 0 ? data_of(result.get()) : nullptr;
  if (dst == nullptr && PyErr_Occurred() != nullptr) return nullptr;
  if (Result<void> done = cast_flat(src, from, dst, to, count, options); !done) return raise_error(done.error());
  return result.give();
}

PyObject* make_torch_operator(PyObject* dispatched) { return PyCFunction_New(&operator_method, dispatched); }

}  // namespace tensorcast::python
