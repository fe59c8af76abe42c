// SPDX-License-Identifier: Apache-2.0
// One row per type. A type is an enumerator in tensorcast/dtype.hpp and a row here; everything else derives from the
// row, unless the type is of a new family.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>

#include "dtype/float_format.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct DTypeRow {
  DType id = DType::undefined;
  std::string_view name;
  Family family = Family::floating;
  int bits = 0;  // of one packed element; 0 for text
  bool is_signed = false;
  int since_opset = 1;      // first opset whose Cast has the type; 0: ONNX lacks it
  FloatFormat format = {};  // floating only
  // The spellings that users may write besides the name: ONNX, OpenVINO, safetensors, NumPy (with its byte order mark,
  // as a bare i4 is four bits everywhere else), torch, short forms. Case and underscores do not matter.
  std::array<std::string_view, 12> spellings = {};
};

// In the order in which the project lists the types.
inline constexpr auto dtype_table = std::to_array<DTypeRow>({
    {.id = DType::float64,
     .name = "float64",
     .family = Family::floating,
     .bits = 64,
     .is_signed = true,
     .since_opset = 1,
     .format = {.exponent_bits = 11, .mantissa_bits = 52, .bias = 1023},
     .spellings = {"DOUBLE", "tensor(double)", "f64", "<f8", "torch.float64", "fp64"}},
    {.id = DType::float32,
     .name = "float32",
     .family = Family::floating,
     .bits = 32,
     .is_signed = true,
     .since_opset = 1,
     .format = {.exponent_bits = 8, .mantissa_bits = 23, .bias = 127},
     .spellings = {"FLOAT", "tensor(float)", "f32", "<f4", "torch.float32", "torch.float", "fp32", "single"}},
    {.id = DType::float16,
     .name = "float16",
     .family = Family::floating,
     .bits = 16,
     .is_signed = true,
     .since_opset = 1,
     .format = {.exponent_bits = 5, .mantissa_bits = 10, .bias = 15},
     .spellings = {"tensor(float16)", "f16", "<f2", "torch.float16", "half", "fp16"}},
    {.id = DType::bfloat16,
     .name = "bfloat16",
     .family = Family::floating,
     .bits = 16,
     .is_signed = true,
     .since_opset = 13,
     .format = {.exponent_bits = 8, .mantissa_bits = 7, .bias = 127},
     .spellings = {"tensor(bfloat16)", "bf16", "torch.bfloat16", "brain"}},
    {.id = DType::float8_e4m3fn,
     .name = "float8_e4m3fn",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .nonfinite = NonFinite::nan_all_ones},
     .spellings = {"FLOAT8E4M3FN", "tensor(float8e4m3fn)", "F8_E4M3", "torch.float8_e4m3fn", "e4m3fn", "fp8_e4m3fn",
                   "f8e4m3fn"}},
    {.id = DType::float8_e4m3fnuz,
     .name = "float8_e4m3fnuz",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 8, .nonfinite = NonFinite::nan_negative_zero},
     .spellings = {"FLOAT8E4M3FNUZ", "tensor(float8e4m3fnuz)", "F8_E4M3FNUZ", "torch.float8_e4m3fnuz", "e4m3fnuz",
                   "fp8e4m3fnuz", "binary8p4sf"}},
    {.id = DType::float8_e5m2,
     .name = "float8_e5m2",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 5, .mantissa_bits = 2, .bias = 15},
     .spellings = {"FLOAT8E5M2", "tensor(float8e5m2)", "f8e5m2", "F8_E5M2", "torch.float8_e5m2", "e5m2", "fp8e5m2"}},
    {.id = DType::float8_e5m2fnuz,
     .name = "float8_e5m2fnuz",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 5, .mantissa_bits = 2, .bias = 16, .nonfinite = NonFinite::nan_negative_zero},
     .spellings = {"FLOAT8E5M2FNUZ", "tensor(float8e5m2fnuz)", "F8_E5M2FNUZ", "torch.float8_e5m2fnuz", "e5m2fnuz",
                   "fp8e5m2fnuz", "binary8p3sf"}},
    {.id = DType::float8_e8m0fnu,
     .name = "float8_e8m0fnu",
     .family = Family::floating,
     .bits = 8,
     .is_signed = false,
     .since_opset = 24,
     .format = {.exponent_bits = 8,
                .mantissa_bits = 0,
                .bias = 127,
                .nonfinite = NonFinite::nan_all_ones,
                .has_sign = false,
                .has_zero = false},
     .spellings = {"FLOAT8E8M0", "tensor(float8e8m0)", "f8e8m0", "F8_E8M0", "torch.float8_e8m0fnu", "e8m0", "e8m0fnu",
                   "fp8e8m0", "ue8m0"}},
    {.id = DType::float8_e4m3,
     .name = "float8_e4m3",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 0,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 7}},
    {.id = DType::float8_e3m4,
     .name = "float8_e3m4",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 0,
     .format = {.exponent_bits = 3, .mantissa_bits = 4, .bias = 3},
     .spellings = {"e3m4", "f8e3m4", "fp8e3m4"}},
    {.id = DType::float8_e4m3b11fnuz,
     .name = "float8_e4m3b11fnuz",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 0,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 11, .nonfinite = NonFinite::nan_negative_zero},
     .spellings = {"e4m3b11fnuz", "e4m3b11", "f8e4m3b11fnuz", "fp8e4m3b11fnuz"}},
    {.id = DType::float8_e5m3fnu,
     .name = "float8_e5m3fnu",
     .family = Family::floating,
     .bits = 8,
     .is_signed = false,
     .since_opset = 0,
     .format = {.exponent_bits = 5,
                .mantissa_bits = 3,
                .bias = 15,
                .nonfinite = NonFinite::nan_all_ones,
                .has_sign = false},  // 0 to 114688
     .spellings = {"ue5m3", "e5m3fnu", "f8e5m3fnu", "fp8ue5m3"}},
    {.id = DType::binary8p4se,
     .name = "binary8p4se",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 0,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 8, .nonfinite = NonFinite::nan_and_infinity}},
    {.id = DType::binary8p3se,
     .name = "binary8p3se",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 0,
     .format = {.exponent_bits = 5, .mantissa_bits = 2, .bias = 16, .nonfinite = NonFinite::nan_and_infinity}},
    {.id = DType::float6_e2m3fn,
     .name = "float6_e2m3fn",
     .family = Family::floating,
     .bits = 6,
     .is_signed = true,
     .since_opset = 28,
     .format = {.exponent_bits = 2, .mantissa_bits = 3, .bias = 1, .nonfinite = NonFinite::none},
     .spellings = {"FLOAT6E2M3", "tensor(float6e2m3)", "f6e2m3", "F6_E2M3", "e2m3", "e2m3fn", "fp6e2m3", "f6e2m3fn"}},
    {.id = DType::float6_e3m2fn,
     .name = "float6_e3m2fn",
     .family = Family::floating,
     .bits = 6,
     .is_signed = true,
     .since_opset = 28,
     .format = {.exponent_bits = 3, .mantissa_bits = 2, .bias = 3, .nonfinite = NonFinite::none},
     .spellings = {"FLOAT6E3M2", "tensor(float6e3m2)", "f6e3m2", "F6_E3M2", "e3m2", "e3m2fn", "fp6e3m2", "f6e3m2fn"}},
    {.id = DType::float4_e2m1fn,
     .name = "float4_e2m1fn",
     .family = Family::floating,
     .bits = 4,
     .is_signed = true,
     .since_opset = 23,
     .format = {.exponent_bits = 2, .mantissa_bits = 1, .bias = 1, .nonfinite = NonFinite::none},
     .spellings = {"FLOAT4E2M1", "tensor(float4e2m1)", "f4e2m1", "F4", "torch.float4_e2m1fn_x2", "e2m1", "e2m1fn",
                   "fp4", "fp4e2m1", "f4e2m1fn"}},
    {.id = DType::int64,
     .name = "int64",
     .family = Family::integer,
     .bits = 64,
     .is_signed = true,
     .spellings = {"tensor(int64)", "i64", "<i8", "torch.int64", "long"}},
    {.id = DType::int32,
     .name = "int32",
     .family = Family::integer,
     .bits = 32,
     .is_signed = true,
     .spellings = {"tensor(int32)", "i32", "<i4", "torch.int32", "torch.int"}},
    {.id = DType::int16,
     .name = "int16",
     .family = Family::integer,
     .bits = 16,
     .is_signed = true,
     .spellings = {"tensor(int16)", "i16", "<i2", "torch.int16", "short"}},
    {.id = DType::int8,
     .name = "int8",
     .family = Family::integer,
     .bits = 8,
     .is_signed = true,
     .spellings = {"tensor(int8)", "I8", "|i1", "torch.int8"}},
    {.id = DType::int4,
     .name = "int4",
     .family = Family::integer,
     .bits = 4,
     .is_signed = true,
     .since_opset = 21,
     .spellings = {"tensor(int4)", "torch.int4"}},
    {.id = DType::int2,
     .name = "int2",
     .family = Family::integer,
     .bits = 2,
     .is_signed = true,
     .since_opset = 25,
     .spellings = {"tensor(int2)", "torch.int2"}},
    {.id = DType::uint64,
     .name = "uint64",
     .family = Family::integer,
     .bits = 64,
     .spellings = {"tensor(uint64)", "u64", "<u8", "torch.uint64"}},
    {.id = DType::uint32,
     .name = "uint32",
     .family = Family::integer,
     .bits = 32,
     .spellings = {"tensor(uint32)", "u32", "<u4", "torch.uint32"}},
    {.id = DType::uint16,
     .name = "uint16",
     .family = Family::integer,
     .bits = 16,
     .spellings = {"tensor(uint16)", "u16", "<u2", "torch.uint16"}},
    {.id = DType::uint8,
     .name = "uint8",
     .family = Family::integer,
     .bits = 8,
     .spellings = {"tensor(uint8)", "U8", "|u1", "torch.uint8"}},
    {.id = DType::uint4,
     .name = "uint4",
     .family = Family::integer,
     .bits = 4,
     .since_opset = 21,
     .spellings = {"tensor(uint4)", "torch.uint4"}},
    {.id = DType::uint2,
     .name = "uint2",
     .family = Family::integer,
     .bits = 2,
     .since_opset = 25,
     .spellings = {"tensor(uint2)", "torch.uint2"}},
    {.id = DType::boolean,
     .name = "bool",
     .family = Family::boolean,
     .bits = 8,
     .spellings = {"tensor(bool)", "boolean", "|b1", "?", "torch.bool"}},
    {.id = DType::string,
     .name = "string",
     .family = Family::text,
     .bits = 0,
     .since_opset = 9,
     .spellings = {"tensor(string)", "str"}},
});

