// SPDX-License-Identifier: Apache-2.0
// Exchanges tensors with other libraries by DLPack, without copying: versioned and older capsules, all types of
// tensorcast.
#pragma once

#include "numpy_api.hpp"

namespace tensorcast::python {

// from_dlpack(capsule) -> (array, name, shape). `array` shares the capsule's memory and has the tensor's strides; for a
// packed type under 8 bits it is a flat uint8 array, and `shape` counts the elements. Takes ownership of the capsule.
// TypeError for unknown types and capsules; null with a Python error set.
PyObject* from_dlpack(PyObject* capsule);

// Reports whether `x` has DLPack, and the result of casting it is a NumPy array: neither NumPy's own objects,
// PyTorch's, nor those of a library with an array namespace, such as JAX.
[[nodiscard]] bool lends_memory(PyObject* x) noexcept;

// Returns an array on the memory of such an object. Null, perhaps with a Python error set, if that is not on the host,
// packed or refused: the general form then finds out why.
[[nodiscard]] PyObject* array_on_dlpack(PyObject* x);

// Returns a capsule of the array's memory, versioned or not; `copied` says that no one else has this memory.
// BufferError for what DLPack cannot express: types that it lacks, other byte orders and, without a version, read-only
// arrays and types under 8 bits, which have one element per byte.
PyObject* to_dlpack(PyObject* array, bool versioned, bool copied);

}  // namespace tensorcast::python
