// SPDX-License-Identifier: Apache-2.0
// The two numberings of element types: ONNX's TensorProto.DataType, which is tc_dtype, and the runtime's enumeration.
// They differ for the newest three types. The runtime describes tensors and kernels in its own; declarations of
// operators and inferred types are in ONNX's up to release 1.30, and in the runtime's from 1.31 on.
#pragma once

#include <onnxruntime_c_api.h>

#include <tensorcast/c_api.h>

#include <vector>

namespace tensorcast::onnxruntime {

inline constexpr tc_dtype string_type = 8;
inline constexpr tc_dtype float8_e8m0fnu = 24;
inline constexpr tc_dtype uint2 = 25;
inline constexpr tc_dtype int2 = 26;

[[nodiscard]] constexpr bool is_new(tc_dtype type) { return type >= float8_e8m0fnu; }

// Reports whether elements are smaller than a byte.
[[nodiscard]] inline bool is_packed(tc_dtype type) { return tc_storage_bytes(type, 8) < 8; }

// Both give 0 (undefined) for a type that the other side lacks, such as complex64 and float6_e2m3fn.
[[nodiscard]] constexpr tc_dtype dtype_of(ONNXTensorElementDataType type) {
  const int number = type;
  if (number == 14 || number == 15 || number < 0 || number > 26) return 0;
  if (number < 24) return number;
  return number == 24 ? uint2 : number == 25 ? int2 : float8_e8m0fnu;
}

[[nodiscard]] constexpr int runtime_number(tc_dtype type) {
  if (type == 14 || type == 15 || type < 0 || type > 26) return 0;
  if (type < 24) return type;
  return type == uint2 ? 24 : type == int2 ? 25 : 26;
}

// What one release of the runtime knows of types.
struct TypeSystem {
  bool declares_in_onnx_numbers = true;
  std::vector<tc_dtype> types;  // of its tensors, as far as tensorcast has them

  // The number of `type` in declarations of operators.
  [[nodiscard]] ONNXTensorElementDataType declared(tc_dtype type) const {
    return static_cast<ONNXTensorElementDataType>(declares_in_onnx_numbers ? type : runtime_number(type));
  }
};

// Finds out by making tensors.
[[nodiscard]] TypeSystem type_system(const OrtApi& api);

}  // namespace tensorcast::onnxruntime
