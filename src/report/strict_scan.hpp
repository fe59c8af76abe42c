// Strict casts: a fast proof that no element of a piece fails.
#pragma once

#include <cstddef>

#include "codec/policy.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::report {

// Reports whether elements of a conversion can fail at all. Preconditions: both types are numeric or bool.
[[nodiscard]] bool may_ever_fail(DType from, DType to, const codec::Policy& policy) noexcept;

// Tests pieces of one source. Any number of threads may use it.
class StrictScan {
 public:
  // Precondition: may_ever_fail().
  StrictScan(DType from, DType to, const codec::Policy& policy, Target target = active_target()) noexcept;

  // Reports whether an element may fail; the reference then names the one that does. False is always right. True is
  // wrong only for NaN to float8_e8m0fnu, and for products with a scale next to the end of the target's range.
  [[nodiscard]] bool may_fail(const std::byte* source, std::size_t count) const noexcept;

 private:
  DType from_;
  DType as_;  // float32 or float64: numbers are compared in it
  Target target_;
  // Numbers that surely do not fail; NaN is outside. `as_` has both exactly.
  double low_;
  double high_;
};

}  // namespace tensorcast::report
