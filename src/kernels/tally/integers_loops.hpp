// The loops of a tally of integers, as each target compiles them.
#pragma once

#include "kernels/tally/integers.hpp"

namespace tensorcast::kernels {

using WordLoop = void (*)(const std::byte* source, const std::byte* result, std::size_t count,
                          const IntegerRules& rules, WordTally& tally);
using WideLoop = void (*)(const std::byte* source, const std::byte* result, bool is_result_double, std::size_t count,
                          const IntegerRules& rules, WideTally& tally);

namespace portable {
WordLoop word_loop(const IntegerRules& rules);
extern const WideLoop tally_wide_integers;
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
WordLoop word_loop(const IntegerRules& rules);
extern const WideLoop tally_wide_integers;
}  // namespace avx2
namespace avx512 {
WordLoop word_loop(const IntegerRules& rules);
extern const WideLoop tally_wide_integers;
}  // namespace avx512
#endif

}  // namespace tensorcast::kernels
