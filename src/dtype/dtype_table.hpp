// SPDX-License-Identifier: Apache-2.0
// One row per type: its names. A type is an enumerator and a row in tensorcast/facts.hpp, and a row here; everything
// else derives from the rows, unless the type is of a new family.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <string_view>

#include "tensorcast/dtype.hpp"
#include "tensorcast/facts.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct DTypeRow : detail::TypeRow {
  std::string_view name;
  int since_opset = 1;  // first opset whose Cast has the type; 0: ONNX lacks it
  // The spellings that users may write besides the name: ONNX, OpenVINO, safetensors, NumPy (with its byte order mark,
  // as a bare i4 is four bits everywhere else), torch, short forms. Case and underscores do not matter.
  std::array<std::string_view, 12> spellings = {};
};

constexpr DTypeRow dtype_row(DType id, std::string_view name, int since_opset,
                             std::initializer_list<std::string_view> spellings) {
  DTypeRow row{detail::type_row(id), name, since_opset, {}};
  std::copy(spellings.begin(), spellings.end(), row.spellings.begin());
  return row;
}

// In the order in which the project lists the types.
inline constexpr auto dtype_table = std::to_array<DTypeRow>({
    dtype_row(DType::float64, "float64", 1, {"DOUBLE", "tensor(double)", "f64", "<f8", "torch.float64", "fp64"}),
    dtype_row(DType::float32, "float32", 1,
              {"FLOAT", "tensor(float)", "f32", "<f4", "torch.float32", "torch.float", "fp32", "single"}),
    dtype_row(DType::float16, "float16", 1, {"tensor(float16)", "f16", "<f2", "torch.float16", "half", "fp16"}),
    dtype_row(DType::bfloat16, "bfloat16", 13, {"tensor(bfloat16)", "bf16", "torch.bfloat16", "brain"}),
    dtype_row(
        DType::float8_e4m3fn, "float8_e4m3fn", 19,
        {"FLOAT8E4M3FN", "tensor(float8e4m3fn)", "F8_E4M3", "torch.float8_e4m3fn", "e4m3fn", "fp8_e4m3fn", "f8e4m3fn"}),
    dtype_row(DType::float8_e4m3fnuz, "float8_e4m3fnuz", 19,
              {"FLOAT8E4M3FNUZ", "tensor(float8e4m3fnuz)", "F8_E4M3FNUZ", "torch.float8_e4m3fnuz", "e4m3fnuz",
               "fp8e4m3fnuz", "binary8p4sf"}),
    dtype_row(DType::float8_e5m2, "float8_e5m2", 19,
              {"FLOAT8E5M2", "tensor(float8e5m2)", "f8e5m2", "F8_E5M2", "torch.float8_e5m2", "e5m2", "fp8e5m2"}),
    dtype_row(DType::float8_e5m2fnuz, "float8_e5m2fnuz", 19,
              {"FLOAT8E5M2FNUZ", "tensor(float8e5m2fnuz)", "F8_E5M2FNUZ", "torch.float8_e5m2fnuz", "e5m2fnuz",
               "fp8e5m2fnuz", "binary8p3sf"}),
    dtype_row(DType::float8_e8m0fnu, "float8_e8m0fnu", 24,
              {"FLOAT8E8M0", "tensor(float8e8m0)", "f8e8m0", "F8_E8M0", "torch.float8_e8m0fnu", "e8m0", "e8m0fnu",
               "fp8e8m0", "ue8m0"}),
    dtype_row(DType::float8_e4m3, "float8_e4m3", 0, {}),
    dtype_row(DType::float8_e3m4, "float8_e3m4", 0, {"e3m4", "f8e3m4", "fp8e3m4"}),
    dtype_row(DType::float8_e4m3b11fnuz, "float8_e4m3b11fnuz", 0,
              {"e4m3b11fnuz", "e4m3b11", "f8e4m3b11fnuz", "fp8e4m3b11fnuz"}),
    dtype_row(DType::float8_e5m3fnu, "float8_e5m3fnu", 0, {"ue5m3", "e5m3fnu", "f8e5m3fnu", "fp8ue5m3"}),
    dtype_row(DType::binary8p4se, "binary8p4se", 0, {}),
    dtype_row(DType::binary8p3se, "binary8p3se", 0, {}),
    dtype_row(DType::float6_e2m3fn, "float6_e2m3fn", 28,
              {"FLOAT6E2M3", "tensor(float6e2m3)", "f6e2m3", "F6_E2M3", "e2m3", "e2m3fn", "fp6e2m3", "f6e2m3fn"}),
    dtype_row(DType::float6_e3m2fn, "float6_e3m2fn", 28,
              {"FLOAT6E3M2", "tensor(float6e3m2)", "f6e3m2", "F6_E3M2", "e3m2", "e3m2fn", "fp6e3m2", "f6e3m2fn"}),
    dtype_row(DType::float4_e2m1fn, "float4_e2m1fn", 23,
              {"FLOAT4E2M1", "tensor(float4e2m1)", "f4e2m1", "F4", "torch.float4_e2m1fn_x2", "e2m1", "e2m1fn", "fp4",
               "fp4e2m1", "f4e2m1fn"}),
    dtype_row(DType::int64, "int64", 1, {"tensor(int64)", "i64", "<i8", "torch.int64", "long"}),
    dtype_row(DType::int32, "int32", 1, {"tensor(int32)", "i32", "<i4", "torch.int32", "torch.int"}),
    dtype_row(DType::int16, "int16", 1, {"tensor(int16)", "i16", "<i2", "torch.int16", "short"}),
    dtype_row(DType::int8, "int8", 1, {"tensor(int8)", "I8", "|i1", "torch.int8"}),
    dtype_row(DType::int4, "int4", 21, {"tensor(int4)", "torch.int4"}),
    dtype_row(DType::int2, "int2", 25, {"tensor(int2)", "torch.int2"}),
    dtype_row(DType::uint64, "uint64", 1, {"tensor(uint64)", "u64", "<u8", "torch.uint64"}),
    dtype_row(DType::uint32, "uint32", 1, {"tensor(uint32)", "u32", "<u4", "torch.uint32"}),
    dtype_row(DType::uint16, "uint16", 1, {"tensor(uint16)", "u16", "<u2", "torch.uint16"}),
    dtype_row(DType::uint8, "uint8", 1, {"tensor(uint8)", "U8", "|u1", "torch.uint8"}),
    dtype_row(DType::uint4, "uint4", 21, {"tensor(uint4)", "torch.uint4"}),
    dtype_row(DType::uint2, "uint2", 25, {"tensor(uint2)", "torch.uint2"}),
    dtype_row(DType::boolean, "bool", 1, {"tensor(bool)", "boolean", "|b1", "?", "torch.bool"}),
    dtype_row(DType::string, "string", 9, {"tensor(string)", "str"}),
});

