#include "kernels/tally/integers.hpp"

#include <algorithm>

#include "kernels/tally/integers_loops.hpp"

namespace tensorcast::kernels {
namespace {

IntegerLoop integer_loop_of(Target target, const IntegerRules& rules) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      return portable::integer_loop(rules);
    case Target::avx2:
      return avx2::integer_loop(rules);
    case Target::avx512:
    case Target::avx512vbmi:
      return avx512::integer_loop(rules);
  }
#endif
  static_cast<void>(target);
  return portable::integer_loop(rules);
}

LongLoop long_loop_of(Target target) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      return portable::tally_long_integers;
    case Target::avx2:
      return avx2::tally_long_integers;
    case Target::avx512:
    case Target::avx512vbmi:
      return avx512::tally_long_integers;
  }
#endif
  static_cast<void>(target);
  return portable::tally_long_integers;
}

}  // namespace

void IntegerTally::merge(const IntegerTally& other) noexcept {
  inexact += other.inexact;
  beyond += other.beyond;
  zeros += other.zeros;
  signal += other.signal;
  noise += other.noise;
  max_error = std::max(max_error, other.max_error);
  if (std::uint64_t{other.ratio_error} * ratio_source > std::uint64_t{ratio_error} * other.ratio_source) {
    ratio_error = other.ratio_error;
    ratio_source = other.ratio_source;
  }
}

void tally_integers(Target target, const std::byte* source, const std::byte* result, std::size_t count,
                    const IntegerRules& rules, IntegerTally& tally) noexcept {
  integer_loop_of(target, rules)(source, result, count, rules, tally);
}

void tally_long_integers(Target target, const std::byte* source, const std::byte* result, bool is_result_double,
                         std::size_t count, const IntegerRules& rules, LongTally& tally) noexcept {
  long_loop_of(target)(source, result, is_result_double, count, rules, tally);
}

}  // namespace tensorcast::kernels
