// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/prepared_cast.hpp"

#include <cstring>
#include <new>

#include "cast/prepared.hpp"
#include "codec/packing.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/platform.hpp"
#include "dtype/try.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

template <DType dtype>
void copy(const std::byte* src, std::byte* dst, std::size_t count, const codec::Policy&) {
  std::memmove(dst, src, storage_bytes(row(dtype), count));
  if constexpr (row(dtype).bits < 8) codec::clear_tail(dtype, dst, count);
}

// A type keeps its codes: one with as many bits does it.
kernels::KernelFn copy_of(DType dtype) noexcept {
  switch (bit_width(dtype)) {
    case 2:
      return copy<DType::uint2>;
    case 4:
      return copy<DType::uint4>;
    case 6:
      return copy<DType::float6_e2m3fn>;
    case 8:
      return copy<DType::uint8>;
    case 16:
      return copy<DType::uint16>;
    case 32:
      return copy<DType::uint32>;
    default:
      return copy<DType::uint64>;
  }
}

}  // namespace

Prepared::Prepared(DType from, DType to, const CastOptions& options) noexcept
    : policy_(codec::policy_of(options, from, to)),
      from_(from),
      to_(to),
      from_bits_(static_cast<std::uint8_t>(bit_width(from))),
      to_bits_(static_cast<std::uint8_t>(bit_width(to))) {
#if TENSORCAST_HAS_KERNELS
  if (policy_.scale != 1.0 || policy_.demands_errors()) return;
  limit_ = small_elements;
  kernel_ = from == to ? copy_of(from) : kernels::find_kernel(active_target(), from, to)->run;
  if (from == to) {
    few_ = kernel_;
    return;
  }
  const kernels::Kernel& of_few = *kernels::find_few_kernel(active_target(), from, to);
  const bool clamps = policy_.range != codec::RangeRule::wrap || policy_.keeps_infinity;
  few_ = of_few.few == nullptr || clamps ? of_few.run : of_few.few;
#endif
}

Result<void> Prepared::run(const std::byte* src, std::byte* dst, std::size_t count) const {
  if (from_ == DType::undefined) {
    return invalid("this cast was not prepared", "use the PreparedCast that prepare_cast() returns");
  }
  const Conversion conversion{src, from_, dst, to_, count};
  TRY(check_buffers(conversion));
  return tensorcast::run(conversion, policy_, {.threads = 1});
}

Result<Prepared> prepare(DType from, DType to, const CastOptions& options) {
  TRY(check_numeric(from, to));
  TRY(codec::check_options(options, from, to));
  return Prepared(from, to, options);
}

// The state of a PreparedCast.
struct PreparedAccess {
  static PreparedCast made_of(const Prepared& prepared) noexcept {
    PreparedCast result;
    new (result.state_) Prepared(prepared);
    return result;
  }
  static const Prepared& of(const PreparedCast& cast) noexcept {
    return *std::launder(reinterpret_cast<const Prepared*>(cast.state_));
  }
};

bool PreparedCast::run_small(const void* src, void* dst, std::size_t count) const noexcept {
  return PreparedAccess::of(*this).run_kernel(static_cast<const std::byte*>(src), static_cast<std::byte*>(dst), count);
}

Result<void> PreparedCast::run(const void* src, void* dst, std::size_t count) const noexcept {
  return guarded([&] {
    return PreparedAccess::of(*this).run(static_cast<const std::byte*>(src), static_cast<std::byte*>(dst), count);
  });
}

Result<PreparedCast> prepare_cast(DType from, DType to, const CastOptions& options) {
  return guarded([&]() -> Result<PreparedCast> {
    const Prepared prepared = TRY(prepare(from, to, options));
    return PreparedAccess::made_of(prepared);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
