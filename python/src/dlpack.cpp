// SPDX-License-Identifier: Apache-2.0
#include "dlpack.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <type_traits>
#include <vector>

#include "array_types.hpp"
#include "torch_cast.hpp"

namespace tensorcast::python {
namespace {

// The binary interface of DLPack 1, https://dmlc.github.io/dlpack/latest/c_api.html
struct DLDevice {
  std::int32_t type, id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: C order
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
constexpr std::uint64_t flag_read_only = 1;
constexpr std::uint64_t flag_copied = 2;
constexpr std::uint64_t flag_one_per_byte = 4;
constexpr std::int32_t device_cpu = 1;
constexpr std::int32_t device_cuda_host = 3;

template <class Managed>
struct CapsuleName;
template <>
struct CapsuleName<DLManagedTensor> {
  static constexpr const char* fresh = "dltensor";
  static constexpr const char* used = "used_dltensor";
};
template <>
struct CapsuleName<DLManagedTensorVersioned> {
  static constexpr const char* fresh = "dltensor_versioned";
  static constexpr const char* used = "used_dltensor_versioned";
};

struct Coded {
  DType dtype;
  std::uint8_t code, bits;
};
constexpr Coded types[] = {
    {DType::int2, 0, 2},
    {DType::int4, 0, 4},
    {DType::int8, 0, 8},
    {DType::int16, 0, 16},
    {DType::int32, 0, 32},
    {DType::int64, 0, 64},
    {DType::uint2, 1, 2},
    {DType::uint4, 1, 4},
    {DType::uint8, 1, 8},
    {DType::uint16, 1, 16},
    {DType::uint32, 1, 32},
    {DType::uint64, 1, 64},
    {DType::float16, 2, 16},
    {DType::float32, 2, 32},
    {DType::float64, 2, 64},
    {DType::bfloat16, 4, 16},
    {DType::boolean, 6, 8},
    {DType::float8_e3m4, 7, 8},
    {DType::float8_e4m3, 8, 8},
    {DType::float8_e4m3b11fnuz, 9, 8},
    {DType::float8_e4m3fn, 10, 8},
    {DType::float8_e4m3fnuz, 11, 8},
    {DType::float8_e5m2, 12, 8},
    {DType::float8_e5m2fnuz, 13, 8},
    {DType::float8_e8m0fnu, 14, 8},
    {DType::float6_e2m3fn, 15, 6},
    {DType::float6_e3m2fn, 16, 6},
    {DType::float4_e2m1fn, 17, 4},
};

DType dtype_of(const DLDataType& type) {
  for (const Coded& known : types) {
    if (known.code == type.code && known.bits == type.bits) return known.dtype;
  }
  return DType::undefined;
}

// Returns the tensor to its library. Its deleter may run Python, which must not begin with an error that is set.
template <class Managed>
void release(PyObject* capsule) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, CapsuleName<Managed>::used));
  if (managed == nullptr) {
    PyErr_Clear();
  } else if (managed->deleter != nullptr) {
    managed->deleter(managed);
  }
  if (PyErr_Occurred() != nullptr) PyErr_WriteUnraisable(nullptr);
  PyErr_Restore(type, value, trace);
}

