// SPDX-License-Identifier: Apache-2.0
// The only place that chooses between instruction sets: which tables the build has, and which of them the CPU can run.
#include <array>
#include <cstdlib>

#include "kernels/ops.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tensorcast::kernels {

namespace portable {
extern const Ops ops;
}
namespace avx2 {
extern const Ops ops;
}
namespace avx512 {
extern const Ops ops;
}
namespace avx512vbmi {
extern const Ops ops;
}
namespace neon {
extern const Ops ops;
}

}  // namespace tensorcast::kernels

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// TENSORCAST_HAS_avx2 is 1 if the build has its kernels. Else it is 0, or not defined: the first argument of OPS_SECOND
// takes in the table, and null is the second.
#define OPS_COMMA_1 ,
#define OPS_SECOND(first, second, ...) second
#define OPS_CHOICE(comma, target) OPS_SECOND(comma& kernels::target::ops, nullptr, )
#define OPS_IF(has, target) OPS_CHOICE(OPS_COMMA_##has, target)
#define OPS_OF(has, target) OPS_IF(has, target)
#define OPS(target) OPS_OF(TENSORCAST_HAS_##target, target)

// A row for each enumerator of Target, in order. `ops` is null where the build lacks the instruction set.
struct TargetRow {
  Target target;
  std::string_view name;
  const kernels::Ops* ops;
};

constexpr std::array<TargetRow, kernels::target_count> target_rows = {{
    {Target::portable, "portable", &kernels::portable::ops},
    {Target::avx2, "avx2", OPS(avx2)},
    {Target::avx512, "avx512", OPS(avx512)},
    {Target::avx512vbmi, "avx512vbmi", OPS(avx512vbmi)},
    {Target::neon, "neon", OPS(neon)},
}};
static_assert([] {
  for (std::size_t i = 0; i < target_rows.size(); ++i) {
    if (target_rows[i].target != static_cast<Target>(i)) return false;
  }
  return true;
}());

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

#elif defined(__aarch64__)

Target detect() noexcept { return Target::neon; }  // every CPU has it

#else

Target detect() noexcept { return Target::portable; }

#endif

// The targets of the build that the CPU has, lowest first.
std::span<const Target> find_supported_targets() noexcept {
  static const auto supported = [] {
    struct {
      std::array<Target, target_rows.size()> targets = {};
      std::size_t size = 0;
    } found;
    const Target best = detect();
    for (const TargetRow& row : target_rows) {
      if (row.ops != nullptr && row.target <= best) found.targets[found.size++] = row.target;
    }
    return found;
  }();
  return std::span(supported.targets).first(supported.size);
}

// Ignores TENSORCAST_TARGET if it names no target or one that the CPU lacks.
Target choose() noexcept {
  const std::span<const Target> supported = find_supported_targets();
  const char* const asked = std::getenv("TENSORCAST_TARGET");
  if (asked != nullptr) {
    for (const Target target : supported) {
      if (name(target) == asked) return target;
    }
  }
  return supported.back();
}

}  // namespace
}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::kernels {

const Ops& ops_of(Target target) noexcept {
  const Ops* const ops = target_rows[static_cast<std::size_t>(target)].ops;
  return ops == nullptr ? *target_rows.front().ops : *ops;
}

}  // namespace tensorcast::kernels

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Target active_target() noexcept {
  static const Target target = choose();
  return target;
}

std::span<const Target> supported_targets() noexcept { return find_supported_targets(); }

std::string_view name(Target target) noexcept {
  const auto index = static_cast<std::size_t>(target);
  return index < target_rows.size() ? target_rows[index].name : "unknown";
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
