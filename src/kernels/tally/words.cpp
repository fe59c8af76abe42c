#include "kernels/tally/words.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels {
namespace {

std::uint16_t word_at(const std::byte* words, std::size_t i) {
  std::uint16_t word = 0;
  std::memcpy(&word, words + i * sizeof word, sizeof word);
  return word;
}

double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }
int exponent_of(double normal) { return static_cast<int>(std::bit_cast<std::uint64_t>(normal) >> 52) - 1023; }

// The square of a power of two above the number, if float32 has the squares of such numbers and of all that count
// beside them; else zero.
float offset_of(double largest) {
  if (!(largest >= 0x1p-48 && largest <= 0x1p56)) return 0.0F;
  return static_cast<float>(power_of_two(2 * exponent_of(largest) + 2));
}

std::uint16_t largest_of(Target target, const std::byte* words, std::size_t count) {
  const std::size_t whole = count / word_group * word_group;
  std::uint16_t largest = tally_loops_of(target).words.largest_magnitude(words, whole);
  for (std::size_t i = whole; i < count; ++i) {
    largest = std::max(largest, static_cast<std::uint16_t>(word_at(words, i) & 0x7fff));
  }
  return largest;
}

}  // namespace

WordFormat::WordFormat(const FloatFormat& format)
    : format_(format),
      infinity_(static_cast<std::uint16_t>(((1 << format.exponent_bits) - 1) << format.mantissa_bits)) {}

double WordFormat::value(std::uint16_t magnitude) const {
  const int field = magnitude >> format_.mantissa_bits;
  const int mantissa = magnitude & ((1 << format_.mantissa_bits) - 1);
  const int hidden = field == 0 ? 0 : 1 << format_.mantissa_bits;
  const int unit = std::max(field, 1) - format_.bias - format_.mantissa_bits;
  return static_cast<double>(mantissa | hidden) * power_of_two(unit);
}

double WordFormat::number(std::uint16_t code) const {
  const double magnitude = value(code & 0x7fff);
  return code >> 15 == 0 ? magnitude : -magnitude;
}

std::uint16_t WordFormat::code_of_power(int exponent) const {
  const int field = exponent + format_.bias;
  if (field > 0) return static_cast<std::uint16_t>(std::min(field << format_.mantissa_bits, 0x7fff));
  const int bit = format_.mantissa_bits - 1 + field;
  return static_cast<std::uint16_t>(bit >= 0 ? 1 << bit : 0);
}

std::uint16_t WordFormat::first_from(double wanted) const {
  std::uint16_t first = 0, end = infinity_;
  while (first < end) {
    const auto middle = static_cast<std::uint16_t>((first + end) / 2);
    if (value(middle) < wanted) {
      first = static_cast<std::uint16_t>(middle + 1);
    } else {
      end = middle;
    }
  }
  return first;
}

// --- Rounded to fewer digits

WordTally::WordTally(Target target, const FloatFormat& from, const FloatFormat& to, double above, double saturated)
    : target_(target),
      from_(from),
      to_(to),
      first_above_(from_.first_from(above)),
      first_long_error_(from_.infinity()),
      saturated_(saturated),
      usual_share_(1.0 / (1.0 + power_of_two(to.mantissa_bits + 1))) {
  if (!(saturated > 0.0)) return;
  const auto significand = (std::bit_cast<std::uint64_t>(saturated) & 0xfffffffffffff) | 0x10000000000000;
  const int last_digit = exponent_of(saturated) - 52 + std::countr_zero(significand);
  first_long_error_ = std::min(from_.code_of_power(last_digit + from.mantissa_bits + 1), from_.infinity());
}

int WordTally::step_exponent(int exponent) const { return std::max(exponent, to_.min_exponent()) - to_.mantissa_bits; }

// 1. Between two powers of two the largest error is half a step, of a tie.
// 2. Its share is the largest for the tie next to the lower power, which has all of these: the step is no larger than
//    the power. With smaller numbers, which may become zero, the share may be up to 1.
// 3. What saturates has an error that grows with it, and a share below 1; where the largest share is still less than
//    that, such numbers are not usual.
// A tie that the source's type does not have is no matter: then numbers there are exact.
WordCounts WordTally::usual_counts(const Tally& tally) const {
  int lowest = to_.min_exponent();
  if (tally.max_abs == 0.0 || tally.max_rel < usual_share_) return {};
  const int step = exponent_of(tally.max_abs) + 1;  // half of which is the largest error, or less
  if (step < step_exponent(lowest)) return {};
  const int highest = step + to_.mantissa_bits;

  WordCounts counts{.low = 0, .has_zeros = tally.max_rel >= 1.0};
  if (!counts.has_zeros) {
    const auto share = [half_step = power_of_two(step_exponent(lowest) - 1)](int exponent) {
      return half_step / (power_of_two(exponent) + half_step);
    };
    while (step_exponent(lowest - 1) < lowest && share(lowest - 1) <= tally.max_rel) --lowest;
    counts.low = from_.code_of_power(lowest);
  }
  std::uint16_t last = static_cast<std::uint16_t>(std::min(from_.code_of_power(highest + 1), first_above_) - 1);
  if (counts.has_zeros && saturated_ > 0.0 && last + 1 == first_above_) {
    counts.first_above = first_above_;
    // The number up to which errors are no larger may be one of the source's: then it is left out.
    last = std::max(last, static_cast<std::uint16_t>(from_.first_from(saturated_ + tally.max_abs) - 1));
  }
  if (last < counts.low) return {};
  counts.span = static_cast<std::uint16_t>(last - counts.low);
  return counts;
}

