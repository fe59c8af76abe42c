// SPDX-License-Identifier: Apache-2.0
#include "graph/linear_types.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"

namespace tensorcast::graph {
namespace {

constexpr int first_opset = 10;
constexpr int never = 1000;

// The opsets in which a type became a type of x (or y of QuantizeLinear), a scale, a quantized number.
struct TypeRow {
  DType dtype;
  int real = never;       // x of QuantizeLinear
  int scale = never;      // of both; QuantizeLinear alone takes int32
  int quantized = never;  // y of QuantizeLinear, x of DequantizeLinear
};
constexpr std::array type_rows = {
    TypeRow{.dtype = DType::float32, .real = 10, .scale = 10},
    TypeRow{.dtype = DType::float16, .real = 19, .scale = 19},
    TypeRow{.dtype = DType::bfloat16, .real = 19, .scale = 19},
    TypeRow{.dtype = DType::int32, .real = 10, .scale = 19},
    TypeRow{.dtype = DType::float8_e8m0fnu, .scale = 24},
    TypeRow{.dtype = DType::int8, .quantized = 10},
    TypeRow{.dtype = DType::uint8, .quantized = 10},
    TypeRow{.dtype = DType::float8_e4m3fn, .quantized = 19},
    TypeRow{.dtype = DType::float8_e4m3fnuz, .quantized = 19},
    TypeRow{.dtype = DType::float8_e5m2, .quantized = 19},
    TypeRow{.dtype = DType::float8_e5m2fnuz, .quantized = 19},
    TypeRow{.dtype = DType::int16, .quantized = 21},
    TypeRow{.dtype = DType::uint16, .quantized = 21},
    TypeRow{.dtype = DType::int4, .quantized = 21},
    TypeRow{.dtype = DType::uint4, .quantized = 21},
    TypeRow{.dtype = DType::float4_e2m1fn, .quantized = 23},
    TypeRow{.dtype = DType::int2, .quantized = 25},
    TypeRow{.dtype = DType::uint2, .quantized = 25},
    TypeRow{.dtype = DType::float6_e2m3fn, .quantized = 28},
    TypeRow{.dtype = DType::float6_e3m2fn, .quantized = 28},
};

int version_of(int opset) { return opset == 0 ? newest_opset() : opset; }

int since(DType dtype, int TypeRow::*column) {
  const TypeRow* row = find_row(type_rows, &TypeRow::dtype, dtype);
  return row == nullptr ? never : row->*column;
}

Result<void> check_type(std::string_view what, DType dtype, int first, int opset) {
  if (dtype == DType::undefined || first <= opset) return {};
  if (first == never)
    return unsupported(fmt::format("{} is not of a type that the operator has: {}", what, name(dtype)));
  return unsupported(fmt::format("{} is {}, which the operator has since opset {}; this is opset {}", what, name(dtype),
                                 first, opset));
}

Result<void> check_attribute(std::string_view attribute, bool given, int first, int opset) {
  if (!given || first <= opset) return {};
  return unsupported(fmt::format("the operator has {} since opset {}; this is opset {}", attribute, first, opset));
}

Result<void> check_opset(int opset) {
  if (opset > newest_opset())
    return unsupported(fmt::format("opset {} is newer than {}, the newest that is known", opset, newest_opset()));
  if (opset >= first_opset) return {};
  return unsupported(fmt::format("the operator exists since opset {}; this is opset {}", first_opset, opset));
}

bool is_single(const std::vector<std::int64_t>& shape) {
  return shape.size() <= 1 && std::ranges::all_of(shape, [](std::int64_t size) { return size == 1; });
}

// Checks the granularity: one scale, one for each index of the axis, or one for each block along it.
Result<void> check_scale_shape(const ValueType& x, const ValueType& scale, std::int64_t axis, std::int64_t block_size,
                               int opset) {
  if (block_size < 0)
    return invalid(fmt::format("block_size is {}; it must be positive, or 0 for no blocks", block_size));
  if (!scale.shape || !x.shape || is_single(*scale.shape)) return {};
  if (opset < 13) return invalid("before opset 13 there is one scale for the tensor");
  const std::size_t rank = x.shape->size();
  std::size_t place = TRY(axis_from_first(axis, rank));
  const auto known = [](std::int64_t size) { return size != -1; };
  const std::int64_t length = (*x.shape)[place];
  if (block_size == 0) {
    if (scale.shape->size() != 1) {
      return invalid(fmt::format("the scale has {} dimensions, which needs block_size", scale.shape->size()));
    }
    const std::int64_t given = scale.shape->front();
    if (!known(given) || !known(length) || given == length) return {};
    return invalid(fmt::format("there are {} scales for the {} indices of axis {}", given, length, place));
  }
  bool agrees = scale.shape->size() == rank;
  for (std::size_t i = 0; agrees && i < rank; ++i) {
    const std::int64_t size = (*x.shape)[i];
    if (!known(size) || !known((*scale.shape)[i])) continue;
    const std::int64_t blocks = size / block_size + (size % block_size != 0 ? 1 : 0);
    agrees = (*scale.shape)[i] == (i == place ? blocks : size);
  }
  if (agrees) return {};
  return invalid(fmt::format("the scale, {}, has not the shape of blocks of {} along axis {} of {}", describe(scale),
                             block_size, place, describe(x)));
}

Result<void> check_zero_point(const ValueType& scale, const ValueType& zero_point) {
  if (!scale.shape || !zero_point.shape) return {};
  // One element may have no dimension or one.
  if (is_single(*scale.shape) && is_single(*zero_point.shape)) return {};
  if (scale.shape->size() == zero_point.shape->size() && shapes_agree(*scale.shape, *zero_point.shape)) return {};
  return invalid(
      fmt::format("the zero point, {}, has not the shape of the scale, {}", describe(zero_point), describe(scale)));
}

bool is_precision(DType dtype) {
  return dtype == DType::undefined || dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

}  // namespace

Result<std::size_t> axis_from_first(std::int64_t axis, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (axis >= -size && axis < size) return static_cast<std::size_t>(axis < 0 ? axis + size : axis);
  return invalid(fmt::format("axis {} is out of range: x has {} dimension{}", axis, rank, rank == 1 ? "" : "s"));
}

Result<ValueType> infer_quantize(const QuantizeLinearOp& operation, std::span<const ValueType> inputs) {
  const int opset = version_of(operation.opset);
  const ValueType& x = inputs[0];
  const ValueType& scale = inputs[1];
  DType to = operation.output_dtype;
  if (inputs.size() > 2) {
    const DType zero_type = inputs[2].dtype;
    if (to != DType::undefined && zero_type != DType::undefined && to != zero_type) {
      return invalid(fmt::format("output_dtype is {}, but the zero point is {}", name(to), name(zero_type)));
    }
    if (to == DType::undefined) to = zero_type;
  } else if (to == DType::undefined) {
    to = DType::uint8;
  }
  TRY(check_opset(opset));
  TRY(check_attribute("output_dtype", operation.output_dtype != DType::undefined, 21, opset));
  TRY(check_attribute("block_size", operation.block_size != 0, 21, opset));
  TRY(check_attribute("precision", operation.precision != DType::undefined, 23, opset));
  TRY(check_attribute("saturate", !operation.saturate, 19, opset));
  TRY(check_type("x", x.dtype, since(x.dtype, &TypeRow::real), opset));
  TRY(check_type("the scale", scale.dtype, since(scale.dtype, &TypeRow::scale), opset));
  TRY(check_type("y", to, since(to, &TypeRow::quantized), opset));
  TRY(check_scale_shape(x, scale, operation.axis, operation.block_size, opset));
  TRY(inputs.size() > 2 ? check_zero_point(scale, inputs[2]) : Result<void>());
  if (!is_precision(operation.precision)) {
    return unsupported(fmt::format("precision {} is not one of float32, float16, bfloat16", name(operation.precision)));
  }
  const bool differ = x.dtype != DType::undefined && scale.dtype != DType::undefined && x.dtype != scale.dtype;
  if (differ && opset >= 19 && opset < 23) {
    return unsupported(
        fmt::format("x is {} and the scale {}; they may differ since opset 23", name(x.dtype), name(scale.dtype)));
  }
  return ValueType{to, x.shape};
}

Result<ValueType> infer_dequantize(const DequantizeLinearOp& operation, std::span<const ValueType> inputs) {
  const int opset = version_of(operation.opset);
  const ValueType& x = inputs[0];
  const ValueType& scale = inputs[1];
  const int x_since = x.dtype == DType::int32 ? first_opset : since(x.dtype, &TypeRow::quantized);
  const int scale_since = scale.dtype == DType::int32 ? never : since(scale.dtype, &TypeRow::scale);
  TRY(check_opset(opset));
  TRY(check_attribute("output_dtype", operation.output_dtype != DType::undefined, 23, opset));
  TRY(check_attribute("block_size", operation.block_size != 0, 21, opset));
  TRY(check_type("x", x.dtype, x_since, opset));
  TRY(check_type("the scale", scale.dtype, scale_since, opset));
  TRY(check_scale_shape(x, scale, operation.axis, operation.block_size, opset));
  TRY(inputs.size() > 2 ? check_zero_point(scale, inputs[2]) : Result<void>());
  if (inputs.size() > 2) {
    Result<ValueType> same = both({x.dtype, {}}, {inputs[2].dtype, {}});
    if (!same) return invalid(fmt::format("x is {}, but its zero point {}", name(x.dtype), name(inputs[2].dtype)));
  }
  const DType to = operation.output_dtype == DType::undefined ? scale.dtype : operation.output_dtype;
  if (to == DType::float8_e8m0fnu) {
    return invalid("the scale is float8_e8m0fnu, which is not a type of y: output_dtype must name one");
  }
  if (!is_precision(to)) return unsupported(fmt::format("y is {}, not one of float32, float16, bfloat16", name(to)));
  return ValueType{to, x.shape};
}

Result<std::vector<ValueType>> infer_dynamic_quantize(const ValueType& input) {
  if (input.dtype != DType::undefined && input.dtype != DType::float32) {
    return unsupported(fmt::format("x is {}, but the operator has float32 alone", name(input.dtype)));
  }
  const std::vector<std::int64_t> scalar;
  return std::vector<ValueType>{{DType::uint8, input.shape}, {DType::float32, scalar}, {DType::uint8, scalar}};
}

Result<ValueType> infer_bit_cast(DType to, const ValueType& input) {
  for (const DType dtype : {input.dtype, to}) {
    if (dtype == DType::undefined) continue;
    if (!is_castable(dtype) || !is_onnx(dtype) || dtype == DType::string) {
      return unsupported(fmt::format("BitCast does not have the type {}", name(dtype)));
    }
  }
  if (to == DType::undefined) return invalid("the type to reinterpret as is undefined");
  if (input.dtype != DType::undefined && bit_width(input.dtype) != bit_width(to)) {
    return invalid(fmt::format("{} has {} bits and {} {}; BitCast keeps the width", name(input.dtype),
                               bit_width(input.dtype), name(to), bit_width(to)));
  }
  return ValueType{to, input.shape};
}

}  // namespace tensorcast::graph
