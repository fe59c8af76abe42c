#include "kernels/tally/integers.hpp"

#include <algorithm>

#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels {
void IntegerTally::merge(const IntegerTally& other) noexcept {
  inexact += other.inexact;
  beyond += other.beyond;
  zeros += other.zeros;
  signal += other.signal;
  noise += other.noise;
  max_error = std::max(max_error, other.max_error);
  see_ratio(other.ratio_error, other.ratio_source);
}

void tally_integers(Target target, const std::byte* source, const std::byte* result, std::size_t count,
                    const IntegerRules& rules, IntegerTally& tally) noexcept {
  tally_loops_of(target).integer_loop(rules)(source, result, count, rules, tally);
}

void tally_long_integers(Target target, const std::byte* source, const std::byte* result, bool is_result_double,
                         std::size_t count, const IntegerRules& rules, LongTally& tally) noexcept {
  tally_loops_of(target).long_integers(source, result, is_result_double, count, rules, tally);
}

}  // namespace tensorcast::kernels
