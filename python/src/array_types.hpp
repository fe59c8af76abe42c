// SPDX-License-Identifier: Apache-2.0
// NumPy's and ml_dtypes' descriptors for tensorcast's types, and back.
#pragma once

#include "numpy_api.hpp"

#include "tensorcast/dtype.hpp"

namespace tensorcast::python {

// How a NumPy array holds a type: ml_dtypes gives a type under 8 bits a byte of its own per element.
struct ArrayType {
  DType dtype = DType::undefined;
  bool one_per_byte = false;
};

// Looks up ml_dtypes' types. Called once at import; -1 with a Python error set on failure.
int load_array_types();

// undefined for types that no cast knows (complex, dates, structures, objects, text).
[[nodiscard]] ArrayType array_type(const PyArray_Descr* descr) noexcept;

// Borrowed; null without an error set for string and for unknown types.
[[nodiscard]] PyArray_Descr* array_descr(DType dtype) noexcept;

}  // namespace tensorcast::python
