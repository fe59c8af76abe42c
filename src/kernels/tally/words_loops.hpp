// The loops of a tally of words, as each target compiles them.
#pragma once

#include "kernels/tally/words.hpp"

namespace tensorcast::kernels {

using WordLoop = void (*)(const std::byte* source, const std::byte* result, std::size_t count, const WordRules& rules,
                          WordTally& tally);

namespace portable {
WordLoop word_loop(const WordRules& rules);
}
#if defined(__x86_64__)
namespace avx2 {
WordLoop word_loop(const WordRules& rules);
}
namespace avx512 {
WordLoop word_loop(const WordRules& rules);
}
#endif

}  // namespace tensorcast::kernels
