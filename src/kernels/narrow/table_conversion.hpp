// Conversions of many elements of 8 bits or fewer under any policy, scales included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/policy.hpp"
#include "kernels/narrow/layout.hpp"
#include "kernels/narrow/loops.hpp"

namespace tensorcast::kernels {

// A table of what the reference says of each source code, and the loop that looks up in it. A pair's own kernel knows
// more about its table (which bytes are zero, say) and keeps it; this one is made per request and holds for all.
class TableConversion {
 public:
  // Whether making the table (some microseconds) pays for `count` elements. To float64 a table of all results has eight
  // bytes per code: where they are not multiplied instead, ScaledConversion is faster.
  [[nodiscard]] static bool pays(Target target, DType from, DType to, std::size_t count) noexcept;

  // `from` has 8 bits or fewer; the policy demands no error. `from` may equal `to` if there is a scale.
  TableConversion(Target target, DType from, DType to, const codec::Policy& policy) noexcept;

  // From bytes to bytes.
  TableConversion(Target target, const std::array<std::uint8_t, 256>& outputs) noexcept;

  // As KernelFn.
  void run(const std::byte* src, std::byte* dst, std::size_t count) const noexcept;

 private:
  static constexpr std::size_t most_bytes = 8192;  // 256 bytes of four 2-bit elements to float64

  narrow::Loop loop_ = nullptr;
  Target target_;
  DType from_;
  DType to_;
  alignas(64) std::array<std::byte, most_bytes> table_;
};

}  // namespace tensorcast::kernels
