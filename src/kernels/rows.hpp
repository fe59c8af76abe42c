// Where the registry gets its rows: one list per part and target. Targets that the build lacks have no list.
#pragma once

#include <span>

#include "kernels/kernel.hpp"

namespace tensorcast::kernels {

using KernelRows = std::span<const Kernel>;

// Sources wider than 8 bits, in a namespace for each target that the build has.
namespace portable {
[[nodiscard]] KernelRows float_source_rows() noexcept;
[[nodiscard]] KernelRows integer_source_rows() noexcept;
}  // namespace portable
#if defined(__x86_64__)
namespace avx2 {
[[nodiscard]] KernelRows float_source_rows() noexcept;
[[nodiscard]] KernelRows integer_source_rows() noexcept;
}  // namespace avx2
namespace avx512 {
[[nodiscard]] KernelRows float_source_rows() noexcept;
[[nodiscard]] KernelRows integer_source_rows() noexcept;
}  // namespace avx512
namespace avx512vbmi {
[[nodiscard]] KernelRows float_source_rows() noexcept;
[[nodiscard]] KernelRows integer_source_rows() noexcept;
}  // namespace avx512vbmi
#endif

// Sources of 8 bits or fewer, and bool. May be called before main().
[[nodiscard]] KernelRows narrow_kernels(Target target) noexcept;

}  // namespace tensorcast::kernels
