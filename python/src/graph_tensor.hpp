// Makes tensors of the C++ library on Python's memory, and Python arrays on the library's memory.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "tensorcast/tensor.hpp"

namespace tensorcast::python {

// Makes a tensor on the memory of a contiguous array of packed storage; keeps the array alive.
[[nodiscard]] Tensor tensor_on_array(nanobind::handle storage, nanobind::handle dtype,
                                     const std::vector<std::int64_t>& shape);
[[nodiscard]] Tensor tensor_of_texts(const nanobind::list& texts, const std::vector<std::int64_t>& shape);

// Makes a flat uint8 array on the tensor's packed storage; writeable only if no one else uses the memory.
[[nodiscard]] nanobind::object array_on_tensor(const Tensor& tensor);
[[nodiscard]] nanobind::list texts_of_tensor(const Tensor& tensor);

}  // namespace tensorcast::python
