// SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include <array>
#include <stdexcept>

namespace oracle {
namespace {

constexpr TypeInfo table[] = {
    {f64, "float64", Kind::floating, 64, 1, 11, 52, 1023, Special::ieee},
    {f32, "float32", Kind::floating, 32, 1, 8, 23, 127, Special::ieee},
    {f16, "float16", Kind::floating, 16, 1, 5, 10, 15, Special::ieee},
    {bf16, "bfloat16", Kind::floating, 16, 13, 8, 7, 127, Special::ieee},
    {e4m3fn, "float8_e4m3fn", Kind::floating, 8, 19, 4, 3, 7, Special::fn},
    {e4m3fnuz, "float8_e4m3fnuz", Kind::floating, 8, 19, 4, 3, 8, Special::fnuz},
    {e5m2, "float8_e5m2", Kind::floating, 8, 19, 5, 2, 15, Special::ieee},
    {e5m2fnuz, "float8_e5m2fnuz", Kind::floating, 8, 19, 5, 2, 16, Special::fnuz},
    {e8m0, "float8_e8m0fnu", Kind::floating, 8, 24, 8, 0, 127, Special::fn},
    {e4m3, "float8_e4m3", Kind::floating, 8, 0, 4, 3, 7, Special::ieee},
    {e3m4, "float8_e3m4", Kind::floating, 8, 0, 3, 4, 3, Special::ieee},
    {e4m3b11fnuz, "float8_e4m3b11fnuz", Kind::floating, 8, 0, 4, 3, 11, Special::fnuz},
    {e5m3fnu, "float8_e5m3fnu", Kind::floating, 8, 0, 5, 3, 15, Special::fn},
    {p4se, "binary8p4se", Kind::floating, 8, 0, 4, 3, 8, Special::p3109},
    {p3se, "binary8p3se", Kind::floating, 8, 0, 5, 2, 16, Special::p3109},
    {e2m3, "float6_e2m3fn", Kind::floating, 6, 28, 2, 3, 1, Special::none},
    {e3m2, "float6_e3m2fn", Kind::floating, 6, 28, 3, 2, 3, Special::none},
    {e2m1, "float4_e2m1fn", Kind::floating, 4, 23, 2, 1, 1, Special::none},
    {i64, "int64", Kind::signed_integer, 64, 1},
    {i32, "int32", Kind::signed_integer, 32, 1},
    {i16, "int16", Kind::signed_integer, 16, 1},
    {i8, "int8", Kind::signed_integer, 8, 1},
    {i4, "int4", Kind::signed_integer, 4, 21},
    {i2, "int2", Kind::signed_integer, 2, 25},
    {u64, "uint64", Kind::unsigned_integer, 64, 1},
    {u32, "uint32", Kind::unsigned_integer, 32, 1},
    {u16, "uint16", Kind::unsigned_integer, 16, 1},
    {u8, "uint8", Kind::unsigned_integer, 8, 1},
    {u4, "uint4", Kind::unsigned_integer, 4, 21},
    {u2, "uint2", Kind::unsigned_integer, 2, 25},
    {boolean, "bool", Kind::boolean, 8, 1},
    {text, "string", Kind::text, 0, 9},
};

constexpr auto numeric = [] {
  std::array<Type, std::size(table) - 1> types{};  // text is the last
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = table[i].type;
  return types;
}();

}  // namespace

std::span<const TypeInfo> all_types() { return table; }
std::span<const Type> numeric_types() { return numeric; }

const TypeInfo& info(Type type) {
  for (const TypeInfo& row : table) {
    if (row.type == type) return row;
  }
  throw std::invalid_argument("no type has the number " + std::to_string(type));
}

Type type_of(std::string_view name) {
  for (const TypeInfo& row : table) {
    if (name == row.name) return row.type;
  }
  throw std::invalid_argument("no type is called " + std::string(name));
}

}  // namespace oracle
