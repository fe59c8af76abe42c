// Tensors of the C++ library on memory of Python's, and Python's arrays on memory of the library's.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "tensorcast/tensor.hpp"

namespace tensorcast::python {

// A tensor on the memory of a contiguous array that holds packed storage; keeps the array alive.
[[nodiscard]] Tensor tensor_on_array(nanobind::handle storage, nanobind::handle dtype,
                                     const std::vector<std::int64_t>& shape);
[[nodiscard]] Tensor tensor_of_texts(const nanobind::list& texts, const std::vector<std::int64_t>& shape);

// The packed storage as a flat uint8 array on the same memory; writeable only where nobody else has the memory.
[[nodiscard]] nanobind::object array_on_tensor(const Tensor& tensor);
[[nodiscard]] nanobind::list texts_of_tensor(const Tensor& tensor);

}  // namespace tensorcast::python
