// What a conversion did to a block of numbers.
#pragma once

#include <cstddef>

#include "cast/engine.hpp"

namespace tensorcast {

// Adds a converted block to `report`. The source must still be there: conversions in place keep a copy.
// Sums run in element order in blocks of a fixed size, so equal inputs give equal reports on every target.
void add_to_report(const Conversion& done, const codec::Policy& policy, CastReport& report);

}  // namespace tensorcast