// Checks what another library says before it is used. Returns false with a Python error set.
bool check(const DLTensor& tensor) {
  const auto fail = [](const char* why) {
    PyErr_Format(PyExc_BufferError, "the DLPack tensor is damaged: %s", why);
    return false;
  };
  if (tensor.device.type != device_cpu && tensor.device.type != device_cuda_host) {
    PyErr_Format(PyExc_BufferError, "the DLPack tensor is on device %d, not in the host's memory", tensor.device.type);
    return false;
  }
  if (tensor.ndim < 0 || tensor.ndim > NPY_MAXDIMS) {
    PyErr_Format(PyExc_BufferError, "the DLPack tensor has %d dimensions; NumPy has 0 to %d", tensor.ndim, NPY_MAXDIMS);
    return false;
  }
  if (tensor.ndim > 0 && tensor.shape == nullptr) return fail("it has no shape");
  // More than the bytes from the first element to the last one; addresses must not wrap around.
  constexpr std::int64_t most_bytes_each = 8;
  std::int64_t count = 1;
  std::int64_t reach = tensor.dtype.lanes * most_bytes_each;
  bool empty = false;
  for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) {
    const std::int64_t length = tensor.shape[axis];
    if (length < 0) return fail("a dimension is negative");
    empty = empty || length == 0;
    if (length != 0 && __builtin_mul_overflow(count, length, &count)) return fail("its shape is too large");
    if (tensor.strides == nullptr) continue;
    std::int64_t step = 0;
    std::int64_t distance = 0;
    const bool overflow = tensor.strides[axis] == INT64_MIN ||
                          __builtin_mul_overflow(std::abs(tensor.strides[axis]), most_bytes_each, &step) ||
                          __builtin_mul_overflow(step, std::max<std::int64_t>(length, 1) - 1, &distance) ||
                          __builtin_add_overflow(reach, distance, &reach);
    if (overflow) return fail("its strides are too large");
  }
  if (empty) return true;
  if (tensor.strides == nullptr && __builtin_mul_overflow(reach, count, &reach)) return fail("its shape is too large");
  if (tensor.data == nullptr) return fail("it has elements, and no memory");
  std::uintptr_t last = 0;
  if (__builtin_add_overflow(reinterpret_cast<std::uintptr_t>(tensor.data), tensor.byte_offset, &last) ||
      __builtin_add_overflow(last, static_cast<std::uintptr_t>(reach), &last)) {
    return fail("its offset is too large");
  }
  return true;
}

bool is_c_order(const DLTensor& tensor) {
  std::int64_t expected = 1;
  for (std::int32_t axis = tensor.ndim; axis-- > 0;) {
    if (tensor.shape[axis] == 0) return true;
    if (tensor.strides != nullptr && tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

PyObject* shape_tuple(const std::vector<npy_intp>& shape) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(shape.size()));
  for (std::size_t axis = 0; tuple != nullptr && axis < shape.size(); ++axis) {
    PyObject* length = PyLong_FromLongLong(shape[axis]);
    if (length == nullptr) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(axis), length);
  }
  return tuple;
}

// A view of a tensor's memory. Elements of a packed type are flat bytes.
struct View {
  PyObject* array = nullptr;  // owned; null: a Python error is set
  DType dtype = DType::undefined;
  bool is_packed = false;
  std::vector<npy_intp> shape;  // in elements
};

// `owner` is borrowed.
View make_view(const DLTensor& tensor, bool one_per_byte, bool read_only, PyObject* owner) {
  const DType dtype = dtype_of(tensor.dtype);
  const int lanes = tensor.dtype.lanes;
  const bool packed = bit_width(dtype) < 8 && !one_per_byte;
  if (dtype == DType::undefined || (lanes != 1 && !(packed && lanes * bit_width(dtype) == 8))) {
    PyErr_Format(PyExc_TypeError, "no cast knows the DLPack type of code %d with %d bits and %d lanes",
                 tensor.dtype.code, tensor.dtype.bits, lanes);
    return {};
  }
  std::vector<npy_intp> shape(tensor.shape, tensor.shape + tensor.ndim);
  if (lanes > 1 && !shape.empty()) shape.back() *= lanes;  // a scalar of several lanes does not exist in any library
  npy_intp count = 1;
  for (const npy_intp length : shape) count *= length;

  std::vector<npy_intp> lengths = shape;
  std::vector<npy_intp> strides;
  PyArray_Descr* descr = array_descr(packed ? DType::uint8 : dtype);
  if (packed) {
    if (!is_c_order(tensor)) {
      PyErr_Format(PyExc_TypeError, "packed %s must be contiguous; make a contiguous copy first", name(dtype).data());
      return {};
    }
    lengths = {static_cast<npy_intp>(storage_bytes(dtype, static_cast<std::size_t>(count)))};
  } else if (tensor.strides != nullptr) {
    for (std::int32_t axis = 0; axis < tensor.ndim; ++axis) {
      strides.push_back(tensor.strides[axis] * std::max(1, bit_width(dtype) / 8));
    }
  }
  if (descr == nullptr) {
    PyErr_Format(PyExc_TypeError, "the installed ml_dtypes has no %s; upgrade it", name(dtype).data());
    return {};
  }
  static std::byte nothing[8];  // NumPy would allocate where an empty tensor has no memory
  void* data = count == 0 ? nothing : static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  Py_INCREF(reinterpret_cast<PyObject*>(descr));
  PyObject* array = PyArray_NewFromDescr(&PyArray_Type, descr, static_cast<int>(lengths.size()), lengths.data(),
                                         strides.empty() ? nullptr : strides.data(), data,
                                         read_only ? 0 : NPY_ARRAY_WRITEABLE, nullptr);
  if (array == nullptr) return {};
  Py_INCREF(owner);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner) != 0) {
    Py_DECREF(array);
    return {};
  }
  PyArray_UpdateFlags(reinterpret_cast<PyArrayObject*>(array),
                      NPY_ARRAY_ALIGNED | NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS);
  return {array, dtype, packed, std::move(shape)};
}

