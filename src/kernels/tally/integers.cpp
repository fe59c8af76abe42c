#include "kernels/tally/integers.hpp"

#include <algorithm>

#include "kernels/tally/integers_loops.hpp"

namespace tensorcast::kernels {
namespace {

WordLoop word_loop_of(Target target, const IntegerRules& rules) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      return portable::word_loop(rules);
    case Target::avx2:
      return avx2::word_loop(rules);
    case Target::avx512:
    case Target::avx512vbmi:
      return avx512::word_loop(rules);
  }
#endif
  static_cast<void>(target);
  return portable::word_loop(rules);
}

WideLoop wide_loop_of(Target target) {
#if defined(__x86_64__)
  switch (target) {
    case Target::portable:
      return portable::tally_wide_integers;
    case Target::avx2:
      return avx2::tally_wide_integers;
    case Target::avx512:
    case Target::avx512vbmi:
      return avx512::tally_wide_integers;
  }
#endif
  static_cast<void>(target);
  return portable::tally_wide_integers;
}

}  // namespace

void WordTally::merge(const WordTally& other) noexcept {
  inexact += other.inexact;
  beyond += other.beyond;
  zeros += other.zeros;
  signal += other.signal;
  noise += other.noise;
  max_error = std::max(max_error, other.max_error);
  if (std::uint32_t{other.ratio_error} * ratio_source > std::uint32_t{ratio_error} * other.ratio_source) {
    ratio_error = other.ratio_error;
    ratio_source = other.ratio_source;
  }
}

void tally_words(Target target, const std::byte* source, const std::byte* result, std::size_t count,
                 const IntegerRules& rules, WordTally& tally) noexcept {
  word_loop_of(target, rules)(source, result, count, rules, tally);
}

void tally_wide_integers(Target target, const std::byte* source, const std::byte* result, bool is_result_double,
                         std::size_t count, const IntegerRules& rules, WideTally& tally) noexcept {
  wide_loop_of(target)(source, result, is_result_double, count, rules, tally);
}

}  // namespace tensorcast::kernels
