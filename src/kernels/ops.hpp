// What an instruction set offers: one table for each, chosen in one place (select.cpp).
//
// The sources in per_target/ are compiled once for every instruction set of CMakeLists.txt, each time in a namespace of
// its name. A function in one of them becomes usable by a field here.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernel.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

using KernelRows = std::span<const Kernel>;

struct Ops {
  // Kernels of sources wider than 8 bits. May be called before main().
  KernelRows (*float_source_rows)() noexcept;
  KernelRows (*integer_source_rows)() noexcept;
  // Copies with stores that bypass the cache, for outputs larger than it. Any alignment. Other threads may read the
  // result after this one has called stream_fence(): once at the end, as it waits until every store has left.
  void (*stream_copy)(const std::byte* src, std::byte* dst, std::size_t bytes) noexcept;
  void (*stream_fence)() noexcept;
};

// The operations of `target`. Of one that the build lacks: those of `portable`.
[[nodiscard]] const Ops& ops_of(Target target) noexcept;

// Kernels of sources of 8 bits or fewer, and bool. May be called before main().
[[nodiscard]] KernelRows narrow_kernels(Target target) noexcept;

}  // namespace tensorcast::kernels
