// NumPy's .npy: one unnamed array. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format npy_format;

}  // namespace tensorcast::formats