template <class Managed>
View take(PyObject* capsule) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, CapsuleName<Managed>::fresh));
  if (managed == nullptr) return {};
  bool one_per_byte = false;
  bool read_only = false;
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    if (managed->major != 1) {
      PyErr_Format(PyExc_BufferError, "DLPack version %u.%u is not 1", managed->major, managed->minor);
      return {};
    }
    one_per_byte = (managed->flags & flag_one_per_byte) != 0;
    read_only = (managed->flags & flag_read_only) != 0;
  }
  if (!check(managed->tensor)) return {};  // the capsule keeps the tensor
  PyObject* owner = PyCapsule_New(managed, CapsuleName<Managed>::used, &release<Managed>);
  if (owner == nullptr) return {};
  if (PyCapsule_SetName(capsule, CapsuleName<Managed>::used) != 0 || PyCapsule_SetDestructor(capsule, nullptr) != 0) {
    PyCapsule_SetDestructor(owner, nullptr);
    Py_DECREF(owner);
    return {};
  }
  View result = make_view(managed->tensor, one_per_byte, read_only, owner);
  Py_DECREF(owner);
  return result;
}

View view_of(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, CapsuleName<DLManagedTensorVersioned>::fresh)) {
    return take<DLManagedTensorVersioned>(capsule);
  }
  if (PyCapsule_IsValid(capsule, CapsuleName<DLManagedTensor>::fresh)) return take<DLManagedTensor>(capsule);
  PyErr_Format(PyExc_TypeError, "%R is not a DLPack capsule, or was used before", capsule);
  return {};
}

bool is_host_device(PyObject* device) {
  if (!PyTuple_Check(device) || PyTuple_Size(device) != 2) return false;
  const long type = PyLong_AsLong(PyTuple_GetItem(device, 0));
  return type == device_cpu || type == device_cuda_host;
}

// The data that a capsule of tensorcast keeps alive.
template <class Managed>
struct Exported {
  Managed managed = {};
  PyArrayObject* array = nullptr;
  std::vector<std::int64_t> shape, strides;
};

template <class Managed>
void delete_exported(Managed* managed) {
  const PyGILState_STATE state = PyGILState_Ensure();
  auto* exported = static_cast<Exported<Managed>*>(managed->context);
  Py_DECREF(reinterpret_cast<PyObject*>(exported->array));
  delete exported;
  PyGILState_Release(state);
}

template <class Managed>
void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, CapsuleName<Managed>::fresh)) return;  // a consumer took it
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, CapsuleName<Managed>::fresh));
  managed->deleter(managed);
}

template <class Managed>
PyObject* give(PyArrayObject* array, const Coded& type, std::uint64_t flags) {
  auto exported = std::make_unique<Exported<Managed>>();
  const int rank = PyArray_NDIM(array);
  for (int axis = 0; axis < rank; ++axis) {
    exported->shape.push_back(PyArray_DIM(array, axis));
    exported->strides.push_back(PyArray_STRIDE(array, axis) / PyArray_ITEMSIZE(array));
  }
  Managed& managed = exported->managed;
  managed.context = exported.get();
  managed.deleter = &delete_exported<Managed>;
  managed.tensor = {.data = PyArray_DATA(array),
                    .device = {device_cpu, 0},
                    .ndim = rank,
                    .dtype = {type.code, type.bits, 1},
                    .shape = exported->shape.data(),
                    .strides = exported->strides.data(),
                    .byte_offset = 0};
  if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) {
    managed.major = 1;
    managed.minor = 1;
    managed.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&managed, CapsuleName<Managed>::fresh, &drop_capsule<Managed>);
  if (capsule == nullptr) return nullptr;
  Py_INCREF(reinterpret_cast<PyObject*>(array));
  exported.release()->array = array;
  return capsule;
}

}  // namespace

