#include "kernels/tally/words.hpp"

#include <algorithm>

#include "kernels/tally/words_loops.hpp"

namespace tensorcast::kernels {
namespace {

WordLoop loop_of(Target target, const WordRules& rules) {
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
                 const WordRules& rules, WordTally& tally) noexcept {
  loop_of(target, rules)(source, result, count, rules, tally);
}

}  // namespace tensorcast::kernels
