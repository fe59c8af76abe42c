// SPDX-License-Identifier: Apache-2.0
// The known facts about a value before a run: perhaps its dtype, perhaps its shape.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tensorcast/graph.hpp"

namespace tensorcast::graph {

struct ValueType {
  DType dtype = DType::undefined;                       // undefined: not known
  std::optional<std::vector<std::int64_t>> shape = {};  // absent: not known; -1: any length
};

// Example: "float32 [2, ?]", "any type, any shape".
[[nodiscard]] std::string describe(const ValueType& type);
[[nodiscard]] ValueType type_of(const Tensor& tensor);

[[nodiscard]] bool shapes_agree(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

// Returns the facts that hold if both `a` and `b` are true. Errors: invalid_argument if they contradict each other.
[[nodiscard]] Result<ValueType> both(const ValueType& a, const ValueType& b);

// Returns the facts that hold if `a` or `b` is true. Errors: invalid_argument if the dtypes are known and differ.
[[nodiscard]] Result<ValueType> either(const ValueType& a, const ValueType& b);

// Checks a declared type. Errors: unsupported: u1; invalid_argument: no dtype, or a dimension below -1.
[[nodiscard]] Result<void> check_declared(const ValueType& type);

}  // namespace tensorcast::graph