std::uint16_t WordTally::largest(const std::byte* words, std::size_t count) const {
  return largest_of(target_, words, count);
}

std::size_t WordTally::count_usual(const std::byte* source, const std::byte* result, std::size_t count,
                                   std::uint16_t largest, Tally& tally) const {
  WordCounts counts = usual_counts(tally);
  if (largest < counts.first_above) counts.first_above = 0;
  return tally_loops_of(target_).words.count_usual(source, result, count, counts, tally);
}

void WordTally::sum_one_by_one(const Block& block, std::size_t first, Tally& tally) const {
  for (std::size_t i = first; i < block.count; ++i) {
    const double x = from_.number(word_at(block.source, i));
    const double error = x - from_.number(word_at(block.result, i));
    tally.signal[i % tally_chains] += x * x;
    tally.noise[i % tally_chains] += error * error;
  }
}

void WordTally::sum(const Block& block, Tally& tally) const {
  if (block.largest == 0) return;
  if (block.largest >= from_.infinity() || !block.is_finite) {
    std::vector<std::uint16_t> clean(2 * block.count);
    Block finite = block;
    finite.source = reinterpret_cast<const std::byte*>(clean.data());
    finite.result = reinterpret_cast<const std::byte*>(clean.data() + block.count);
    for (std::size_t i = 0; i < block.count; ++i) {
      const std::uint16_t x = word_at(block.source, i), y = word_at(block.result, i);
      if ((x & 0x7fff) >= from_.infinity() || (y & 0x7fff) >= from_.infinity()) continue;
      clean[i] = x;
      clean[block.count + i] = y;
    }
    finite.largest = largest(finite.source, block.count);
    finite.is_finite = true;
    return sum(finite, tally);
  }

  // What saturates has short errors as long as its last digit is worth no more than the last one of what it becomes.
  const double greatest = from_.value(block.largest);
  const double half_step = power_of_two(step_exponent(exponent_of(greatest)) - 1);
  const double greatest_error = is_rounded(block.largest) ? std::min(half_step, tally.max_abs) : tally.max_abs;
  const float signal_offset = offset_of(greatest);
  const float noise_offset = block.is_exact ? 0.0F : offset_of(greatest_error);
  const bool has_short_errors = is_rounded(block.largest) || block.largest < first_long_error_;
  const bool has_offsets = signal_offset != 0.0F && (block.is_exact || noise_offset != 0.0F) && has_short_errors;
  const std::size_t whole = has_offsets ? block.count / word_group * word_group : 0;
  tally_loops_of(target_).words.add_squares(block.source, block.result, whole, from_.is_bfloat16(), signal_offset,
                                            noise_offset, tally);
  sum_one_by_one(block, whole, tally);
}

// --- To integers

IntegerWordTally::IntegerWordTally(Target target, const FloatFormat& from, const TallyRules& rules, double step)
    : target_(target),
      from_(from),
      bounds_{.positive = from_.first_from(rules.above), .negative = from_.first_from(-rules.below)},
      step_(step) {}

bool IntegerWordTally::add(const std::byte* source, const std::byte* result, std::size_t count, const TallyRules& rules,
                           Tally& tally) const {
  const WordLoops& loops = tally_loops_of(target_).words;
  const std::uint16_t largest = largest_of(target_, source, count);
  if (largest >= from_.infinity()) return false;
  if (largest == 0) return true;
  const double greatest = from_.value(largest);
  const float signal_offset = offset_of(greatest);
  if (signal_offset == 0.0F) return false;

  const std::size_t whole = count / word_group * word_group;
  const std::uint64_t inexact = tally.inexact, beyond = tally.beyond;
  const bool may_be_beyond = largest >= std::min(bounds_.positive, bounds_.negative);
  loops.count_integers(source, result, whole, may_be_beyond ? bounds_ : WordBounds{}, tally);
  if (tally.inexact == inexact) {
    loops.add_squares(source, result, whole, from_.is_bfloat16(), signal_offset, 0.0F, tally);
  } else {
    const double greatest_error = tally.beyond == beyond ? 1.0 : greatest + step_;
    loops.add_integer_squares(source, result, whole, from_.is_bfloat16(), signal_offset, offset_of(greatest_error),
                              tally);
  }
  for (std::size_t i = whole; i < count; ++i) {
    tally_element(from_.number(word_at(source, i)), 0.0, from_.number(word_at(result, i)), 0.0, i % tally_chains, rules,
                  tally);
  }
  return true;
}

}  // namespace tensorcast::kernels
