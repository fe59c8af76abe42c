// SPDX-License-Identifier: Apache-2.0
// Conversions of many elements of 8 bits or fewer under any policy, scales included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/policy.hpp"
#include "kernels/byte_table/byte_table.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

// A table of the reference's result for each source code, made for one request.
class TableConversion {
 public:
  // Reports whether a table of all codes pays for `count` elements: while the reference converts one code, other ways
  // convert 256 elements.
  [[nodiscard]] static bool pays(DType from, std::size_t count) noexcept {
    return bit_width(from) <= 8 && count >= std::size_t{256} << bit_width(from);
  }

  // `from` has 8 bits or fewer; the policy demands no error. `from` may equal `to` if there is a scale.
  TableConversion(Target target, DType from, DType to, const codec::Policy& policy) noexcept;

  // From bytes to bytes.
  TableConversion(Target target, const std::array<std::uint8_t, 256>& outputs) noexcept;

  // As KernelFn.
  void run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept;

 private:
  static constexpr std::size_t most_bytes = 8192;  // 256 bytes of four 2-bit elements to float64

  alignas(64) std::array<std::byte, most_bytes> table_;
  byte_table::Reader reader_;
  Target target_;
  DType from_;
  DType to_;
};

}  // namespace tensorcast::kernels
