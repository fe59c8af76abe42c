// SPDX-License-Identifier: Apache-2.0
#include "graph/value_type.hpp"

#include <fmt/format.h>

#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::graph {

std::string describe(const ValueType& type) {
  std::string text = type.dtype == DType::undefined ? "any type" : std::string(name(type.dtype));
  if (!type.shape) return text + ", any shape";
  text += " [";
  for (std::size_t i = 0; i < type.shape->size(); ++i) {
    const std::int64_t dimension = (*type.shape)[i];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", dimension < 0 ? "?" : std::to_string(dimension));
  }
  return text + "]";
}

ValueType type_of(const Tensor& tensor) {
  return {tensor.dtype(), std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())};
}

bool shapes_agree(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != -1 && b[i] != -1) return false;
  }
  return true;
}

Result<ValueType> both(const ValueType& a, const ValueType& b) {
  const bool dtypes_agree = a.dtype == b.dtype || a.dtype == DType::undefined || b.dtype == DType::undefined;
  if (!dtypes_agree || (a.shape && b.shape && !shapes_agree(*a.shape, *b.shape))) {
    return invalid(fmt::format("{} is not {}", describe(a), describe(b)));
  }
  ValueType result{a.dtype == DType::undefined ? b.dtype : a.dtype, a.shape ? a.shape : b.shape};
  if (a.shape && b.shape) {
    for (std::size_t i = 0; i < result.shape->size(); ++i) {
      if ((*result.shape)[i] == -1) (*result.shape)[i] = (*b.shape)[i];
    }
  }
  return result;
}

Result<ValueType> either(const ValueType& a, const ValueType& b) {
  if (a.dtype != b.dtype && a.dtype != DType::undefined && b.dtype != DType::undefined) {
    return invalid(fmt::format("{} on one side and {} on the other", name(a.dtype), name(b.dtype)));
  }
  ValueType result;
  if (a.dtype == b.dtype) result.dtype = a.dtype;
  if (a.shape && b.shape && a.shape->size() == b.shape->size()) {
    result.shape = a.shape;
    for (std::size_t i = 0; i < result.shape->size(); ++i) {
      if ((*result.shape)[i] != (*b.shape)[i]) (*result.shape)[i] = -1;
    }
  }
  return result;
}

Result<void> check_declared(const ValueType& type) {
  if (type.dtype != DType::undefined) {
    TRY(check_castable(type.dtype));
  }
  if (!type.shape) return {};
  for (const std::int64_t dimension : *type.shape) {
    if (dimension >= -1) continue;
    return invalid(fmt::format("dimension {} is negative", dimension), "-1 stands for any length");
  }
  return {};
}

}  // namespace tensorcast::graph
