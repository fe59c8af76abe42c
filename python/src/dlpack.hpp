// Tensors of other libraries by DLPack, without copying: versioned capsules and the older ones, all types of the
// project.
#pragma once

#include "numpy_api.hpp"

namespace tensorcast::python {

// from_dlpack(capsule) -> (array, name, shape). `array` shares the capsule's memory and has the tensor's strides; where
// a type under 8 bits lies packed it is a flat uint8 array, and `shape` counts the elements. Takes the capsule's
// ownership. TypeError for types and capsules that are not known; null with a Python error set.
PyObject* from_dlpack(PyObject* capsule);

// A capsule of the array's memory, versioned or not; types under 8 bits have a byte each, which only a versioned
// capsule can say: without it BufferError.
PyObject* to_dlpack(PyObject* array, bool versioned);

}  // namespace tensorcast::python
