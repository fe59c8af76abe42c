// NumPy's .npz: a zip archive of .npy files, stored (numpy.savez) or deflated (numpy.savez_compressed).
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format npz_format;

}  // namespace tensorcast::formats
