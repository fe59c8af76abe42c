// SPDX-License-Identifier: Apache-2.0
#include "element_type.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime.hpp"

namespace tensorcast::onnxruntime {
namespace {

// The type that the runtime reports for a tensor made as of type `number`; undefined if it refuses.
ONNXTensorElementDataType reported(const OrtApi& api, const OrtMemoryInfo& memory, int number) {
  std::array<std::byte, 8> bytes = {};
  const std::int64_t shape = 1;
  OrtValue* tensor = nullptr;
  if (!succeeds(api, api.CreateTensorWithDataAsOrtValue(&memory, bytes.data(), bytes.size(), &shape, 1,
                                                        static_cast<ONNXTensorElementDataType>(number), &tensor))) {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  OrtTensorTypeAndShapeInfo* info = nullptr;
  if (succeeds(api, api.GetTensorTypeAndShape(tensor, &info))) {
    succeeds(api, api.GetTensorElementType(info, &type));
    api.ReleaseTensorTypeAndShapeInfo(info);
  }
  api.ReleaseValue(tensor);
  return type;
}

}  // namespace

TypeSystem type_system(const OrtApi& api) {
  OrtMemoryInfo* memory = nullptr;
  check(api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  TypeSystem system;
  system.declares_in_onnx_numbers = reported(api, *memory, uint2) != runtime_number(int2);
  for (tc_dtype type = 1; type <= int2; ++type) {
    const bool has = type == string_type || dtype_of(reported(api, *memory, system.declared(type))) == type;
    if (has) system.types.push_back(type);
  }
  api.ReleaseMemoryInfo(memory);
  return system;
}

}  // namespace tensorcast::onnxruntime
