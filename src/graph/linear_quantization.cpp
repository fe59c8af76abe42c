// SPDX-License-Identifier: Apache-2.0
#include "graph/linear_quantization.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "dtype/errors.hpp"
#include "dtype/number_range.hpp"
#include "dtype/try.hpp"
#include "graph/linear_types.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/element.hpp"

namespace tensorcast::graph {
namespace {

using Numbers = std::vector<double>;

// Every type of these operators has at most 32 bits, so float64 holds its numbers.
Result<Numbers> numbers_of(const Tensor& tensor, const Execution& execution) {
  Numbers numbers(tensor.count());
  const MutableTensorView view{DType::float64, tensor.shape(), std::as_writable_bytes(std::span(numbers))};
  TRY(cast(tensor.view(), view, {}, execution));
  return numbers;
}

Result<Value> value_of(const Numbers& numbers, const Shape& shape, DType to, const CastOptions& options,
                       const Execution& execution, const ConversionPlace& place) {
  const TensorView view{DType::float64, shape, std::as_bytes(std::span(numbers))};
  Tensor wide = TRY(Tensor::share(view, std::shared_ptr<const void>(std::shared_ptr<void>(), numbers.data())));
  return convert({std::move(wide), nullptr}, to, options, execution, place);
}

double rounded(double value, DType precision) {
  switch (precision) {
    case DType::float32:
      return static_cast<float>(value);
    case DType::float16:
      return static_cast<double>(float16(value));
    case DType::bfloat16:
      return static_cast<double>(bfloat16(value));
    default:
      return value;
  }
}

// The product rounded to odd, so that rounding it again to 24 digits or fewer rounds the exact product once.
double product_to_odd(double a, double b) {
  const double product = a * b;
  const double error = std::fma(a, b, -product);
  if (!(error != 0.0) || !std::isfinite(error)) return product;
  const auto bits = std::bit_cast<std::uint64_t>(product);
  if ((bits & 1) != 0) return product;
  const bool away = (error > 0) == (product > 0);
  return std::bit_cast<double>(away ? bits + 1 : bits - 1);
}

// Calls use(element, scale) for every element with the place of its scale.
template <class Use>
void each_element(const Shape& x, const Shape& scale, std::size_t axis, std::int64_t block_size, bool is_single,
                  const Use& use) {
  std::size_t count = 1;
  for (const std::int64_t size : x) count *= static_cast<std::size_t>(size);
  if (is_single) {
    for (std::size_t i = 0; i < count; ++i) use(i, std::size_t{0});
    return;
  }
  if (count == 0) return;
  const auto length = static_cast<std::size_t>(x[axis]);
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < x.size(); ++i) inner *= static_cast<std::size_t>(x[i]);
  const std::size_t outer = count / (length * inner);
  const bool blocks = block_size > 0;
  const std::size_t scales = blocks ? static_cast<std::size_t>(scale[axis]) : length;
  for (std::size_t o = 0, element = 0; o < outer; ++o) {
    for (std::size_t a = 0; a < length; ++a) {
      const std::size_t row = blocks ? (o * scales + a / static_cast<std::size_t>(block_size)) * inner : a;
      for (std::size_t i = 0; i < inner; ++i, ++element) use(element, blocks ? row + i : row);
    }
  }
}

std::vector<ValueType> types_of(std::span<const Value> inputs) {
  std::vector<ValueType> types;
  for (const Value& input : inputs) types.push_back(type_of(input.tensor));
  return types;
}

// The inputs as numbers, and how scales are laid over x.
struct Operands {
  Numbers x;
  Numbers scale;
  Numbers zero_point;  // empty: there is none
  std::size_t axis = 0;
  bool is_single = true;
};

Result<Operands> read_operands(std::span<const Value> inputs, std::int64_t axis, const Execution& execution) {
  Operands operands;
  Numbers* const targets[] = {&operands.x, &operands.scale, &operands.zero_point};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    *targets[i] = TRY(numbers_of(inputs[i].tensor, execution));
  }
  const Shape scale_shape = inputs[1].tensor.shape();
  operands.is_single = scale_shape.size() <= 1 && operands.scale.size() == 1;
  if (operands.is_single) return operands;
  operands.axis = TRY(axis_from_first(axis, inputs[0].tensor.shape().size()));
  return operands;
}

Value scalar_of(Tensor tensor) { return Value{std::move(tensor), nullptr}; }

bool is_integer(DType dtype) { return family(dtype) == Family::integer; }

}  // namespace

