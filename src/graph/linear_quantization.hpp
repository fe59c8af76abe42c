// SPDX-License-Identifier: Apache-2.0
// Runs QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and BitCast.
#pragma once

#include <span>
#include <vector>

#include "graph/graph_value.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

// Divides, rounds the quotient once to the precision, adds the zero point and encodes: integers are rounded to nearest
// even and limited to the range, floats are cast by the opset's rules. NaN as an integer becomes the zero point.
// Memory: 8 bytes for each element. Errors: as infer_quantize(); invalid_argument: inputs of the wrong type or shape.
[[nodiscard]] Result<Value> quantize_linear(const QuantizeLinearOp& operation, std::span<const Value> inputs,
                                            const Execution& execution, const ConversionPlace& place);

// Returns (x - zero point) * scale, exact until it is rounded once to the type of the result. Memory and errors: as
// above; invalid_argument also for a zero point of int32 that is not 0.
[[nodiscard]] Result<Value> dequantize_linear(const DequantizeLinearOp& operation, std::span<const Value> inputs,
                                              const Execution& execution, const ConversionPlace& place);

// Returns y, y_scale and y_zero_point; every step is one float32 operation, as in the operator's function body.
[[nodiscard]] Result<std::vector<Value>> dynamic_quantize_linear(const Value& input, const Execution& execution,
                                                                 const ConversionPlace& place);

// Shares the bytes of `src`. Errors: as infer_bit_cast().
[[nodiscard]] Result<Value> bit_cast(Value src, DType to);

}  // namespace tensorcast::graph
