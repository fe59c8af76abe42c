// SPDX-License-Identifier: Apache-2.0
// Component core. The instruction sets that have kernels of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

enum class Target : std::uint8_t {
  portable = 0,    // any CPU
  avx2 = 1,        // AVX2, FMA, F16C
  avx512 = 2,      // AVX-512 F, BW, CD, DQ, VL
  avx512vbmi = 3,  // avx512 and VBMI, VBMI2, VNNI
  neon = 4,        // AArch64's Advanced SIMD
};

// The best instruction set of this CPU, or the lower one that the environment variable TENSORCAST_TARGET names.
// Decided once, at first use.
[[nodiscard]] TENSORCAST_API Target active_target() noexcept;
// The instruction sets that both this CPU and this build have, lowest first.
[[nodiscard]] TENSORCAST_API std::span<const Target> supported_targets() noexcept;
[[nodiscard]] TENSORCAST_API std::string_view name(Target target) noexcept;

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
