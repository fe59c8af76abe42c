// SPDX-License-Identifier: Apache-2.0
// Tensors from values and back, for the tests of every layer.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tensorcast/tensor.hpp"

namespace tensorcast {

template <class T>
Tensor tensor_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  Result<Tensor> tensor = Tensor::own(dtype, std::move(shape), std::move(bytes));
  if (!tensor) ADD_FAILURE() << tensor.error().describe();
  return tensor ? *tensor : Tensor();
}

template <class T>
std::vector<T> elements_of(const Tensor& tensor) {
  std::vector<T> elements(tensor.bytes().size() / sizeof(T));
  if (!elements.empty()) std::memcpy(elements.data(), tensor.bytes().data(), tensor.bytes().size());
  return elements;
}

inline std::vector<std::int64_t> shape_of(const Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

}  // namespace tensorcast
