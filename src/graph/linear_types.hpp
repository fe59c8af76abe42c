// SPDX-License-Identifier: Apache-2.0
// The types and shapes of QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and BitCast, opset by opset.
#pragma once

#include <span>
#include <vector>

#include "graph/value_type.hpp"
#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

// Each returns what is known of the output. Types and shapes that are not known yet pass; a run checks them.
// Errors: unsupported: a type or an attribute that the opset does not have; invalid_argument: shapes or types that do
// not belong together.
[[nodiscard]] Result<ValueType> infer_quantize(const QuantizeLinearOp& operation, std::span<const ValueType> inputs);
[[nodiscard]] Result<ValueType> infer_dequantize(const DequantizeLinearOp& operation,
                                                 std::span<const ValueType> inputs);
[[nodiscard]] Result<std::vector<ValueType>> infer_dynamic_quantize(const ValueType& input);
[[nodiscard]] Result<ValueType> infer_bit_cast(DType to, const ValueType& input);

// Returns `axis` counted from the first dimension. Errors: invalid_argument: not in [-rank, rank - 1].
[[nodiscard]] Result<std::size_t> axis_from_first(std::int64_t axis, std::size_t rank);

}  // namespace tensorcast::graph