// Types that have numbers: all but text.
inline constexpr std::size_t number_type_count = [] {
  std::size_t count = 0;
  for (const DTypeRow& row : dtype_table) count += row.family == Family::text ? 0 : 1;
  return count;
}();

namespace dtype_detail {
// Types that ONNX lacks have numbers from this on.
inline constexpr int first_own_code = 1001;

// One more than the largest number of a castable type, of ONNX's or of our own.
constexpr int code_limit(bool own) {
  int limit = own ? first_own_code : 0;
  for (const DTypeRow& row : dtype_table) {
    const auto code = static_cast<int>(row.id);
    if ((code >= first_own_code) == own && code >= limit) limit = code + 1;
  }
  return limit;
}
inline constexpr int onnx_code_limit = code_limit(false);
inline constexpr int own_code_limit = code_limit(true);

// The place of a number in row_index: ONNX's numbers, then our own. -1 for numbers of no type.
constexpr int place_of(std::int32_t code) noexcept {
  if (code >= 0 && code < onnx_code_limit) return code;
  return code >= first_own_code && code < own_code_limit ? code - first_own_code + onnx_code_limit : -1;
}

constexpr auto index_by_place() {
  std::array<signed char, onnx_code_limit + own_code_limit - first_own_code> index{};
  index.fill(-1);
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    const int place = place_of(static_cast<std::int32_t>(dtype_table[i].id));
    if (place >= 0) index[static_cast<std::size_t>(place)] = static_cast<signed char>(i);
  }
  return index;
}
inline constexpr auto row_index = index_by_place();

