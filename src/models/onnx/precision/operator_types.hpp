// SPDX-License-Identifier: Apache-2.0
// The types that a request gives to inputs and outputs of operators without a schema.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/ir/model_ir.hpp"

namespace tensorcast::models::onnx {

struct OperatorTypes {
  std::string domain;
  std::string op_type;
  DType all_inputs = DType::undefined;  // undefined: the entry names none
  DType all_outputs = DType::undefined;
  std::map<std::size_t, DType> inputs;  // by index
  std::map<std::size_t, DType> outputs;

  // Returns the type that the entry asks for; undefined if it asks for none.
  [[nodiscard]] DType input(std::size_t index) const;
  [[nodiscard]] DType output(std::size_t index) const;
  [[nodiscard]] bool names(const Node& node) const { return node.op_type == op_type && node.domain == domain; }
};

// Reads entries such as "com.microsoft::FusedMatMul:in=float16,out=float16" and "own::Op:in0=float16". Errors:
// invalid_argument: an entry that is malformed.
[[nodiscard]] Result<std::vector<OperatorTypes>> parse_operator_types(const std::vector<std::string>& entries);
// The same. Errors: also an entry that names an operator which the model does not have.
[[nodiscard]] Result<std::vector<OperatorTypes>> operator_types_of(const Model& model,
                                                                   const std::vector<std::string>& entries);

}  // namespace tensorcast::models::onnx
