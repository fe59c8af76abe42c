// The functions of per_target/ that ops.cpp puts into this instruction set's table.
#pragma once

#include "kernels/ops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

[[nodiscard]] KernelRows float_source_rows() noexcept;
[[nodiscard]] KernelRows integer_source_rows() noexcept;
void stream_copy(const std::byte* src, std::byte* dst, std::size_t bytes) noexcept;
void stream_fence() noexcept;

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