// Types that have numbers: all but text.
inline constexpr std::size_t number_type_count = [] {
  std::size_t count = 0;
  for (const DTypeRow& row : dtype_table) count += row.family == Family::text ? 0 : 1;
  return count;
}();

namespace dtype_detail {
// The index in dtype_table of each row of detail::type_rows; -1 for types that cannot be cast.
constexpr auto index_by_place() {
  std::array<signed char, detail::type_row_count> index{};
  index.fill(-1);
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    index[static_cast<std::size_t>(detail::place_of(dtype_table[i].id))] = static_cast<signed char>(i);
  }
  return index;
}
inline constexpr auto row_index = index_by_place();

// Reports whether each type but uint1 has a row of names, and each row a number in the range that its opset says.
constexpr bool table_is_sound() {
  for (const DTypeRow& row : dtype_table) {
    if ((static_cast<int>(row.id) < detail::first_own_code) != (row.since_opset > 0)) return false;
  }
  std::size_t named = 0;
  for (std::size_t place = 0; place < row_index.size(); ++place) {
    const DType id = detail::type_rows[place].id;
    if ((row_index[place] >= 0) != (id != DType::undefined && id != DType::uint1)) return false;
    named += row_index[place] >= 0 ? 1 : 0;
  }
  return named == dtype_table.size();
}
static_assert(table_is_sound());
}  // namespace dtype_detail

// The row of a castable type, or null.
[[nodiscard]] constexpr const DTypeRow* find_row(DType dtype) noexcept {
  const int index = dtype_detail::row_index[static_cast<std::size_t>(detail::place_of(dtype))];
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

// Reports whether elements of `bits` bits end with a byte; the product of a long dimension beside an empty one may be
// too large.
[[nodiscard]] constexpr bool ends_with_byte(int bits, std::uint64_t count) noexcept {
  return count % 8 * static_cast<std::uint64_t>(bits) % 8 == 0;
}

// Errors: unsupported for uint1, which can only be promoted; invalid_argument for a number without a type.
[[nodiscard]] Result<void> check_castable(DType dtype);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
