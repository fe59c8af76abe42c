// Reports on integers of 16 bits, not scaled: all that they say is counted and summed in integers
// (kernels/tally/words.hpp), and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cast/engine.hpp"
#include "kernels/tally/words.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {

class WordReporter {
 public:
  [[nodiscard]] static bool is_for(DType from, const codec::Policy& policy) noexcept;

  // Precondition: is_for(from, policy).
  WordReporter(DType from, DType to, const codec::Policy& policy, Target target);

  void add(const Conversion& done, kernels::WordTally& tally) const;
  [[nodiscard]] CastReport report(const kernels::WordTally& tally) const;

 private:
  DType from_, to_;
  Target target_;
  kernels::WordRules rules_;
  int unit_exponent_ = 0;  // errors are in units of a power of two
  bool makes_nan_ = false;
};

}  // namespace tensorcast
