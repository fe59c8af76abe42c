// SPDX-License-Identifier: Apache-2.0
// The functions of MDF that convert, and their meaning under each semantics.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/mdf/mdf_model.hpp"
#include "models/mdf/mdf_value.hpp"

namespace tensorcast::models::mdf {

enum class Function { cast, cast_like, identity, constant };

// Finds "onnx::Cast", or the reference engine's own "onnx_ops.cast(...)", whose parentheses it ignores. Returns nullopt
// for another function, or for none.
[[nodiscard]] std::optional<Function> find_function(const Term& term);
// Returns the names of inputs and attributes, which may be arguments or other parts of the node.
[[nodiscard]] std::span<const std::string_view> names_of(Function function);

class Functions {
 public:
  using Arguments = std::map<std::string, Value, std::less<>>;

  Functions(Values& values, int opset, MdfSemantics semantics)
      : values_(values), opset_(semantics == MdfSemantics::onnx ? opset : 15), semantics_(semantics) {}

  // Rejects arguments that the operator does not have; the reference engine ignores them.
  [[nodiscard]] Result<void> check_arguments(Function function, const Term& term) const;
  // Errors: parse, unsupported: an input or attribute that is missing or has an invalid value.
  [[nodiscard]] Result<Value> apply(Function function, const Arguments& arguments, const std::string& base);

 private:
  [[nodiscard]] Result<Value> input(const Arguments& arguments, std::string_view name, const std::string& base);
  [[nodiscard]] Result<CastOptions> options(const Arguments& arguments) const;
  [[nodiscard]] Result<Value> cast(const Arguments& arguments, const std::string& base);
  [[nodiscard]] Result<Value> cast_like(const Arguments& arguments, const std::string& base);
  [[nodiscard]] Value finished(Value result, const std::string& base);

  Values& values_;
  int opset_;
  MdfSemantics semantics_;
};

}  // namespace tensorcast::models::mdf
