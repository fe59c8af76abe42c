// Policies that demand errors: finding out cheaply that none is due.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/policy.hpp"
#include "kernels/byte_table/table_conversion.hpp"

namespace tensorcast::kernels {

// Whether elements of a conversion may be refused at all.
[[nodiscard]] bool may_ever_refuse(DType from, DType to, const codec::Policy& policy) noexcept;

// Finds out whether some element of a source may be refused; then the reference says which. One per request.
// 1. Up to 8 bits: a table of the source bytes that hold a refused code.
// 2. Wider: numbers are refused beyond some number on either side, so what is accepted is one range of codes, once
//    they are ordered as the numbers are. Its ends are found by bisection, asking the reference.
// 3. Most data is far from the ends: first the greatest code, without its sign if ranges are about symmetric, is
//    compared with one that leaves no doubt. That costs two operations a vector.
// 4. Few elements: conservative limits in float64, as finding the ends would take longer.
class RefusalScan {
 public:
  // Of source codes of 8, 16, 32 or 64 bits.
  struct Range {
    // Codes that are not greater without the bits outside the mask are accepted. With a mask of 0 that says nothing.
    std::uint64_t mask = 0;
    std::uint64_t greatest = 0;
    // And so are those whose place in the order is no farther than `span` above the lowest.
    std::uint64_t lowest = 0;
    std::uint64_t span = 0;
    // Bytes only: 0x80, a sign and nothing else, is refused besides: NaN, where the type has no negative zero.
    bool lacks_negative_zero = false;
  };

  // Precondition: may_ever_refuse(). `count` is that of the whole request.
  RefusalScan(Target target, DType from, DType to, const codec::Policy& policy, std::size_t count) noexcept;

  // May say true too often for few elements, never false wrongly.
  [[nodiscard]] bool may_refuse(const std::byte* src, std::size_t count) const noexcept;

 private:
  enum class Method : std::uint8_t { never, limits, bytes, range };

  void mark_refused_bytes() noexcept;
  void find_range() noexcept;
  [[nodiscard]] bool is_refused(std::uint64_t code) const noexcept;
  [[nodiscard]] bool any_refused_element(const std::byte* src, std::size_t first, std::size_t end) const noexcept;
  [[nodiscard]] bool any_refused_byte(const std::byte* src, std::size_t count) const noexcept;

  using RangeFn = bool (*)(const std::byte* src, std::size_t count, const Range& range);

  Target target_;
  DType from_;
  DType to_;
  codec::Policy policy_;
  Method method_ = Method::limits;
  std::optional<TableConversion> refused_bytes_;  // to uint8: 1 where a code of the byte is refused
  Range range_;
  RangeFn is_doubtful_;  // by the range
};

}  // namespace tensorcast::kernels
