// SPDX-License-Identifier: Apache-2.0
#include "models/openvino_ir/ir_types.hpp"

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"

namespace tensorcast::models::openvino_ir {
namespace {

struct Row {
  std::string_view element_type;
  std::string_view precision;
  DType dtype;  // undefined: not supported
};

constexpr Row rows[] = {
    {"f64", "FP64", DType::float64},
    {"f32", "FP32", DType::float32},
    {"f16", "FP16", DType::float16},
    {"bf16", "BF16", DType::bfloat16},
    {"f8e4m3", "F8E4M3", DType::float8_e4m3fn},
    {"f8e5m2", "F8E5M2", DType::float8_e5m2},
    {"f8e8m0", "F8E8M0", DType::float8_e8m0fnu},
    {"f4e2m1", "F4E2M1", DType::float4_e2m1fn},
    {"i64", "I64", DType::int64},
    {"i32", "I32", DType::int32},
    {"i16", "I16", DType::int16},
    {"i8", "I8", DType::int8},
    {"i4", "I4", DType::int4},
    {"u64", "U64", DType::uint64},
    {"u32", "U32", DType::uint32},
    {"u16", "U16", DType::uint16},
    {"u8", "U8", DType::uint8},
    {"u4", "U4", DType::uint4},
    {"u2", "U2", DType::uint2},
    {"u1", "BIN", DType::uint1},
    {"boolean", "BOOL", DType::boolean},
    {"u3", "U3", DType::undefined},
    {"u6", "U6", DType::undefined},
    {"nf4", "NF4", DType::undefined},
    {"string", "STRING", DType::undefined},
    {"dynamic", "dynamic", DType::undefined},
    {"undefined", "UNSPECIFIED", DType::undefined},
};

Result<DType> find(std::string_view name, std::string_view Row::*column) {
  const Row* row = find_row(rows, column, name);
  if (row == nullptr) {
    return parse_error(fmt::format("\"{}\" is not an element type of OpenVINO", name.substr(0, 60)));
  }
  if (row->dtype == DType::undefined) return unsupported(fmt::format("tensors of type {} are not converted", name));
  return row->dtype;
}

}  // namespace

Result<DType> parse_element_type(std::string_view name) { return find(name, &Row::element_type); }

Result<DType> parse_precision(std::string_view name) { return find(name, &Row::precision); }

std::string_view element_type_name(DType dtype) {
  const Row* row = find_row(rows, &Row::dtype, dtype);
  return row == nullptr ? name(dtype) : row->element_type;
}

CastOptions convert_options(DType from, DType to) {
  CastOptions options;
  options.saturate = to != DType::float8_e4m3fn && to != DType::float8_e5m2 && to != DType::undefined;
  if (to == DType::float8_e8m0fnu || to == DType::undefined) options.round_mode = RoundMode::nearest;
  // Up to opset 23 NaN becomes 6 in float4_e2m1fn, as in OpenVINO; later it becomes -0.
  if (to == DType::float4_e2m1fn && since_opset(from) <= 23) options.opset = 23;
  return options;
}

}  // namespace tensorcast::models::openvino_ir
