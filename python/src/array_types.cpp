#include "array_types.hpp"

#include <array>

namespace tensorcast::python {
namespace {

constexpr int type_number_limit = 1024;  // ml_dtypes registers its types from 256 upwards

std::array<ArrayType, type_number_limit> type_of_number;
std::array<PyArray_Descr*, 27> descr_of_dtype;

struct Named {
  const char* name;
  DType dtype;
};
constexpr Named numpy_types[] = {
    {"float64", DType::float64}, {"float32", DType::float32},  {"float16", DType::float16}, {"int64", DType::int64},
    {"int32", DType::int32},     {"int16", DType::int16},      {"int8", DType::int8},       {"uint64", DType::uint64},
    {"uint32", DType::uint32},   {"uint16", DType::uint16},    {"uint8", DType::uint8},     {"bool_", DType::boolean},
    {"longlong", DType::int64},  {"ulonglong", DType::uint64},
};
constexpr Named ml_types[] = {
    {"bfloat16", DType::bfloat16},
    {"float8_e4m3fn", DType::float8_e4m3fn},
    {"float8_e4m3fnuz", DType::float8_e4m3fnuz},
    {"float8_e5m2", DType::float8_e5m2},
    {"float8_e5m2fnuz", DType::float8_e5m2fnuz},
    {"float8_e8m0fnu", DType::float8_e8m0fnu},
    {"float4_e2m1fn", DType::float4_e2m1fn},
    {"int4", DType::int4},
    {"int2", DType::int2},
    {"uint4", DType::uint4},
    {"uint2", DType::uint2},
};

int register_type(PyObject* module, const Named& named) {
  PyObject* scalar_type = PyObject_GetAttrString(module, named.name);
  if (scalar_type == nullptr) {
    PyErr_Clear();  // an older ml_dtypes without this type
    return 0;
  }
  PyArray_Descr* descr = nullptr;
  const int converted = PyArray_DescrConverter(scalar_type, &descr);
  Py_DECREF(scalar_type);
  if (converted != NPY_SUCCEED) return -1;
  if (descr->type_num >= 0 && descr->type_num < type_number_limit) {
    type_of_number[static_cast<std::size_t>(descr->type_num)] = {named.dtype, bit_width(named.dtype) < 8};
  }
  PyArray_Descr*& slot = descr_of_dtype[static_cast<std::size_t>(named.dtype)];
  if (slot == nullptr) {
    slot = descr;  // kept for the life of the process
  } else {
    Py_DECREF(descr);
  }
  return 0;
}

template <std::size_t count>
int register_types(const char* module_name, const Named (&types)[count]) {
  PyObject* module = PyImport_ImportModule(module_name);
  if (module == nullptr) return -1;
  int status = 0;
  for (const Named& named : types) status |= register_type(module, named);
  Py_DECREF(module);
  return status;
}

}  // namespace

int load_array_types() {
  return register_types("numpy", numpy_types) != 0 || register_types("ml_dtypes", ml_types) != 0 ? -1 : 0;
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
