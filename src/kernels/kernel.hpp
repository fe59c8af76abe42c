// SPDX-License-Identifier: Apache-2.0
// A kernel converts elements of one pair of types on one target, byte-equal to codec::reference_cast.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "codec/policy.hpp"
#include "kernels/compare.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

// `src` and `dst` have any alignment and are disjoint, or equal with a target that is not wider than the source.
// Reads and writes storage_bytes(count) bytes and no others; tail bits of sub-byte targets become zero.
// Precondition: the policy's scale is 1 (else use ScaledConversion) and it demands no errors.
using KernelFn = void (*)(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy);

// As KernelFn. Returns false if all numbers of the source are in the interval, whose ends the source's type has; true
// may be wrong.
using CheckedKernelFn = bool (*)(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy& policy,
                                 const Interval& accepted);

// Calls of up to this many elements take another way than others, if it is faster.
inline constexpr std::size_t few_elements = 16;

struct Kernel {
  DType from = DType::undefined;
  DType to = DType::undefined;
  KernelFn run = nullptr;
  std::string_view algorithm;  // a short name of the method, for tests, benchmarks and `tcast bench`
  // As `run`, for up to few_elements, with policies that clamp nothing before encoding: the range rule is `wrap`, and
  // infinities are not kept. Null if `run` is as fast.
  KernelFn few = nullptr;
  // Of pairs that wait for memory, so that looking at the numbers costs nothing while they are converted. Else null.
  CheckedKernelFn checked = nullptr;
};

// The kernels of all pairs of two different numeric types, on a target that supported_targets() lists. Tests and
// benchmarks iterate this.
[[nodiscard]] std::span<const Kernel> kernels(Target target) noexcept;

// Never null for two different numeric or bool types; same types are a copy and have no kernel.
[[nodiscard]] const Kernel* find_kernel(Target target, DType from, DType to) noexcept;

// Up to this many elements the kernel of find_few_kernel() is the faster one: of sources that are looked up in tables,
// the portable one. The time of float8_e4m3fn to float32 for 1 and for 16 elements is 4 and 7 ns, with AVX-512 9 ns.
[[nodiscard]] const Kernel* find_few_kernel(Target target, DType from, DType to) noexcept;

}  // namespace tensorcast::kernels
