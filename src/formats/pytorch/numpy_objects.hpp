// SPDX-License-Identifier: Apache-2.0
// NumPy's scalars and arrays in pickles.
#pragma once

#include "formats/pytorch/pickle_arguments.hpp"

namespace tensorcast::formats::pytorch {

// Errors of all: parse; unsupported for types that are not numbers, and for memory.
[[nodiscard]] Result<Ref> make_numpy_dtype(Objects& objects, const Arguments& arguments);
[[nodiscard]] Result<void> set_numpy_dtype_state(Objects& objects, Ref dtype, Ref state);
[[nodiscard]] Result<Ref> make_numpy_scalar(Objects& objects, const Arguments& arguments);
[[nodiscard]] Result<Ref> make_numpy_array_of_buffer(Objects& objects, const Arguments& arguments);
// Turns the array into a tensor.
[[nodiscard]] Result<void> set_numpy_array_state(Objects& objects, Ref array, Ref state);

}  // namespace tensorcast::formats::pytorch
