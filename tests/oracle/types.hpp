// SPDX-License-Identifier: Apache-2.0
// The types as the texts of ONNX, OCP, ml_dtypes, CUDA and IEEE P3109 define them, written down once more so that
// nothing is shared with the engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tensorcast/c_api.h"

namespace oracle {

enum Type : tc_dtype {
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16,
  e4m3fn = 17,
  e4m3fnuz = 18,
  e5m2 = 19,
  e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  e2m1 = 23,
  e8m0 = 24,
  u2 = 25,
  i2 = 26,
  e2m3 = 27,
  e3m2 = 28,
  // ONNX lacks these.
  e4m3 = 1002,
  e3m4 = 1003,
  e4m3b11fnuz = 1004,
  e5m3fnu = 1005,
  p4se = 1006,
  p3se = 1007,
};

enum class Kind : std::uint8_t { floating, signed_integer, unsigned_integer, boolean, text };

// The codes of a float that are not numbers.
enum class Special : std::uint8_t {
  ieee,   // exponent all ones: infinity and NaN
  fn,     // all ones: NaN
  fnuz,   // negative zero: NaN
  p3109,  // negative zero: NaN; all ones but the sign: infinity
  none,
};

struct TypeInfo {
  Type type;
  const char* name;
  Kind kind;
  int bits;
  int first_opset;  // 0: none has it
  // Floats.
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  Special special = Special::ieee;
};

std::span<const TypeInfo> all_types();
std::span<const Type> numeric_types();  // all types but text
const TypeInfo& info(Type type);
Type type_of(std::string_view name);  // throws std::invalid_argument for an unknown name

inline bool is_float(Type type) { return info(type).kind == Kind::floating; }
inline bool is_integer(Type type) {
  return info(type).kind == Kind::signed_integer || info(type).kind == Kind::unsigned_integer;
}
inline bool is_float8(Type type) {  // the types of the tables in Cast 19 and 24, and those that follow them
  return is_float(type) && info(type).bits == 8 && type != e8m0;
}
inline bool is_below_8_bits(Type type) { return info(type).bits < 8 && info(type).kind != Kind::text; }
inline bool is_fnuz(Type type) { return is_float(type) && info(type).special == Special::fnuz; }
inline bool has_one_zero(Type type) { return is_fnuz(type) || info(type).special == Special::p3109; }
inline std::uint64_t code_mask(Type type) { return ~std::uint64_t{0} >> (64 - info(type).bits); }

}  // namespace oracle
