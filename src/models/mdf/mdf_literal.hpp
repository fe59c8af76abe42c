// SPDX-License-Identifier: Apache-2.0
// Makes tensors from numbers and lists of a model, with NumPy's types.
#pragma once

#include <cstdint>
#include <optional>

#include "models/mdf/mdf_tree.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::models::mdf {

// true: bool; integers: int64, or uint64 if one needs it; real numbers: float64; nested lists: more dimensions.
// Errors: parse: lists of unequal length, kinds that do not mix, null; an integer out of uint64's range.
[[nodiscard]] Result<Tensor> literal_tensor(const Tree& tree);

// The one number of a tensor of bool, int64, uint64 or float64.
struct Number {
  bool is_integer = false;
  std::int64_t integer = 0;
  double real = 0;  // also set for an integer
};
[[nodiscard]] std::optional<Number> number_of(const Tensor& tensor);
[[nodiscard]] Tensor tensor_of(std::int64_t number);
[[nodiscard]] Tensor tensor_of(double number);

}  // namespace tensorcast::models::mdf
