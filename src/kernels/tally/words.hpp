// Tallies of 16-bit floats that are rounded to fewer digits, or to small integers: in lanes of 16 bits, as most of what
// a report counts can be seen from the codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dtype/float_format.hpp"
#include "kernels/tally/tally.hpp"

namespace tensorcast::kernels {

// Elements that are counted together.
inline constexpr std::size_t word_group = 64;

// float16 or bfloat16, in codes without sign.
class WordFormat {
 public:
  explicit WordFormat(const FloatFormat& format);

  [[nodiscard]] const FloatFormat& format() const { return format_; }
  [[nodiscard]] bool is_bfloat16() const { return format_.exponent_bits == 8; }
  [[nodiscard]] std::uint16_t infinity() const { return infinity_; }
  [[nodiscard]] double value(std::uint16_t magnitude) const;
  [[nodiscard]] double number(std::uint16_t code) const;  // with its sign
  [[nodiscard]] std::uint16_t code_of_power(int exponent) const;
  [[nodiscard]] std::uint16_t first_from(double value) const;  // the first magnitude that is as large; infinity: none

 private:
  FloatFormat format_;
  std::uint16_t infinity_;
};

// What is counted of usual groups. Not usual: where the codes differ and the magnitude less `low` is more than `span`,
// modulo 2^16.
struct WordCounts {
  std::uint16_t low = 0x8000, span = 0;  // none is usual
  bool has_zeros = false;                // numbers that become zero are among them
  std::uint16_t first_above = 0;         // and magnitudes from here on, if it is not zero
};

// One kind of conversion. Results are given as codes of the source's type.
class WordTally {
 public:
  // Numbers from `above` on become `saturated`. If that is NaN, they are not usual: they overflow, or the source's type
  // lacks their results.
  WordTally(Target target, const FloatFormat& from, const FloatFormat& to, double above, double saturated);

  // The largest magnitude's code, of infinities and NaN too.
  [[nodiscard]] std::uint16_t largest(const std::byte* words, std::size_t count) const;
  [[nodiscard]] bool is_rounded(std::uint16_t magnitude) const { return magnitude < first_above_; }

  // Counts groups of 64 elements as long as they have only exact results and errors that are no larger than the largest
  // ones so far. Returns where that ends. `count` is a multiple of 64. No magnitude is more than `largest`.
  std::size_t count_usual(const std::byte* source, const std::byte* result, std::size_t count, std::uint16_t largest,
                          Tally& tally) const;

  // A block of a multiple of 64 elements, or the last ones, that has been counted.
  struct Block {
    const std::byte* source;
    const std::byte* result;
    std::size_t count;
    std::uint16_t largest;  // of the sources
    bool is_exact;          // there are no errors
    bool is_finite;         // all results are, whose sources are
  };
  // Adds the squares. Infinities and NaN are taken for zeros on both sides.
  void sum(const Block& block, Tally& tally) const;

 private:
  [[nodiscard]] WordCounts usual_counts(const Tally& tally) const;
  [[nodiscard]] int step_exponent(int exponent) const;  // of two neighbours among the results
  void sum_one_by_one(const Block& block, std::size_t first, Tally& tally) const;

  Target target_;
  WordFormat from_;
  FloatFormat to_;
  std::uint16_t first_above_;       // the code of the first magnitude above
  std::uint16_t first_long_error_;  // of what saturates: from here on an error may have more digits than a source
  double saturated_;
  double usual_share_;  // the largest relative error of normal results
};

// The first magnitudes beyond an integer's range.
struct WordBounds {
  std::uint16_t positive, negative;
};

// Conversions to integers that the source's type holds.
class IntegerWordTally {
 public:
  // `step`: between numbers that wrap to the same. Zero: they saturate.
  IntegerWordTally(Target target, const FloatFormat& from, const TallyRules& rules, double step);

  // A block of a multiple of 64 elements, or the last ones. False if that takes another way: of infinities, NaN, and
  // magnitudes whose squares are none of float32.
  bool add(const std::byte* source, const std::byte* result, std::size_t count, const TallyRules& rules,
           Tally& tally) const;

 private:
  Target target_;
  WordFormat from_;
  WordBounds bounds_;
  double step_;
};

// The loops, as each target compiles them.
struct WordLoops {
  std::size_t (*count_usual)(const std::byte* source, const std::byte* result, std::size_t count,
                             const WordCounts& counts, Tally& tally);
  std::uint16_t (*largest_magnitude)(const std::byte* words, std::size_t count);
  // The offsets are powers of two, no less than any square. No noise offset: there are no errors.
  void (*add_squares)(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                      float signal_offset, float noise_offset, Tally& tally);
  // The inexact elements, and those beyond.
  void (*count_integers)(const std::byte* source, const std::byte* result, std::size_t count, WordBounds bounds,
                         Tally& tally);
  // The squares, and the largest errors. The noise's offset is not zero.
  void (*add_integer_squares)(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                              float signal_offset, float noise_offset, Tally& tally);
};

}  // namespace tensorcast::kernels