Result<Value> quantize_linear(const QuantizeLinearOp& operation, std::span<const Value> inputs,
                              const Execution& execution, const ConversionPlace& place) {
  const std::vector<ValueType> types = types_of(inputs);
  ValueType output = TRY(infer_quantize(operation, types));
  Operands in = TRY(read_operands(inputs, operation.axis, execution));
  const DType to = output.dtype;
  const DType precision = operation.precision == DType::undefined ? types[1].dtype : operation.precision;
  const bool to_integer = is_integer(to);
  const double lowest = to_integer ? lowest_of(row(to)) : 0;
  const double highest = to_integer ? largest_of(row(to)) : 0;
  each_element(inputs[0].tensor.shape(), inputs[1].tensor.shape(), in.axis, operation.block_size, in.is_single,
               [&](std::size_t i, std::size_t s) {
                 double quotient = rounded(in.x[i] / in.scale[s], precision);
                 if (!to_integer) {
                   if (!in.zero_point.empty()) quotient = rounded(quotient + in.zero_point[s], precision);
                   in.x[i] = quotient;
                   return;
                 }
                 if (std::isnan(quotient)) quotient = 0;
                 if (!in.zero_point.empty()) quotient = std::nearbyint(quotient) + in.zero_point[s];
                 in.x[i] = std::clamp(std::nearbyint(quotient), lowest, highest);
               });
  CastOptions options;
  options.opset = operation.opset;
  options.saturate = operation.saturate;
  if (to_integer) options = {};
  return value_of(in.x, inputs[0].tensor.shape(), to, options, execution, place);
}

Result<Value> dequantize_linear(const DequantizeLinearOp& operation, std::span<const Value> inputs,
                                const Execution& execution, const ConversionPlace& place) {
  ValueType output = TRY(infer_dequantize(operation, types_of(inputs)));
  Operands in = TRY(read_operands(inputs, operation.axis, execution));
  const bool is_int32 = inputs[0].tensor.dtype() == DType::int32;
  if (is_int32 && std::ranges::any_of(in.zero_point, [](double zero) { return zero != 0; })) {
    return invalid("the zero point of int32 must be 0");
  }
  each_element(inputs[0].tensor.shape(), inputs[1].tensor.shape(), in.axis, operation.block_size, in.is_single,
               [&](std::size_t i, std::size_t s) {
                 const double x = in.zero_point.empty() ? in.x[i] : in.x[i] - in.zero_point[s];
                 in.x[i] = product_to_odd(x, in.scale[s]);
               });
  return value_of(in.x, inputs[0].tensor.shape(), output.dtype, {}, execution, place);
}

Result<std::vector<Value>> dynamic_quantize_linear(const Value& input, const Execution& execution,
                                                   const ConversionPlace& place) {
  TRY(infer_dynamic_quantize(type_of(input.tensor)));
  Numbers numbers = TRY(numbers_of(input.tensor, execution));
  double least = 0;
  double most = 0;
  for (const double number : numbers) {  // NaN stays, as ReduceMin and ReduceMax give it
    least = std::isnan(number) || number < least ? number : least;
    most = std::isnan(number) || number > most ? number : most;
  }
  const bool has_nan = std::ranges::any_of(numbers, [](double number) { return std::isnan(number); });
  if (has_nan) least = most = std::nan("");
  const auto range = static_cast<float>(most - least);
  const float scale = range / 255.0f;
  const float wanted = 0.0f - static_cast<float>(least) / scale;
  const float zero = std::isnan(wanted) ? 0.0f : std::nearbyint(std::clamp(wanted, 0.0f, 255.0f));
  Tensor scale_tensor = TRY(Tensor::own(std::vector<float>{scale}, Shape{}));
  Tensor zero_tensor = TRY(Tensor::own(std::vector<std::uint8_t>{static_cast<std::uint8_t>(zero)}, Shape{}));
  std::vector<Value> linear{input, scalar_of(scale_tensor), scalar_of(zero_tensor)};
  linear[0] = TRY(quantize_linear({}, linear, execution, place));
  return linear;
}

Result<Value> bit_cast(Value src, DType to) {
  TRY(infer_bit_cast(to, type_of(src.tensor)));
  const TensorView view{to, src.tensor.shape(), src.tensor.bytes()};
  std::shared_ptr<const void> owner = src.buffer;
  if (owner == nullptr) owner = std::make_shared<const Tensor>(src.tensor);
  Tensor shared = TRY(Tensor::share(view, std::move(owner)));
  return Value{std::move(shared), std::move(src.buffer)};
}

}  // namespace tensorcast::graph
