// Tallies of float32 that is rounded to powers of two (float8_e8m0fnu), saturated. All that is counted can be seen from
// the source:
//
// 1. Rounding is an addition to the bits, of which the mantissa is dropped then. Number and result are within a factor
//    of two, so that float32 has the error exactly, and it is less than the number.
// 2. Zeros and negative numbers are beyond the range and become 2^-127, the least there is. In blocks without
// magnitudes
//    between zero and 2^-70, their error is their magnitude then, as near as float64 can tell. Other blocks take
//    another way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tally/tally.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast::kernels {

class PowerTally {
 public:
  PowerTally(Target target, RoundMode rounding);

  // `count` is a multiple of fraction_group. False, and nothing is counted, if these numbers have to take another way.
  bool add(const std::byte* source, std::size_t count, Tally& tally) const;

 private:
  Target target_;
  std::uint32_t addend_;  // to the bits
};

struct PowerSums {
  double signal[tally_chains], noise[tally_chains];  // the chains of a tally, continued
  std::uint64_t inexact = 0, beyond = 0;
  float largest_error = 0.0F;
  std::uint32_t largest_code = 0;   // as unsigned integers: the negative number with the largest magnitude
  std::int32_t largest_number = 0;  // as signed ones: the largest number that is not negative
  std::uint32_t least = 0;          // magnitude of a number that is not zero, less one
};

// The loops, as each target compiles them.
struct PowerLoops {
  void (*add)(const std::byte* source, std::size_t count, std::uint32_t addend, PowerSums& sums);
  // The largest relative error, of numbers above zero.
  void (*grow_share)(const std::byte* source, std::size_t count, std::uint32_t addend, Tally& tally);
};

}  // namespace tensorcast::kernels
