// SPDX-License-Identifier: Apache-2.0
// A checked conversion without its buffers: what PreparedCast and tc_prepared_cast hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cast/conversion.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

class [[gnu::may_alias]] Prepared {  // the bytes of a struct of C
 public:
  static constexpr std::size_t size = 64;

  Prepared() = default;
  // Precondition: check_numeric() and codec::check_options() accepted types and options.
  Prepared(DType from, DType to, const CastOptions& options) noexcept;

  // Reports whether run_kernel() takes conversions of up to small_elements.
  [[nodiscard]] bool needs_one_kernel() const noexcept { return limit_ != 0; }
  // Runs a conversion that needs one kernel. Returns false, and does nothing, if it needs more than that or if a buffer
  // is wrong: then run() does it.
  [[nodiscard]] bool run_kernel(const std::byte* src, std::byte* dst, std::size_t count) const noexcept {
    if (count - 1 >= limit_) return false;
    if (src == nullptr || dst == nullptr || overlaps(src, dst, count)) [[unlikely]]
      return false;
    (count <= kernels::few_elements ? few_ : kernel_)(src, dst, count, policy_);
    return true;
  }
  // Errors: as cast(), of buffers and elements; invalid_argument if nothing was prepared.
  [[nodiscard]] Result<void> run(const std::byte* src, std::byte* dst, std::size_t count) const;

 private:
  // `count` is at most small_elements.
  [[nodiscard]] bool overlaps(const std::byte* src, const std::byte* dst, std::size_t count) const noexcept {
    const std::size_t src_bytes = (count * from_bits_ + 7) / 8, dst_bytes = (count * to_bits_ + 7) / 8;
    const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(dst) - reinterpret_cast<std::uintptr_t>(src);
    return (ahead < src_bytes || 0 - ahead < dst_bytes) && !(ahead == 0 && to_bits_ <= from_bits_);
  }

  kernels::KernelFn few_ = nullptr;
  kernels::KernelFn kernel_ = nullptr;
  codec::Policy policy_;
  DType from_ = DType::undefined;
  DType to_ = DType::undefined;
  std::uint16_t limit_ = 0;  // elements up to which a kernel alone does the work
  std::uint8_t from_bits_ = 0;
  std::uint8_t to_bits_ = 0;
};
static_assert(sizeof(Prepared) <= Prepared::size && std::is_trivially_copyable_v<Prepared>);

// Checks types and options. Errors: as cast(), of types and options.
[[nodiscard]] Result<Prepared> prepare(DType from, DType to, const CastOptions& options);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
