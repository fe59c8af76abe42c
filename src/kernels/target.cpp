// Which instruction sets the CPU has, the operating system keeps across task switches, and the user allows.
#include "tensorcast/target.hpp"

#include <array>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tensorcast {
namespace {

constexpr std::array all_targets = {Target::portable, Target::avx2, Target::avx512, Target::avx512vbmi};

#if defined(__x86_64__)

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf) noexcept {
  Registers r;
  if (__get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

constexpr bool has_all(unsigned word, unsigned mask) { return (word & mask) == mask; }

Target detect() noexcept {
  constexpr unsigned fma = 1U << 12, os_xsave = 1U << 27, avx = 1U << 28, f16c = 1U << 29;  // leaf 1, ecx
  constexpr unsigned avx2 = 1U << 5;                                                        // leaf 7, ebx
  constexpr unsigned avx512_f = 1U << 16, avx512_dq = 1U << 17, avx512_ifma = 1U << 21, avx512_cd = 1U << 28,
                     avx512_bw = 1U << 30, avx512_vl = 1U << 31;
  constexpr unsigned avx512_vbmi = 1U << 1, avx512_vbmi2 = 1U << 6, avx512_vnni = 1U << 11;  // leaf 7, ecx
  constexpr unsigned ymm_state = 0x6, zmm_state = 0xe6;                                      // XCR0

  const Registers basic = cpuid(1);
  if (!has_all(basic.ecx, fma | os_xsave | avx | f16c)) return Target::portable;
  unsigned saved_state = 0, upper = 0;
  __asm__("xgetbv" : "=a"(saved_state), "=d"(upper) : "c"(0));
  const Registers extended = cpuid(7);
  if (!has_all(saved_state, ymm_state) || !has_all(extended.ebx, avx2)) return Target::portable;
  if (!has_all(saved_state, zmm_state) ||
      !has_all(extended.ebx, avx512_f | avx512_dq | avx512_cd | avx512_bw | avx512_vl)) {
    return Target::avx2;
  }
  const bool has_vbmi = has_all(extended.ecx, avx512_vbmi | avx512_vbmi2 | avx512_vnni);
  return has_vbmi && has_all(extended.ebx, avx512_ifma) ? Target::avx512vbmi : Target::avx512;
}

#else

Target detect() noexcept { return Target::portable; }

#endif

Target best_target() noexcept {
  static const Target target = detect();
  return target;
}

// A target that the CPU lacks, or a word that names none, asks for nothing.
Target choose() noexcept {
  const char* const asked = std::getenv("TENSORCAST_TARGET");
  if (asked != nullptr) {
    for (const Target target : supported_targets()) {
      if (name(target) == asked) return target;
    }
  }
  return best_target();
}

}  // namespace

Target active_target() noexcept {
  static const Target target = choose();
  return target;
}

std::span<const Target> supported_targets() noexcept {
  return std::span(all_targets).first(static_cast<std::size_t>(best_target()) + 1);
}

std::string_view name(Target target) noexcept {
  switch (target) {
    case Target::portable:
      return "portable";
    case Target::avx2:
      return "avx2";
    case Target::avx512:
      return "avx512";
    case Target::avx512vbmi:
      return "avx512vbmi";
  }
  return "unknown";
}

}  // namespace tensorcast
