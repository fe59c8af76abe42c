// SPDX-License-Identifier: Apache-2.0
// The compiler's own header for every instruction set of x86.
#pragma once

// g++ 12 warns of its _mm512_undefined_*() inside.
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "tensorcast/cast_options.hpp"

namespace tensorcast::kernels {

// The immediate operand of conversions that rounds by a word, without exceptions.
constexpr int rounding_mode(Rounding word) noexcept {
  return _MM_FROUND_NO_EXC | (word == Rounding::toward_positive   ? _MM_FROUND_TO_POS_INF
                              : word == Rounding::toward_negative ? _MM_FROUND_TO_NEG_INF
                              : word == Rounding::toward_zero     ? _MM_FROUND_TO_ZERO
                                                                  : _MM_FROUND_TO_NEAREST_INT);
}

}  // namespace tensorcast::kernels
