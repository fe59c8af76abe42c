// SPDX-License-Identifier: Apache-2.0
#include "models/mdf/mdf_function.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "models/mdf/mdf_literal.hpp"

namespace tensorcast::models::mdf {
namespace {

struct Row {
  Function function;
  std::string_view name;
  std::string_view python_name;
  std::span<const std::string_view> names;
};

constexpr std::string_view cast_names[] = {"input", "to", "saturate", "round_mode"};
constexpr std::string_view cast_like_names[] = {"input", "target_type", "saturate", "round_mode"};
constexpr std::string_view identity_names[] = {"input"};
constexpr std::string_view constant_names[] = {"value"};

constexpr Row rows[] = {
    {Function::cast, "onnx::Cast", "cast", cast_names},
    {Function::cast_like, "onnx::CastLike", "castlike", cast_like_names},
    {Function::identity, "onnx::Identity", "identity", identity_names},
    {Function::constant, "onnx::Constant", "constant", constant_names},
};

// An attribute is part of the operator, so its value must be a number in the file.
Result<std::int64_t> integer_attribute(const Value& value, std::string_view name) {
  if (!value.literal) {
    return unsupported(fmt::format("the attribute {} is computed", name), "attributes are numbers in the file");
  }
  const std::optional<Number> number = number_of(*value.literal);
  if (number && number->is_integer) return number->integer;
  // Converts like Python's int().
  if (number && number->real >= -0x1p62 && number->real <= 0x1p62 &&
      static_cast<double>(static_cast<std::int64_t>(number->real)) == number->real) {
    return static_cast<std::int64_t>(number->real);
  }
  return parse_error(fmt::format("the attribute {} is not a whole number", name));
}

}  // namespace

std::optional<Function> find_function(const Term& term) {
  std::string_view expression = term.function;
  if (expression.empty() && term.is_function && term.value != nullptr) {
    if (const auto* text = term.value->as<std::string>()) expression = *text;
  }
  const bool python = expression.find("onnx_ops.") != std::string_view::npos;
  if (python) {
    expression = expression.substr(0, expression.find('('));
    expression = expression.substr(expression.rfind('.') + 1);
  }
  const auto* row = std::ranges::find_if(rows, [&](const Row& r) {
    return python ? r.python_name == expression : !term.function.empty() && r.name == expression;
  });
  return row == std::end(rows) ? std::nullopt : std::optional(row->function);
}

std::span<const std::string_view> names_of(Function function) {
  return find_row(rows, &Row::function, function)->names;
}

Result<void> Functions::check_arguments(Function function, const Term& term) const {
  if (semantics_ == MdfSemantics::mdf_reference) return {};
  const auto names = names_of(function);
  for (const auto& [name, expression] : term.args) {
    if (!contains(names, name)) {
      return parse_error(fmt::format("the operator has no input or attribute \"{}\"", name.substr(0, 60)));
    }
    const bool too_new = (name == "saturate" && opset_ < 19) || (name == "round_mode" && opset_ < 24);
    if (too_new) {
      return unsupported(fmt::format("opset {} has no attribute {}", opset_, name),
                         "set onnx_opset_version of the model");
    }
  }
  return {};
}

Result<Value> Functions::input(const Arguments& arguments, std::string_view name, const std::string& base) {
  const auto found = arguments.find(name);
  if (found == arguments.end()) return parse_error(fmt::format("the input \"{}\" is missing", name));
  Value value = found->second;
  if (value.is_text()) return parse_error(fmt::format("\"{}\" is not a value", value.text.substr(0, 60)));
  if (semantics_ == MdfSemantics::onnx) return value;

  // The reference engine converts every input of an operator this way.
  if (value.is_number) {
    value.literal = value.literal->reshaped({1}).value();
    value.shape = std::vector<std::int64_t>{1};
    value.is_number = false;
  }
  if (value.dtype == DType::undefined) {
    return unsupported(
        fmt::format("the type of the input \"{}\" is not known, and what the reference engine does to it "
                    "depends on it",
                    name),
        "name the type at the port, or read the model with the semantics of ONNX");
  }
  if (value.dtype == DType::int32) return values_.convert(value, DType::int64, {}, base + "." + std::string(name));
  if (value.dtype == DType::float64) return values_.convert(value, DType::float32, {}, base + "." + std::string(name));
  return value;
}

Result<CastOptions> Functions::options(const Arguments& arguments) const {
  CastOptions options;
  options.opset = opset_;
  if (semantics_ == MdfSemantics::mdf_reference) {
    options.float_string = FloatString::g8;  // ONNX Runtime's
    return options;
  }
  if (const auto saturate = arguments.find("saturate"); saturate != arguments.end() && opset_ >= 19) {
    const std::int64_t value = TRY(integer_attribute(saturate->second, "saturate"));
    options.saturate = value != 0;
  }
  if (const auto mode = arguments.find("round_mode"); mode != arguments.end() && opset_ >= 24) {
    const std::string& text = mode->second.text;
    if (text != "up" && text != "down" && text != "nearest") {
      return parse_error("round_mode is not one of up, down, nearest");
    }
    options.round_mode = text == "up" ? RoundMode::up : text == "down" ? RoundMode::down : RoundMode::nearest;
  }
  return options;
}

// The reference engine converts float32 results to float64.
Value Functions::finished(Value result, const std::string& base) {
  if (semantics_ == MdfSemantics::onnx || result.dtype != DType::float32) return result;
  return values_.convert(result, DType::float64, {}, base);
}

Result<Value> Functions::cast(const Arguments& arguments, const std::string& base) {
  const auto to = arguments.find("to");
  if (to == arguments.end()) return parse_error("the attribute \"to\" is missing");
  const std::int64_t number = TRY(integer_attribute(to->second, "to"));
  const auto dtype = static_cast<DType>(number);
  if (number < 0 || number > 1000 || !is_onnx(dtype)) {
    return unsupported(fmt::format("the attribute to is {}, which is not a type that tensors are cast to", number));
  }
  if (since_opset(dtype) > opset_) {
    return unsupported(fmt::format("opset {} has no {}; opset {} has", opset_, name(dtype), since_opset(dtype)),
                       "set onnx_opset_version of the model");
  }
  Value x = TRY(input(arguments, "input", base));
  const CastOptions chosen = TRY(options(arguments));
  return finished(values_.convert(x, dtype, chosen, base), base);
}

Result<Value> Functions::cast_like(const Arguments& arguments, const std::string& base) {
  if (opset_ < 15) return unsupported(fmt::format("opset {} has no CastLike; opset 15 has", opset_));
  Value x = TRY(input(arguments, "input", base));
  Value like = TRY(input(arguments, "target_type", base));
  const CastOptions chosen = TRY(options(arguments));
  if (like.dtype != DType::undefined) return finished(values_.convert(x, like.dtype, chosen, base), base);
  std::vector<std::string> inputs = {values_.in_graph(x, base), values_.in_graph(like, base)};
  Value result{.name = values_.fresh(base), .dtype = DType::undefined, .shape = x.shape};
  values_.add(CastLikeOp{chosen}, std::move(inputs), {result.name}, base);
  return result;
}

Result<Value> Functions::apply(Function function, const Arguments& arguments, const std::string& base) {
  switch (function) {
    case Function::cast:
      return cast(arguments, base);
    case Function::cast_like:
      return cast_like(arguments, base);
    case Function::identity: {
      Value x = TRY(input(arguments, "input", base));
      return finished(std::move(x), base);
    }
    case Function::constant: {
      const auto value = arguments.find("value");
      if (value == arguments.end()) return parse_error("the attribute \"value\" is missing");
      if (value->second.is_text()) return parse_error("the attribute \"value\" is not a number");
      return finished(value->second, base);
    }
  }
  return unsupported("another function");
}

}  // namespace tensorcast::models::mdf
