// SPDX-License-Identifier: Apache-2.0
// Strict casts: a fast proof that no element of a piece fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "codec/policy.hpp"
#include "kernels/byte_table/table_conversion.hpp"
#include "kernels/compare.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::report {

// Reports whether elements of a conversion can fail at all. Preconditions: both types are numeric or bool.
[[nodiscard]] bool may_ever_fail(DType from, DType to, const codec::Policy& policy) noexcept;

// Whether sources that are NaN or infinite do not fail, though they are in no interval.
struct AcceptedSpecials {
  bool nan = false;
  bool infinity = false;
};

// Tests pieces of one source. Any number of threads may use it.
class StrictScan {
 public:
  // Precondition: may_ever_fail(). `total`: elements of all pieces together.
  StrictScan(DType from, DType to, const codec::Policy& policy, std::size_t total,
             Target target = active_target()) noexcept;

  // Reports whether an element may fail; the reference then names the one that does. False is always right. True may be
  // wrong next to the end of the target's range, where numbers must be exact, for products with a scale and for 64-bit
  // integers to int64; for the lowest binade of float8_e8m0fnu; and for infinity times zero.
  [[nodiscard]] bool may_fail(const std::byte* source, std::size_t count) const noexcept;

  // The numbers of the source that surely do not fail, for kernels that compare them while they convert. Null if
  // sources are not compared as they are.
  [[nodiscard]] const kernels::Interval* accepted() const noexcept {
    return from_ != as_ || codes_ || needs_reference_ ? nullptr : &accepted_;
  }

 private:
  // For many elements of 8 bits or fewer: what the reference says of each code.
  class CodeTable {
   public:
    CodeTable(DType from, DType to, const codec::Policy& policy, Target target) noexcept;
    [[nodiscard]] bool may_fail(const std::byte* source, std::size_t count) const noexcept;

   private:
    DType from_;
    Target target_;
    std::array<std::uint8_t, 256> fails_ = {};  // for each code: 1 if it does
    bool any_fails_ = false;
    std::optional<kernels::TableConversion> fails_in_byte_;  // for each byte of the source; not for codes of six bits
  };

  DType from_;
  DType as_;  // float32 or float64: numbers are compared in it
  Target target_;
  kernels::Interval accepted_;  // numbers that surely do not fail; `as_` has both ends exactly
  AcceptedSpecials specials_;
  std::optional<CodeTable> codes_;
  bool needs_reference_ = false;  // every number does
};

}  // namespace tensorcast::report
