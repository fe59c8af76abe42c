// SPDX-License-Identifier: Apache-2.0
// Proves that a DequantizeLinear and the QuantizeLinear behind it give back every code.
#pragma once

#include "io/input_file.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/precision/precision_plan.hpp"

namespace tensorcast::models::onnx {

class CodePairs {
 public:
  // Both outlive it. `plan` changes no type.
  CodePairs(const io::InputFile& file, const PrecisionPlan& plan) : file_(file), plan_(plan) {}

  // Reports whether `quantize` gives back the input of `dequantize`, which makes its first input. Scales and zero
  // points must be constants, the same for both nodes. All codes of the type are run with each pair of a scale and a
  // zero point: the pair changes nothing if every byte comes back. False: a code changes, or it is not known. Cost: at
  // most 2^24 codes.
  [[nodiscard]] bool give_back(const Node& dequantize, const Node& quantize, const Graph& graph) const;

 private:
  struct Numbers;
  [[nodiscard]] bool read(ValueId id, Numbers& numbers) const;

  const io::InputFile& file_;
  const PrecisionPlan& plan_;
};

[[nodiscard]] inline bool is_quantize(const Node& node) noexcept {
  return node.domain.empty() && node.op_type == "QuantizeLinear";
}
[[nodiscard]] inline bool is_dequantize(const Node& node) noexcept {
  return node.domain.empty() && node.op_type == "DequantizeLinear";
}

}  // namespace tensorcast::models::onnx