PyObject* from_dlpack(PyObject* capsule) {
  const View view = view_of(capsule);
  if (view.array == nullptr) return nullptr;
  PyObject* const shape = shape_tuple(view.shape);
  if (shape == nullptr) {
    Py_DECREF(view.array);
    return nullptr;
  }
  return Py_BuildValue("(NsN)", view.array, name(view.dtype).data(), shape);
}

bool lends_memory(PyObject* x) noexcept {
  PyTypeObject* const type = Py_TYPE(x);
  static PyTypeObject* known = nullptr;  // the last type that does; owned
  if (type == known) return true;
  auto* const object = reinterpret_cast<PyObject*>(type);
  if (PyObject_HasAttrString(object, "__dlpack__") == 0 || PyObject_HasAttrString(object, "__dlpack_device__") == 0 ||
      PyObject_HasAttrString(object, "__array_namespace__") != 0 || PyArray_Check(x) || PyArray_IsScalar(x, Generic) ||
      may_be_torch_tensor(x)) {
    return false;
  }
  Py_INCREF(object);
  Py_XDECREF(reinterpret_cast<PyObject*>(known));
  known = type;
  return true;
}

PyObject* array_on_dlpack(PyObject* x) {
  static PyObject* const device_of = PyUnicode_InternFromString("__dlpack_device__");
  static PyObject* const capsule_of = PyUnicode_InternFromString("__dlpack__");
  static PyObject* const keywords = Py_BuildValue("(s)", "max_version");
  static PyObject* const newest = Py_BuildValue("(ii)", 1, 1);
  PyObject* const device = PyObject_VectorcallMethod(device_of, &x, 1, nullptr);
  const bool is_on_host = device != nullptr && is_host_device(device);
  Py_XDECREF(device);
  PyObject* const arguments[] = {x, newest};
  PyObject* const capsule = is_on_host ? PyObject_VectorcallMethod(capsule_of, arguments, 1, keywords) : nullptr;
  if (capsule == nullptr) return nullptr;
  const View view = view_of(capsule);
  Py_DECREF(capsule);
  if (view.array == nullptr || !view.is_packed) return view.array;
  Py_DECREF(view.array);
  return nullptr;
}

PyObject* to_dlpack(PyObject* object, bool versioned, bool copied) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const DType dtype = PyArray_Check(object) ? array_type(PyArray_DESCR(array)).dtype : DType::undefined;
  const auto* const found =
      std::find_if(std::begin(types), std::end(types), [&](const Coded& type) { return type.dtype == dtype; });
  if (dtype == DType::undefined || found == std::end(types)) {
    return PyErr_Format(PyExc_BufferError, "DLPack has no type for %R",
                        PyArray_Check(object) ? reinterpret_cast<PyObject*>(PyArray_DESCR(array)) : object);
  }
  if (!PyArray_ISNOTSWAPPED(array)) {
    PyErr_SetString(PyExc_BufferError,
                    "DLPack has no byte orders; cast the array to this machine's with tensorcast.cast");
    return nullptr;
  }
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
    if (PyArray_DIM(array, axis) > 1 && PyArray_STRIDE(array, axis) % PyArray_ITEMSIZE(array) != 0) {
      PyErr_SetString(PyExc_BufferError, "DLPack has no strides of part of an element; make a contiguous copy first");
      return nullptr;
    }
  }
  const bool read_only = !PyArray_ISWRITEABLE(array);
  if (versioned) {
    return give<DLManagedTensorVersioned>(
        array, *found,
        (found->bits < 8 ? flag_one_per_byte : 0) | (read_only ? flag_read_only : 0) | (copied ? flag_copied : 0));
  }
  if (found->bits < 8) {
    return PyErr_Format(PyExc_BufferError, "%s with a byte per element needs a DLPack of version 1.1 on the other side",
                        name(dtype).data());
  }
  if (read_only) {
    PyErr_SetString(PyExc_BufferError,
                    "the array is read-only, which only DLPack 1 can say; the other side may ask for a copy");
    return nullptr;
  }
  return give<DLManagedTensor>(array, *found, 0);
}

}  // namespace tensorcast::python
