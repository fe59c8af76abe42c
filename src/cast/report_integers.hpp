// Reports on integers of 16, 32 and 64 bits, not scaled (kernels/tally/integers.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cast/conversion.hpp"
#include "kernels/tally/integers.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {

class IntegerReporter {
 public:
  struct Count {
    kernels::IntegerTally narrow;
    kernels::LongTally of_64_bits;
  };

  [[nodiscard]] static bool is_for(DType from, const codec::Policy& policy) noexcept;

  // Precondition: is_for(from, policy).
  IntegerReporter(DType from, DType to, const codec::Policy& policy, Target target);

  void add(const Conversion& done, Count& count) const;
  [[nodiscard]] CastReport report(const Count& count) const;

  // Then counts may be merged: sums are of integers.
  [[nodiscard]] bool is_order_free() const noexcept { return rules_.bits < 64; }

 private:
  void add_narrow(const Conversion& done, kernels::IntegerTally& tally) const;
  void add_long(const Conversion& done, kernels::LongTally& tally) const;

  DType from_, to_;
  Target target_;
  kernels::IntegerRules rules_;
  int unit_exponent_ = 0;  // errors are in units of a power of two
  bool makes_nan_ = false;
};

}  // namespace tensorcast
