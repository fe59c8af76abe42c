// The loops of a tally of integers, as each target compiles them in files of their own.
#pragma once

#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

IntegerLoop integer_loop(const IntegerRules& rules);
void tally_long_integers(const std::byte* source, const std::byte* result, bool is_result_double, std::size_t count,
                         const IntegerRules& rules, LongTally& tally);

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
