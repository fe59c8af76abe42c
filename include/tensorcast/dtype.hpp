// SPDX-License-Identifier: Apache-2.0
// The element types: those of ONNX and of others, their facts and their spellings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Numbers never change: below 1000, those of ONNX `TensorProto.DataType`; from 1001 on, our own for types that ONNX
// lacks.
enum class DType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
  float8_e4m3fn = 17,
  float8_e4m3fnuz = 18,
  float8_e5m2 = 19,
  float8_e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4_e2m1fn = 23,
  float8_e8m0fnu = 24,
  uint2 = 25,
  int2 = 26,
  float6_e2m3fn = 27,
  float6_e3m2fn = 28,
  // OpenVINO's one-bit unsigned integer. Promotion accepts it, casts do not.
  uint1 = 1001,
  float8_e4m3 = 1002,         // IEEE's, with infinities; PyTorch's type is float8_e4m3fn
  float8_e3m4 = 1003,         // IEEE's
  float8_e4m3b11fnuz = 1004,  // ml_dtypes'
  float8_e5m3fnu = 1005,      // CUDA's UE5M3, without sign
  binary8p4se = 1006,         // IEEE P3109's, with infinities
  binary8p3se = 1007,
};

enum class Family : std::uint8_t { boolean, integer, floating, text };

// The castable types: the 26 of ONNX without complex, and 6 that ONNX lacks, in the order in which the project lists
// them: floats from wide to narrow, signed integers, unsigned integers, bool, string.
[[nodiscard]] TENSORCAST_API std::span<const DType> all_dtypes() noexcept;

// Reports whether `dtype` is one of all_dtypes(); false for undefined, uint1 and numbers without a type.
[[nodiscard]] TENSORCAST_API bool is_castable(DType dtype) noexcept;

// Reports whether `dtype` is one of the 26 castable types of ONNX. Only these have opsets.
[[nodiscard]] TENSORCAST_API bool is_onnx(DType dtype) noexcept;

// Canonical name, e.g. "float8_e4m3fn"; "undefined" for numbers without a type.
[[nodiscard]] TENSORCAST_API std::string_view name(DType dtype) noexcept;

// Finds the type that `spelling` names, in any case: canonical, ONNX name or number, OpenVINO, safetensors, NumPy with
// a byte order (`<f4`), torch, short forms. Errors: invalid_argument, with the candidates, for words that mean
// different types to different systems (f4 f8 i1 i2 i4 i8 u1 u2 u4 u8, fp8 float8 fp6 float6, int float; in capitals
// FLOAT is ONNX's, and F4, I8 and U8 are safetensors'); with the nearest types for other words.
[[nodiscard]] TENSORCAST_API Result<DType> parse_dtype(std::string_view spelling);

// Bits of one packed element: 64 ... 1; 8 for bool; 0 for string and unknown numbers.
[[nodiscard]] constexpr int bit_width(DType dtype) noexcept {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
    case DType::uint64:
      return 64;
    case DType::float32:
    case DType::int32:
    case DType::uint32:
      return 32;
    case DType::float16:
    case DType::bfloat16:
    case DType::int16:
    case DType::uint16:
      return 16;
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
    case DType::float8_e4m3:
    case DType::float8_e3m4:
    case DType::float8_e4m3b11fnuz:
    case DType::float8_e5m3fnu:
    case DType::binary8p4se:
    case DType::binary8p3se:
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return 8;
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
      return 6;
    case DType::float4_e2m1fn:
    case DType::int4:
    case DType::uint4:
      return 4;
    case DType::int2:
    case DType::uint2:
      return 2;
    case DType::uint1:
      return 1;
    case DType::undefined:
    case DType::string:
      break;
  }
  return 0;
}
[[nodiscard]] TENSORCAST_API Family family(DType dtype) noexcept;
[[nodiscard]] TENSORCAST_API bool is_signed(DType dtype) noexcept;  // has negative values

// The first opset whose Cast has the type: 1 for float32, 28 for float6_e2m3fn; 0 for types that ONNX lacks and unknown
// numbers.
[[nodiscard]] TENSORCAST_API int since_opset(DType dtype) noexcept;

// Bytes of `count` packed elements: ceil(count * bits / 8). SIZE_MAX on overflow; 0 for string.
[[nodiscard]] constexpr std::size_t storage_bytes(DType dtype, std::size_t count) noexcept {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  if (bits < 8) return count / 8 * bits + (count % 8 * bits + 7) / 8;
  return count > SIZE_MAX / (bits / 8) ? SIZE_MAX : count * (bits / 8);
}

// A type as `tcast types` and the generated documentation show it.
struct DTypeFacts {
  DType dtype = DType::undefined;
  std::string_view name = {};
  Family family = Family::text;
  int bits = 0;
  int exponent_bits = 0;  // floating only
  int mantissa_bits = 0;  // floating only
  int bias = 0;           // floating only
  bool has_infinity = false;
  bool has_nan = false;
  double lowest = 0.0;             // most negative finite value
  double largest = 0.0;            // most positive finite value
  double smallest_positive = 0.0;  // smallest value above zero
  int since_opset = 0;
  std::string_view special_codes = {};               // e.g. "NaN 0x7F 0xFF", empty when every code is a number
  std::span<const std::string_view> spellings = {};  // all accepted, canonical first
};
// The facts of any number: those of `undefined`, all zero and empty, if no type has it.
[[nodiscard]] TENSORCAST_API const DTypeFacts& facts(DType dtype) noexcept;

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
