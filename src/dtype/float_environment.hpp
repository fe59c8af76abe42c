// SPDX-License-Identifier: Apache-2.0
// Rounding mode, denormals and traps of the calling thread. Results must not depend on the caller's settings.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tensorcast {

// Inlined everywhere: code for newer processors must not become the one copy of all.
#if defined(__x86_64__)

using FloatEnvironment = unsigned;  // MXCSR
inline constexpr FloatEnvironment default_environment = 0x1f80;
inline constexpr FloatEnvironment exception_flags = 0x3f;

[[gnu::always_inline]] inline FloatEnvironment float_environment() { return _mm_getcsr(); }
[[gnu::always_inline]] inline bool is_default(FloatEnvironment e) {
  return (e & ~exception_flags) == default_environment;
}
[[gnu::always_inline]] inline void set_default_environment() { _mm_setcsr(default_environment); }
[[gnu::always_inline]] inline void restore(FloatEnvironment e) { _mm_setcsr(e); }

#elif defined(__aarch64__)

using FloatEnvironment = std::uint64_t;  // FPCR

[[gnu::always_inline]] inline FloatEnvironment float_environment() {
  FloatEnvironment e;
  __asm__ volatile("mrs %0, fpcr" : "=r"(e));
  return e;
}
[[gnu::always_inline]] inline bool is_default(FloatEnvironment e) { return e == 0; }
[[gnu::always_inline]] inline void restore(FloatEnvironment e) { __asm__ volatile("msr fpcr, %0" : : "r"(e)); }
[[gnu::always_inline]] inline void set_default_environment() { restore(0); }

#else  // unknown: stays as it is

struct FloatEnvironment {};

[[gnu::always_inline]] inline FloatEnvironment float_environment() { return {}; }
[[gnu::always_inline]] inline bool is_default(FloatEnvironment) { return true; }
[[gnu::always_inline]] inline void set_default_environment() {}
[[gnu::always_inline]] inline void restore(FloatEnvironment) {}

#endif

// The default floating-point environment while it lives. Floating-point operations stay behind its beginning in a call
// that is not inlined.
class DefaultFloatEnvironment {
 public:
  [[gnu::always_inline]] DefaultFloatEnvironment() : saved_(float_environment()), differs_(!is_default(saved_)) {
    if (differs_) [[unlikely]]
      set_default_environment();
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;
  [[gnu::always_inline]] ~DefaultFloatEnvironment() {
    if (differs_) [[unlikely]]
      restore(saved_);
  }

 private:
  const FloatEnvironment saved_;
  const bool differs_;
};

}  // namespace tensorcast
