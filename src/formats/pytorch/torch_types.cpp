// SPDX-License-Identifier: Apache-2.0
#include "formats/pytorch/torch_types.hpp"

#include <array>

#include "dtype/lookup.hpp"

namespace tensorcast::formats::pytorch {
namespace {

constexpr auto types = std::to_array<TorchType>({
    {"float64", "DoubleStorage", "f8", DType::float64, "", 8, 8},
    {"float32", "FloatStorage", "f4", DType::float32, "", 4, 4},
    {"float16", "HalfStorage", "f2", DType::float16, "", 2, 2},
    {"bfloat16", "BFloat16Storage", "bfloat16", DType::bfloat16, "", 2, 2},
    {"int64", "LongStorage", "i8", DType::int64, "", 8, 8},
    {"int32", "IntStorage", "i4", DType::int32, "", 4, 4},
    {"int16", "ShortStorage", "i2", DType::int16, "", 2, 2},
    {"int8", "CharStorage", "i1", DType::int8, "", 1, 1},
    {"uint8", "ByteStorage", "u1", DType::uint8, "", 1, 1},
    {"bool", "BoolStorage", "b1", DType::boolean, "", 1, 1},
    {"uint16", "", "u2", DType::uint16, "", 2, 2},
    {"uint32", "", "u4", DType::uint32, "", 4, 4},
    {"uint64", "", "u8", DType::uint64, "", 8, 8},
    {"float8_e4m3fn", "", "float8_e4m3fn", DType::float8_e4m3fn, "", 1, 1},
    {"float8_e5m2", "", "float8_e5m2", DType::float8_e5m2, "", 1, 1},
    {"float8_e4m3fnuz", "", "float8_e4m3fnuz", DType::float8_e4m3fnuz, "", 1, 1},
    {"float8_e5m2fnuz", "", "float8_e5m2fnuz", DType::float8_e5m2fnuz, "", 1, 1},
    {"float8_e8m0fnu", "", "float8_e8m0fnu", DType::float8_e8m0fnu, "", 1, 1},
    {"float8_e4m3", "", "float8_e4m3", DType::float8_e4m3, "", 1, 1},  // of ml_dtypes alone, as the next two
    {"float8_e3m4", "", "float8_e3m4", DType::float8_e3m4, "", 1, 1},
    {"float8_e4m3b11fnuz", "", "float8_e4m3b11fnuz", DType::float8_e4m3b11fnuz, "", 1, 1},
    {"float4_e2m1fn_x2", "", "", DType::float4_e2m1fn, "", 1, 1, 2},
    {"complex32", "", "", DType::undefined, "complex32", 4, 2},
    {"complex64", "ComplexFloatStorage", "c8", DType::undefined, "C64", 8, 4},  // safetensors' name
    {"complex128", "ComplexDoubleStorage", "c16", DType::undefined, "complex128", 16, 8},
    // Of quantized tensors, which are not read.
    {"qint8", "QInt8Storage", "", DType::undefined, "qint8", 1, 1},
    {"quint8", "QUInt8Storage", "", DType::undefined, "quint8", 1, 1},
    {"qint32", "QInt32Storage", "", DType::undefined, "qint32", 4, 4},
    {"quint4x2", "QUInt4x2Storage", "", DType::undefined, "quint4x2", 1, 1},
    {"quint2x4", "QUInt2x4Storage", "", DType::undefined, "quint2x4", 1, 1},
});

const TorchType* find(std::string_view TorchType::*field, std::string_view wanted) noexcept {
  return wanted.empty() ? nullptr : find_row(types, field, wanted);
}

}  // namespace

const TorchType* find_torch_type(std::string_view name) noexcept { return find(&TorchType::name, name); }
const TorchType* find_storage_type(std::string_view storage) noexcept { return find(&TorchType::storage, storage); }
const TorchType* find_numpy_type(std::string_view descriptor) noexcept { return find(&TorchType::numpy, descriptor); }

}  // namespace tensorcast::formats::pytorch
