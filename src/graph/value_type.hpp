// What is known about a value before it is computed: perhaps its dtype, perhaps its shape.
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

// "float32 [2, ?]", "any type, any shape".
[[nodiscard]] std::string describe(const ValueType& type);
[[nodiscard]] ValueType type_of(const Tensor& tensor);

[[nodiscard]] bool shapes_agree(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

// What holds if both are true. Errors: invalid_argument when they cannot both be.
[[nodiscard]] Result<ValueType> both(const ValueType& a, const ValueType& b);

// What holds if one of them is true. Errors: invalid_argument when the dtypes are known and differ.
[[nodiscard]] Result<ValueType> either(const ValueType& a, const ValueType& b);

// Errors: unsupported: u1; invalid_argument: no dtype, or a dimension below -1.
[[nodiscard]] Result<void> check_declared(const ValueType& type);

}  // namespace tensorcast::graph
