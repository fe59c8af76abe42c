// SPDX-License-Identifier: Apache-2.0
// Selects elements to convert: every corner case of a pair of types, and seeded random ones.
#pragma once

#include <cstdint>
#include <vector>

#include "types.hpp"

namespace oracle {

// splitmix64: the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint64_t below(std::uint64_t end) { return next() % end; }

 private:
  std::uint64_t state_;
};

// Codes of `from`, without repetition. A type of 16 bits or fewer gives all its codes. A wider one gives the rounding
// midpoints of `to`, its range ends and subnormal threshold, each with two neighbours on both sides, for values that
// are multiplied by `scale`; both zeros and infinities, NaNs with payloads, binade ends and integer extremes.
// dense = false takes only some of the midpoints of targets with more than 8 bits.
std::vector<std::uint64_t> boundary_codes(Type from, Type to, double scale = 1.0, bool dense = true);

// Half of them uniform over the codes, half with a magnitude that `to` can nearly hold.
std::vector<std::uint64_t> random_codes(Type from, Type to, std::uint64_t seed, std::size_t count);

// `count` of the codes, evenly spread.
std::vector<std::uint64_t> thinned(const std::vector<std::uint64_t>& codes, std::size_t count);

}  // namespace oracle
