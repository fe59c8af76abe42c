// SPDX-License-Identifier: Apache-2.0
// Component models. A graph of conversion nodes, as ONNX, OpenVINO IR and MDF models carry them: data to build,
// compile once, run often.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/promote.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct Graph;

// What a node does. Each comment lists the inputs; one output unless stated.
struct CastOp {  // x: ONNX Cast, OpenVINO Convert, MDF's edge weights (options.scale)
  DType to = DType::undefined;
  CastOptions options = {};
};
struct CastLikeOp {  // x, target_type: casts x to the dtype of target_type, whose elements are ignored
  CastOptions options = {};
};
struct ConvertPromoteTypesOp {  // a, b -> a, b in their common type; rank 0 counts as a scalar
  PromoteOptions promote = {};
  CastOptions options = {};
};
struct IdentityOp {};  // x
struct ConstantOp {    // nothing
  Tensor value = {};
};
// condition: a bool of one element; outputs are those of the branch. Branches have no inputs of their own: they name
// values of the graphs around them.
struct IfOp {
  std::shared_ptr<const Graph> then_branch = {};
  std::shared_ptr<const Graph> else_branch = {};
};
// x: the same bits as another type of the same width (ONNX BitCast, since opset 26).
struct BitCastOp {
  DType to = DType::undefined;
};
// x, y_scale[, y_zero_point]: ONNX QuantizeLinear. docs/nodes.md has the steps.
struct QuantizeLinearOp {
  int opset = 0;                          // 0: the newest
  std::int64_t axis = 1;                  // of one scale for each index or block; negative: from the last
  std::int64_t block_size = 0;            // elements along the axis that share a scale; 0: no blocks
  bool saturate = true;                   // float8 only
  DType output_dtype = DType::undefined;  // undefined: the zero point's, uint8 without one
  DType precision = DType::undefined;     // of the division; undefined: the scale's
};
// x, x_scale[, x_zero_point]: ONNX DequantizeLinear.
struct DequantizeLinearOp {
  int opset = 0;                          // 0: the newest
  std::int64_t axis = 1;                  // as in QuantizeLinearOp
  std::int64_t block_size = 0;            // as in QuantizeLinearOp
  DType output_dtype = DType::undefined;  // undefined: the scale's
};
struct DynamicQuantizeLinearOp {};  // x -> y, y_scale, y_zero_point: ONNX DynamicQuantizeLinear
using Operation = std::variant<CastOp, CastLikeOp, ConvertPromoteTypesOp, IdentityOp, ConstantOp, IfOp, BitCastOp,
                               QuantizeLinearOp, DequantizeLinearOp, DynamicQuantizeLinearOp>;

struct GraphNode {
  std::string name = {};  // for messages; need not be unique, may be empty
  Operation operation = {};
  std::vector<std::string> inputs = {};   // values: inputs of the graph or outputs of nodes
  std::vector<std::string> outputs = {};  // each value is defined once in a graph
};

// The facts about a value that are known before a run.
struct ValueInfo {
  std::string name = {};
  DType dtype = DType::undefined;                       // undefined: any
  std::optional<std::vector<std::int64_t>> shape = {};  // absent: any rank; -1: any length
  std::optional<Tensor> default_value = {};             // inputs only: used when a run does not give one
};

// Nodes may stand in any order.
struct Graph {
  std::string name = {};
  std::vector<ValueInfo> inputs = {};
  std::vector<GraphNode> nodes = {};
  std::vector<ValueInfo> outputs = {};  // `name` says which value
};

// A graph that is checked and put in order. Immutable: any number of threads may run it at once.
class Program {
 public:
  // Checks the graph, infers types and shapes, and orders the nodes.
  // Errors: invalid_argument: a value that is used but never defined, or defined twice, a cycle, a wrong number of
  // inputs, dtypes or shapes that disagree; unsupported: a type that the operation or its opset does not have. The
  // message names the node.
  [[nodiscard]] TENSORCAST_API static Result<Program> compile(Graph graph);

  // Inputs and outputs, with their inferred types and shapes.
  [[nodiscard]] TENSORCAST_API std::span<const ValueInfo> inputs() const noexcept;
  [[nodiscard]] TENSORCAST_API std::span<const ValueInfo> outputs() const noexcept;

  // Runs the graph and returns the values of the outputs, in order. A value whose type does not change is shared with
  // the input, not copied. Errors: invalid_argument: an input that is missing, unknown, or not of its dtype or shape;
  // else as cast().
  [[nodiscard]] TENSORCAST_API Result<std::vector<NamedTensor>> run(std::span<const NamedTensor> inputs,
                                                                    const Execution& execution = {}) const;

 private:
  struct Impl;
  explicit Program(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
