// What a conversion did to a block of numbers: the counts and sums that a CastReport is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

// Sums run in this many chains, element i in chain i % 16, so that they are the same on every target.
inline constexpr std::size_t tally_chains = 16;

struct Tally {
  std::uint64_t overflowed = 0, beyond = 0, underflowed = 0, inexact = 0, nan_made = 0, nan_lost = 0;
  double max_abs = 0.0;
  double max_rel = 0.0;
  double signal[tally_chains] = {};
  double noise[tally_chains] = {};
  bool is_max_rel_short = false;  // a quotient of two integers below 2^11; not set for all of these
  int unusual_run = 0;            // how the numbers were so far; nothing but speed depends on it
};

// What the loop for most elements counts of float32 besides the inexact ones; other events make a group unusual.
enum class Usually : std::uint8_t {
  inexact,     // and nothing else
  beyond,      // and numbers beyond the range, as beyond_has_large_error says
  extremes,    // and zeros, and numbers beyond a range that is the same on both sides, to an error of 1000
  below_zero,  // and negative numbers, whose result is the least there is; of others, it is within a factor of two
};

struct TallyRules {
  // A source value is beyond the target's range when it is >= above + above_low or <= below + below_low. NaN: there is
  // no such bound.
  double below = std::numeric_limits<double>::quiet_NaN();
  double below_low = 0.0;
  double above = std::numeric_limits<double>::quiet_NaN();
  double above_low = 0.0;
  // Most elements are within the range, and one comparison tells: those with an error smaller than this. Zero: no error
  // tells.
  double usual_error = std::numeric_limits<double>::infinity();
  // Whether zeros are counted as underflowed.
  bool counts_zeros = true;
  // Where zeros are not counted: whether the numbers beyond the range are those with an error of `beyond_error` or more
  // (of sources that are not sums).
  bool beyond_has_large_error = false;
  double beyond_error = std::numeric_limits<double>::infinity();
  // Whether float32 has the errors of all sources that are not infinite, exactly.
  bool has_float32_errors = false;
  // Sources have at most 11 significant bits, so that their relative errors, if not equal, differ in float32 too.
  bool is_source_short = false;
  Usually usually = Usually::inexact;
  // The same for sources that are float32: the last one beyond below, the first one beyond above.
  float float_below = std::numeric_limits<float>::quiet_NaN();
  float float_above = std::numeric_limits<float>::quiet_NaN();
  float float_usual_error = std::numeric_limits<float>::infinity();

  void set_floats() noexcept;
};

// Real numbers as sums of two float64, the first being the sum rounded. `low` null: all zero.
struct RealSums {
  const double* high = nullptr;
  const double* low = nullptr;
};

// `count` is a multiple of 16, except in the last call for a tally. Either both sides have low parts, or none.
void tally_float32(Target target, const float* source, const float* result, std::size_t count, const TallyRules& rules,
                   Tally& tally) noexcept;
void tally_float64(Target target, RealSums source, RealSums result, std::size_t count, const TallyRules& rules,
                   Tally& tally) noexcept;
// Of source * scale, each product as the sum of two float64, which hold it: the scale is from 2^-800 to 2^800.
void tally_products(Target target, const float* source, double scale, const float* result, std::size_t count,
                    const TallyRules& rules, Tally& tally) noexcept;
// As tally_float32() without sums, of any count.
void count_float32(Target target, const float* source, const float* result, std::size_t count, const TallyRules& rules,
                   Tally& tally) noexcept;

// Whether all of these integers of 32 or 64 bits are below 2^digits in magnitude, so that a float of so many digits has
// them.
[[nodiscard]] bool are_small(Target target, const std::byte* integers, int bits, bool is_signed, int digits,
                             std::size_t count) noexcept;

// 64-bit integers: the nearest float64, and what it lacks, exactly.
void split_integers(Target target, const std::byte* integers, bool is_signed, double* high, double* low,
                    std::size_t count) noexcept;

// How many bytes are `value`.
[[nodiscard]] std::size_t count_byte(Target target, const std::byte* data, std::size_t bytes, std::byte value) noexcept;

// Sixteen kinds of bytes from `first` on, modulo 256, and one that is not among them.
struct ByteWindow {
  std::uint8_t first = 0, further = 16;
};

// Adds to counts[byte], fast where most bytes are in the window. Returns how many are not. This and the next only where
// has_count_bytes().
std::size_t count_bytes(Target target, const std::byte* data, std::size_t bytes, ByteWindow window,
                        std::uint64_t* counts) noexcept;
// Adds to counts[half], of the lower and the upper halves of bytes.
void count_half_bytes(Target target, const std::byte* data, std::size_t bytes, std::uint64_t* counts) noexcept;
[[nodiscard]] bool has_count_bytes(Target target) noexcept;

// Sets low[i] to what the rounded high[i] = x[i] * scale lacks to the exact product. Returns whether float64 holds all
// of these sums: false where a product overflowed, or is so small that bits of it are lost.
[[nodiscard]] bool split_products(Target target, const double* x, double scale, double* high, double* low,
                                  std::size_t count) noexcept;

}  // namespace tensorcast::kernels
