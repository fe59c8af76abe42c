// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_value.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "models/mdf/mdf_literal.hpp"
#include "models/mdf/mdf_number.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::models::mdf {
namespace {

// Returns the number of type `dtype` that is nearest to `number`.
double rounded_to(DType dtype, double number) {
  const Tensor there = converted_to(dtype, tensor_of(number)).value();
  const Tensor back = converted_to(DType::float64, there).value();
  double result = 0;
  std::memcpy(&result, back.bytes().data(), sizeof(result));
  return result;
}

}  // namespace

DType declared_type(std::string_view type, MdfSemantics semantics) {
  if (semantics == MdfSemantics::mdf_reference && type == "float") return DType::float64;
  if (semantics == MdfSemantics::mdf_reference && type == "int") return DType::int64;
  for (const DType dtype : all_dtypes()) {
    if (is_onnx(dtype) && name(dtype) == type) return dtype;
  }
  return DType::undefined;
}

std::optional<Tensor> zeros_of(DType dtype, const std::vector<std::int64_t>& shape, std::size_t& budget_bytes) {
  const Result<std::size_t> count = element_count(shape);
  if (!count || storage_bytes(dtype, *count) > budget_bytes) return std::nullopt;
  const std::size_t bytes = storage_bytes(dtype, *count);
  budget_bytes -= bytes;
  return Tensor::own(dtype, shape, std::vector<std::byte>(bytes)).value();
}

Result<Tensor> converted_to(DType dtype, const Tensor& tensor) {
  if (tensor.dtype() == dtype) return tensor;
  if (tensor.dtype() == DType::string || dtype == DType::string) {
    return parse_error(fmt::format("is {}, not {}", name(tensor.dtype()), name(dtype)));
  }
  std::vector<std::byte> bytes(storage_bytes(dtype, tensor.count()));
  CastOptions options;
  if (family(dtype) == Family::integer) options.out_of_range = OutOfRange::error;
  TRY(cast(tensor.view(), {dtype, tensor.shape(), bytes}, options));
  return Tensor::own(dtype, tensor.shape(), std::move(bytes));
}

std::string Values::fresh(const std::string& base) {
  std::string name = base;
  while (!claim(name)) name = fmt::format("{}#{}", base, next_suffix_++);
  return name;
}

Result<Value> Values::literal(const Tree& tree) {
  Tensor tensor = TRY(literal_tensor(tree));
  Value value{.dtype = tensor.dtype(), .shape = std::vector(tensor.shape().begin(), tensor.shape().end())};
  value.is_number = tree.as<Tree::List>() == nullptr;
  value.literal = std::move(tensor);
  return value;
}

void Values::add(Operation operation, std::vector<std::string> inputs, std::vector<std::string> outputs,
                 const std::string& node) {
  graph_.nodes.push_back({node, std::move(operation), std::move(inputs), std::move(outputs)});
}

std::string Values::in_graph(const Value& value, const std::string& base) {
  if (!value.name.empty()) return value.name;
  std::string name = fresh(base);
  add(ConstantOp{*value.literal}, {}, {name}, base);
  return name;
}

Value Values::convert(const Value& value, DType to, const CastOptions& options, const std::string& base) {
  Value result{.name = {}, .dtype = to, .shape = value.shape};
  std::string input = in_graph(value, base);
  result.name = fresh(base);
  add(CastOp{to, options}, {std::move(input)}, {result.name}, base);
  return result;
}

void Values::give_as(const Value& value, const std::string& name, const std::string& node) {
  if (value.literal) {
    add(ConstantOp{*value.literal}, {}, {name}, node);
  } else {
    add(IdentityOp{}, {value.name}, {name}, node);
  }
}

Result<Value> Values::weigh(const Value& value, const Tree& weight, const std::string& base) {
  const auto* integer = weight.as<std::int64_t>();
  const auto* real = weight.as<double>();
  if (integer == nullptr && real == nullptr) {
    return unsupported(fmt::format("the weight is {}", weight.kind()), "weights are 64-bit integers or real numbers");
  }
  const double number = integer != nullptr ? static_cast<double>(*integer) : *real;
  if (number == 1) return value;
  if (value.dtype == DType::undefined) {
    return unsupported("a weight on a value of unknown type",
                       "name the type at the port that it comes from, or when the model is loaded");
  }
  if (value.dtype == DType::string) return unsupported("a weight on texts");
  if (!std::isfinite(number)) return unsupported("the weight is not finite");
  if (value.is_number) {  // Python's own arithmetic
    const std::optional<Number> factor = number_of(*value.literal);
    if (!factor) return unsupported("a weight on a number beyond int64");
    if (integer == nullptr || !factor->is_integer) return literal(Tree{number * factor->real});
    std::int64_t product = 0;
    if (__builtin_mul_overflow(*integer, factor->integer, &product)) {
      return unsupported("the product with the weight is beyond int64");
    }
    return literal(Tree{product});
  }
  return weigh_tensor(value, integer == nullptr, integer == nullptr ? 0 : *integer, number, base);
}

Result<Value> Values::weigh_tensor(const Value& value, bool real_weight, std::int64_t integer, double real,
                                   const std::string& base) {
  const bool is_float = family(value.dtype) == Family::floating;
  CastOptions options;
  options.scale = real;
  if (!is_float && !real_weight) {
    const DType to = value.dtype == DType::boolean ? DType::int64 : value.dtype;
    if (!converted_to(to, tensor_of(integer))) {
      return unsupported(fmt::format("the weight {} is not a value of {}", integer, name(to)));
    }
    if (static_cast<std::int64_t>(real) != integer || std::abs(real) > 0x1p53) {
      return unsupported(fmt::format("the weight {} is beyond 2^53", integer));
    }
    return convert(value, to, options, base);
  }
  if (semantics_ == MdfSemantics::onnx) return convert(value, is_float ? value.dtype : DType::float64, options, base);
  // NumPy rounds the weight to the array's type, or the array to the weight's type, before it multiplies.
  if (is_float) {
    options.scale = rounded_to(value.dtype, real);
    if (!std::isfinite(options.scale))
      return unsupported(fmt::format("the weight is not a finite {}", name(value.dtype)));
    return convert(value, value.dtype, options, base);
  }
  return convert(convert(value, DType::float64, {}, base), DType::float64, options, base);
}

}  // namespace tensorcast::models::mdf
