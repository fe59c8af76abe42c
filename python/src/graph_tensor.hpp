// SPDX-License-Identifier: Apache-2.0
// What graphs have, as Python's objects and back: tensors on Python's memory, arrays on the library's, and steps.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tensorcast/graph.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::python {

// Keeps an object of Python alive until the last copy is gone, on whatever thread that is.
[[nodiscard]] std::shared_ptr<PyObject> shared_object(nanobind::handle object);

// Makes a tensor on the memory of a contiguous array of packed storage; keeps the array alive.
[[nodiscard]] Tensor tensor_on_array(nanobind::handle storage, nanobind::handle dtype,
                                     const std::vector<std::int64_t>& shape);
[[nodiscard]] Tensor tensor_of_texts(const nanobind::list& texts, const std::vector<std::int64_t>& shape);

// Makes a flat uint8 array on the tensor's packed storage; writeable only if no one else uses the memory.
[[nodiscard]] nanobind::object array_on_tensor(const Tensor& tensor);
[[nodiscard]] nanobind::list texts_of_tensor(const Tensor& tensor);

// Takes a graph apart, so that Python can pickle it: (method, arguments) of the bound class Graph for each input, node
// and output, in order.
[[nodiscard]] nanobind::list steps_of(const Graph& graph);

}  // namespace tensorcast::python
