// SPDX-License-Identifier: Apache-2.0
// Component core. The element types by name: their spellings, their opsets and all their facts; facts.hpp has the
// constant ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

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

// The first opset whose Cast has the type: 1 for float32, 28 for float6_e2m3fn; 0 for types that ONNX lacks and unknown
// numbers.
[[nodiscard]] TENSORCAST_API int since_opset(DType dtype) noexcept;

// A type as `tcast types` and the generated documentation show it.
struct DTypeFacts : NumberFacts {
  DType dtype = DType::undefined;
  std::string_view name = {};
  Family family = Family::text;
  int since_opset = 0;
  std::string_view special_codes = {};               // e.g. "NaN 0x7F 0xFF", empty when every code is a number
  std::span<const std::string_view> spellings = {};  // all accepted, canonical first
};
// The facts of any number: those of `undefined`, all zero and empty, if no type has it.
[[nodiscard]] TENSORCAST_API const DTypeFacts& facts(DType dtype) noexcept;

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
