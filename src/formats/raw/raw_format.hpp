// Raw bytes: dense little-endian elements in C order; the caller gives type and shape.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format raw_format;

}  // namespace tensorcast::formats
