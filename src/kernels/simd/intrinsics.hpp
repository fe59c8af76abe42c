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
