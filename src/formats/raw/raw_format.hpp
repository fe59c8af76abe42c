// Bytes alone: dense little-endian elements in C order, whose type and shape the caller knows.
#pragma once

#include "formats/format.hpp"

namespace tensorcast::formats {

extern const Format raw_format;

}  // namespace tensorcast::formats
