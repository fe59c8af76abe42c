// SPDX-License-Identifier: Apache-2.0
// Casts of PyTorch's tensors without Python code on the way. No header of PyTorch is needed: its objects are asked by
// name, which costs 40 to 80 ns each.
#pragma once

#include "numpy_api.hpp"

#include "strided.hpp"

namespace tensorcast::python {

// Sets what the calls below need of PyTorch, a dictionary that tensorcast._interop._torch makes. Returns -1 with a
// Python error set if something is missing.
int load_torch(PyObject* parts);

// Reports whether `x` is a torch.Tensor or Parameter, not of a subclass. False before load_torch().
[[nodiscard]] bool is_torch_tensor(PyObject* x) noexcept;

// Reports whether `x` is a tensor of any class of PyTorch. True before load_torch() if PyTorch is loaded: nobody knows.
[[nodiscard]] bool may_be_torch_tensor(PyObject* x) noexcept;

// Casts a contiguous tensor of the CPU to a new one with the strides of `x`. Returns null without a Python error if
// PyTorch must see the cast (it traces, transforms or records gradients), or for another layout, device or type; null
// with one if the cast fails. Precondition: is_torch_tensor(x).
[[nodiscard]] PyObject* cast_torch(PyObject* x, DType to, const CastOptions& options);

// Returns a function for torch.ops.tensorcast.cast that does what cast_torch() can do, and calls `dispatched`, which
// goes through PyTorch's dispatcher, for the rest.
[[nodiscard]] PyObject* make_torch_operator(PyObject* dispatched);

}  // namespace tensorcast::python
