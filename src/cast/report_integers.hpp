// Reports on integers of 16, 32 and 64 bits, not scaled (kernels/tally/integers.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cast/engine.hpp"
#include "kernels/tally/integers.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {

class IntegerReporter {
 public:
  struct Count {
    kernels::WordTally words;
    kernels::WideTally wide;
  };

  [[nodiscard]] static bool is_for(DType from, const codec::Policy& policy) noexcept;

  // Precondition: is_for(from, policy).
  IntegerReporter(DType from, DType to, const codec::Policy& policy, Target target);

  void add(const Conversion& done, Count& count) const;
  [[nodiscard]] CastReport report(const Count& count) const;

  // Then counts may be merged: of 16 bits, sums are of integers.
  [[nodiscard]] bool is_order_free() const noexcept { return rules_.bits == 16; }

 private:
  void add_words(const Conversion& done, kernels::WordTally& tally) const;
  void add_wide(const Conversion& done, kernels::WideTally& tally) const;

  DType from_, to_;
  Target target_;
  kernels::IntegerRules rules_;
  int unit_exponent_ = 0;  // errors are in units of a power of two
  bool makes_nan_ = false;
};

}  // namespace tensorcast
