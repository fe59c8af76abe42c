// The loops of a tally of integers, as each target compiles them.
#pragma once

#include "kernels/tally/integers.hpp"

namespace tensorcast::kernels {

using IntegerLoop = void (*)(const std::byte* source, const std::byte* result, std::size_t count,
                             const IntegerRules& rules, IntegerTally& tally);
using LongLoop = void (*)(const std::byte* source, const std::byte* result, bool is_result_double, std::size_t count,
                          const IntegerRules& rules, LongTally& tally);

namespace portable {
IntegerLoop integer_loop(const IntegerRules& rules);
extern const LongLoop tally_long_integers;
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
IntegerLoop integer_loop(const IntegerRules& rules);
extern const LongLoop tally_long_integers;
}  // namespace avx2
namespace avx512 {
IntegerLoop integer_loop(const IntegerRules& rules);
extern const LongLoop tally_long_integers;
}  // namespace avx512
#endif

}  // namespace tensorcast::kernels
