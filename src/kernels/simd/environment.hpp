// SPDX-License-Identifier: Apache-2.0
// Rounding mode, denormals and traps of the calling thread. Results must not depend on the caller's settings.
// Floating-point operations are kept between set_default_environment() and restore() by a call that is not inlined.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if defined(__x86_64__)

using FloatEnvironment = unsigned;  // MXCSR
inline constexpr FloatEnvironment default_environment = 0x1f80;
inline constexpr FloatEnvironment exception_flags = 0x3f;

inline FloatEnvironment float_environment() { return _mm_getcsr(); }
inline bool is_default(FloatEnvironment e) { return (e & ~exception_flags) == default_environment; }
inline void set_default_environment() { _mm_setcsr(default_environment); }
inline void restore(FloatEnvironment e) { _mm_setcsr(e); }

#elif defined(__aarch64__)

using FloatEnvironment = std::uint64_t;  // FPCR

inline FloatEnvironment float_environment() {
  FloatEnvironment e;
  __asm__ volatile("mrs %0, fpcr" : "=r"(e));
  return e;
}
inline bool is_default(FloatEnvironment e) { return e == 0; }
inline void restore(FloatEnvironment e) { __asm__ volatile("msr fpcr, %0" : : "r"(e)); }
inline void set_default_environment() { restore(0); }

#else  // unknown: stays as it is

struct FloatEnvironment {};

inline FloatEnvironment float_environment() { return {}; }
inline bool is_default(FloatEnvironment) { return true; }
inline void set_default_environment() {}
inline void restore(FloatEnvironment) {}

#endif

// Runs `body` in the default floating-point environment, whatever the caller's is.
template <class Body>
auto in_default_environment(Body body) {
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return body();
  struct Restore {
    FloatEnvironment saved;
    ~Restore() { restore(saved); }
  } const restorer{saved};
  set_default_environment();
  return body();
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
