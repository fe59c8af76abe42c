// Tallies of floats that are truncated to integers of 16 bits or more, modulo 2^bits. All that is counted can be seen
// from the source:
//
// 1. What truncation cuts off is the number's fraction, which float32 has exactly.
// 2. Of a block whose magnitudes are all less than 2^bits (2^(bits - 1) if the integers have a sign), nothing is beyond
//    the range but the numbers from -1 on down where there is no sign. Each of those becomes itself, truncated, plus
//    2^bits: its error is 2^bits plus its fraction, without sign. Other blocks take another way.
// 3. So the sum of the squared errors is that of the squared fractions, plus 2^(2 bits) for each number beyond, plus
//    2^(bits + 1) times the sum of the fractions of those.
// 4. The largest relative error of the numbers beyond is that of the one nearest to zero, and at least 1. That of the
//    others is 1 between -1 and 1, and less elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dtype/float_format.hpp"
#include "kernels/tally/tally.hpp"
#include "kernels/tally/words.hpp"

namespace tensorcast::kernels {

// Elements that are summed up together: eight of each chain.
inline constexpr std::size_t fraction_group = 8 * tally_chains;

enum class FractionSource : std::uint8_t { float16, bfloat16, float32 };

class FractionTally {
 public:
  FractionTally(Target target, const FloatFormat& from, int bits, bool is_signed);

  // `count` is a multiple of fraction_group. False, and nothing is counted, if these numbers have to take another way.
  bool add(const std::byte* source, std::size_t count, Tally& tally) const;

 private:
  [[nodiscard]] double value(std::uint32_t magnitude) const;

  Target target_;
  FractionSource source_ = FractionSource::float32;
  std::optional<WordFormat> words_;  // of sources of 16 bits
  std::uint32_t minus_one_;          // codes
  std::uint32_t end_;                // the first magnitude that takes another way
  double span_;                      // 2^bits
  bool is_signed_;
};

// What a first look at a block finds, in codes.
struct FractionSurvey {
  std::uint32_t largest = 0;  // magnitude
  std::uint32_t nearest = 0;  // of the numbers from -1 on down the one nearest to zero, less the code of -1
  std::uint64_t beyond = 0;   // how many of these there are
};

struct FractionSums {
  double signal[tally_chains], noise[tally_chains];  // the chains of a tally, continued; but without 2^(2 bits)
  std::uint64_t inexact = 0;
  float largest = 0.0F;  // fraction without sign; if there are numbers beyond, of those
};

// The loops, as each target compiles them.
struct FractionLoops {
  void (*survey)(FractionSource from, const std::byte* source, std::size_t count, bool is_signed,
                 FractionSurvey& survey);
  // `span`: 2^bits if there are numbers beyond, else zero.
  void (*add)(FractionSource from, const std::byte* source, std::size_t count, double span, FractionSums& sums);
  // The largest relative error, of a block without numbers beyond.
  void (*grow_share)(FractionSource from, const std::byte* source, std::size_t count, Tally& tally);
};

}  // namespace tensorcast::kernels