// Reports whether each row has a number of its own, in the range that its opset says, and the fields of floats add up.
constexpr bool table_is_sound() {
  std::size_t numbers = 0;
  for (const signed char index : row_index) numbers += index < 0 ? 0 : 1;
  for (const DTypeRow& row : dtype_table) {
    if ((static_cast<int>(row.id) < first_own_code) != (row.since_opset > 0) || row.id == DType::uint1) return false;
    if (row.family == Family::floating && row.format.bits() != row.bits) return false;
    if (row.bits != bit_width(row.id)) return false;  // which is public, so that it can be constexpr
  }
  return numbers == dtype_table.size();
}
static_assert(table_is_sound());
}  // namespace dtype_detail

// The row of a castable type, or null.
[[nodiscard]] constexpr const DTypeRow* find_row(DType dtype) noexcept {
  const int place = dtype_detail::place_of(static_cast<std::int32_t>(dtype));
  const int index = place < 0 ? -1 : dtype_detail::row_index[static_cast<std::size_t>(place)];
  return index < 0 ? nullptr : &dtype_table[static_cast<std::size_t>(index)];
}

[[nodiscard]] constexpr bool is_onnx_row(const DTypeRow& type) noexcept { return type.since_opset != 0; }

// Precondition: `dtype` is castable.
[[nodiscard]] constexpr const DTypeRow& row(DType dtype) noexcept { return *find_row(dtype); }

// The position of the row in the table. Precondition: `dtype` is castable.
[[nodiscard]] constexpr std::size_t row_number(DType dtype) noexcept {
  return static_cast<std::size_t>(find_row(dtype) - dtype_table.data());
}

// storage_bytes() of dtype.hpp: the largest size_t if it overflows.
[[nodiscard]] constexpr std::size_t storage_bytes(const DTypeRow& type, std::size_t count) noexcept {
  const auto bits = static_cast<std::size_t>(type.bits);
  if (bits < 8) return count / 8 * bits + (count % 8 * bits + 7) / 8;
  std::size_t bytes = 0;
  return __builtin_mul_overflow(count, bits / 8, &bytes) ? std::numeric_limits<std::size_t>::max() : bytes;
}

// Errors: unsupported for uint1, which can only be promoted; invalid_argument for a number without a type.
[[nodiscard]] Result<void> check_castable(DType dtype);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
