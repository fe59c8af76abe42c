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

// The first magnitudes beyond an integer's range.
struct WordBounds {
  std::uint16_t positive, negative;
};

// The largest magnitude, and the smallest one that is not zero, or zero if there is none.
struct WordRange {
  std::uint16_t largest, smallest;
};

// Sums of squares of some elements, which float32 may have been too narrow for.
struct WordSums {
  double signal[tally_chains] = {};
  double noise[tally_chains] = {};
  double largest_error = 0.0;
};

// Errors are short, but for those of far_integer: of numbers that saturate, or negative ones that become large; and
// those of bool, which may be too long for float32, and are the smaller, relatively, the larger the number.
enum class DistantKind : std::uint8_t { integer, far_integer, scale, boolean };

[[nodiscard]] constexpr bool is_integer(DistantKind kind) {
  return kind == DistantKind::integer || kind == DistantKind::far_integer;
}
[[nodiscard]] constexpr bool has_short_errors(DistantKind kind) {
  return kind == DistantKind::integer || kind == DistantKind::scale;
}

// Those of short ones have at most 12 digits, so that float32 has their squares.
enum class WordErrors : std::uint8_t { none, short_ones, any };

// One kind of conversion. Results are given as codes of the source's type.
class WordTally {
 public:
  // Numbers from `above` on become `saturated`. If that is NaN, they are not usual: they overflow, or the source's type
  // lacks their results.
  WordTally(Target target, const FloatFormat& from, const FloatFormat& to, double above, double saturated);

  enum class Fate : std::uint8_t { kept, rounded, beyond };
  // What may happen to these: all are their own results, or all are rounded, or some may be beyond the range.
  [[nodiscard]] Fate fate(const std::byte* words, std::size_t count) const;

  // Counts groups of 64 elements as long as they have only exact results and errors that are no larger than the largest
  // ones so far. Returns where that ends. `count` is a multiple of 64.
  std::size_t count_usual(const std::byte* source, const std::byte* result, std::size_t count, Tally& tally) const;

  // A block of a multiple of 64 elements, or the last ones, that has been counted.
  struct Block {
    const std::byte* source;
    const std::byte* result;
    std::size_t count;
    WordErrors errors;
    bool is_finite;  // all results are, whose sources are
  };
  // Adds the squares. Infinities and NaN are taken for zeros on both sides.
  void sum(const Block& block, Tally& tally) const;

 private:
  [[nodiscard]] WordCounts usual_counts(const Tally& tally) const;
  [[nodiscard]] int step_exponent(int exponent) const;  // of two neighbours among the results
  void sum_one_by_one(const Block& block, std::size_t first, Tally& tally) const;
  void sum_with_care(const Block& block, Tally& tally) const;

  Target target_;
  WordFormat from_;
  FloatFormat to_;
  std::uint16_t first_above_;  // the code of the first magnitude above
  std::uint16_t first_kept_;   // from here to there, numbers are their own results; infinity: not known of any
  double saturated_;
  double usual_share_;  // the largest relative error of normal results
};

// What is known of a conversion whose results may be far from their sources.
struct DistantWords {
  DistantKind kind = DistantKind::integer;
  // To scales: codes less than this, as signed integers, zero among them, are beyond, and become `least_result`, which
  // the source's type may not hold. To bool: the code of one.
  std::uint16_t code = 0;
  double least_result = 0.0;
  WordBounds bounds;
  // Relative errors are no larger: within the bounds, and beyond.
  double largest_share = 1.0, largest_share_beyond = 1.0;
  std::uint16_t limit;       // magnitudes from here on take another way; no more than infinity's
  std::uint16_t finest = 0;  // and so do smaller ones than this, but zero
};

// Conversions to integers that the source's type holds, to bool, and to scales.
class DistantWordTally {
 public:
  DistantWordTally(Target target, const FloatFormat& from, const DistantWords& what)
      : target_(target), from_(from), what_(what) {}

  [[nodiscard]] bool needs_results() const { return what_.kind != DistantKind::boolean; }

  // A block of a multiple of 64 elements, or the last ones. False if that takes another way: of infinities, NaN, and
  // numbers whose squares or errors are none of float32.
  bool add(const std::byte* source, const std::byte* result, std::size_t count, const TallyRules& rules,
           Tally& tally) const;

 private:
  [[nodiscard]] bool takes_another_way(std::uint16_t magnitude) const;
  bool add_groups(const std::byte* source, const std::byte* result, std::size_t count, Tally& tally) const;

  Target target_;
  WordFormat from_;
  DistantWords what_;
};

// The loops, as each target compiles them.
struct WordLoops {
  std::size_t (*count_usual)(const std::byte* source, const std::byte* result, std::size_t count,
                             const WordCounts& counts, Tally& tally);
  std::uint16_t (*largest_magnitude)(const std::byte* words, std::size_t count);
  WordRange (*range)(const std::byte* words, std::size_t count);
  // The squares, of the errors too.
  void (*add_squares)(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                      WordErrors errors, WordSums& sums);
  // Of distant results, squares, the largest error, and counts. Results have no zero with a sign. Of integers, the
  // smallest magnitude is not looked for.
  WordRange (*add_distant)(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                           const DistantWords& what, WordSums& sums, Tally& tally);
  // Of these, the largest relative error.
  void (*grow_share)(const std::byte* source, const std::byte* result, std::size_t count, bool is_bfloat16,
                     DistantKind kind, Tally& tally);
};

}  // namespace tensorcast::kernels
