// One row per type. Adding a type: an enumerator in tensorcast/dtype.hpp, a row here, and nothing else unless it is of
// a new family.
#pragma once

#include <array>
#include <string_view>

#include "dtype/float_format.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast {

struct DTypeRow {
  DType id = DType::undefined;
  std::string_view name;
  Family family = Family::floating;
  int bits = 0;  // of one packed element; 0 for text
  bool is_signed = false;
  int since_opset = 1;      // first opset whose Cast has the type
  FloatFormat format = {};  // floating only
};

// In the order in which the project lists the types.
inline constexpr std::array<DTypeRow, 24> dtype_table = {{
    {.id = DType::float64,
     .name = "float64",
     .family = Family::floating,
     .bits = 64,
     .is_signed = true,
     .since_opset = 1,
     .format = {.exponent_bits = 11, .mantissa_bits = 52, .bias = 1023}},
    {.id = DType::float32,
     .name = "float32",
     .family = Family::floating,
     .bits = 32,
     .is_signed = true,
     .since_opset = 1,
     .format = {.exponent_bits = 8, .mantissa_bits = 23, .bias = 127}},
    {.id = DType::float16,
     .name = "float16",
     .family = Family::floating,
     .bits = 16,
     .is_signed = true,
     .since_opset = 1,
     .format = {.exponent_bits = 5, .mantissa_bits = 10, .bias = 15}},
    {.id = DType::bfloat16,
     .name = "bfloat16",
     .family = Family::floating,
     .bits = 16,
     .is_signed = true,
     .since_opset = 13,
     .format = {.exponent_bits = 8, .mantissa_bits = 7, .bias = 127}},
    {.id = DType::float8_e4m3fn,
     .name = "float8_e4m3fn",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 7, .nonfinite = NonFinite::nan_all_ones}},
    {.id = DType::float8_e4m3fnuz,
     .name = "float8_e4m3fnuz",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 4, .mantissa_bits = 3, .bias = 8, .nonfinite = NonFinite::nan_negative_zero}},
    {.id = DType::float8_e5m2,
     .name = "float8_e5m2",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 5, .mantissa_bits = 2, .bias = 15}},
    {.id = DType::float8_e5m2fnuz,
     .name = "float8_e5m2fnuz",
     .family = Family::floating,
     .bits = 8,
     .is_signed = true,
     .since_opset = 19,
     .format = {.exponent_bits = 5, .mantissa_bits = 2, .bias = 16, .nonfinite = NonFinite::nan_negative_zero}},
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
                .has_zero = false}},
    {.id = DType::float4_e2m1fn,
     .name = "float4_e2m1fn",
     .family = Family::floating,
     .bits = 4,
     .is_signed = true,
     .since_opset = 23,
     .format = {.exponent_bits = 2, .mantissa_bits = 1, .bias = 1, .nonfinite = NonFinite::none}},
    {.id = DType::int64, .name = "int64", .family = Family::integer, .bits = 64, .is_signed = true},
    {.id = DType::int32, .name = "int32", .family = Family::integer, .bits = 32, .is_signed = true},
    {.id = DType::int16, .name = "int16", .family = Family::integer, .bits = 16, .is_signed = true},
    {.id = DType::int8, .name = "int8", .family = Family::integer, .bits = 8, .is_signed = true},
    {.id = DType::int4, .name = "int4", .family = Family::integer, .bits = 4, .is_signed = true, .since_opset = 21},
    {.id = DType::int2, .name = "int2", .family = Family::integer, .bits = 2, .is_signed = true, .since_opset = 25},
    {.id = DType::uint64, .name = "uint64", .family = Family::integer, .bits = 64},
    {.id = DType::uint32, .name = "uint32", .family = Family::integer, .bits = 32},
    {.id = DType::uint16, .name = "uint16", .family = Family::integer, .bits = 16},
    {.id = DType::uint8, .name = "uint8", .family = Family::integer, .bits = 8},
    {.id = DType::uint4, .name = "uint4", .family = Family::integer, .bits = 4, .since_opset = 21},
    {.id = DType::uint2, .name = "uint2", .family = Family::integer, .bits = 2, .since_opset = 25},
    {.id = DType::boolean, .name = "bool", .family = Family::boolean, .bits = 8},
    {.id = DType::string, .name = "string", .family = Family::text, .bits = 0, .since_opset = 9},
}};

inline constexpr int dtype_code_limit = 27;  // castable types have ONNX numbers below this

namespace dtype_detail {
constexpr std::array<signed char, dtype_code_limit> index_by_code() {
  std::array<signed char, dtype_code_limit> index{};
  index.fill(-1);
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    index[static_cast<std::size_t>(dtype_table[i].id)] = static_cast<signed char>(i);
  }
  return index;
}
inline constexpr auto row_index = index_by_code();

constexpr bool table_is_sound() {
  int numbers = 0;
  for (int code = 1; code < dtype_code_limit; ++code) {
    const bool is_complex = code == 14 || code == 15;
    if (is_complex != (row_index[static_cast<std::size_t>(code)] < 0)) return false;
    numbers += is_complex ? 0 : 1;
  }
  for (const DTypeRow& row : dtype_table) {
    if (row.family == Family::floating && row.format.bits() != row.bits) return false;
  }
  return numbers == static_cast<int>(dtype_table.size());
}
static_assert(table_is_sound(), "every ONNX number but complex has exactly one row, and float fields add up");
}  // namespace dtype_detail

// The row of a castable type, or null.
[[nodiscard]] constexpr const DTypeRow* find_row(DType dtype) noexcept {
  const auto code = static_cast<std::int32_t>(dtype);
  if (code <= 0 || code >= dtype_code_limit) return nullptr;
  const int index = dtype_detail::row_index[static_cast<std::size_t>(code)];
  return index < 0 ? nullptr : &dtype_table[static_cast<std::size_t>(index)];
}

// Precondition: `dtype` is castable.
[[nodiscard]] constexpr const DTypeRow& row(DType dtype) noexcept { return *find_row(dtype); }

// Errors: unsupported for uint1, which can only be promoted; invalid_argument for a number without a type.
[[nodiscard]] Result<void> check_castable(DType dtype);

}  // namespace tensorcast
