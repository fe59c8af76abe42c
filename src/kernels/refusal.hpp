// Policies that demand errors: finding out cheaply that none is due.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/policy.hpp"
#include "kernels/narrow/table_conversion.hpp"

namespace tensorcast::kernels {

// Whether elements of a conversion may be refused at all.
[[nodiscard]] bool may_ever_refuse(DType from, DType to, const codec::Policy& policy) noexcept;

// Finds out whether some element of a source may be refused; then the reference says which. One per request.
// 1. Up to 8 bits: a table of the source bytes that hold a refused code.
// 2. Wider: numbers are refused beyond some number on either side, so what is accepted is one range of codes, once
//    they are ordered as the numbers are. Its ends are found by bisection, asking the reference.
// 3. Few elements: conservative limits in float64, as finding the ends would take longer.
class RefusalScan {
 public:
  // Precondition: may_ever_refuse(). `count` is that of the whole request.
  RefusalScan(Target target, DType from, DType to, const codec::Policy& policy, std::size_t count) noexcept;

  // May say true too often for few elements, never false wrongly.
  [[nodiscard]] bool may_refuse(const std::byte* src, std::size_t count) const noexcept;

 private:
  enum class Method : std::uint8_t { never, limits, bytes, range };

  void mark_refused_bytes() noexcept;
  void find_range() noexcept;
  [[nodiscard]] bool is_refused(std::uint64_t code) const noexcept;
  [[nodiscard]] bool any_refused_byte(const std::byte* src, std::size_t count) const noexcept;

  Target target_;
  DType from_;
  DType to_;
  codec::Policy policy_;
  Method method_ = Method::limits;
  std::optional<TableConversion> refused_bytes_;  // to uint8: 1 where a code of the byte is refused
  std::uint64_t lowest_ = 0;                      // of the accepted, by place in the order
  std::uint64_t span_ = 0;
};

}  // namespace tensorcast::kernels
