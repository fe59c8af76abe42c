// SPDX-License-Identifier: Apache-2.0
// Numbers in blocks that share scales.
#pragma once

#include "numpy_api.hpp"

#include <nanobind/nanobind.h>

#include "tensorcast/block.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::python {

// The numbers of a weight, rounded once to `dtype`. Lets other threads of Python run. Throws what dequantize() returns.
Tensor dequantized(const BlockTensor& weight, nanobind::handle dtype);

}  // namespace tensorcast::python
