#include "kernels/tally/words.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
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

// Whether float32 was wide enough for a sum of 8 squares at a time. What it lacks of the smallest squares is nothing
// beside such a sum.
bool is_good(const double (&chains)[tally_chains]) {
  double sums[4] = {};
  for (std::size_t chain = 0; chain < tally_chains; ++chain) sums[chain % 4] += chains[chain];
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return sum >= 0x1p-110 && sum <= std::numeric_limits<double>::max();
}

void add(const WordSums& sums, Tally& tally) {
  for (std::size_t chain = 0; chain < tally_chains; ++chain) {
    tally.signal[chain] += sums.signal[chain];
    tally.noise[chain] += sums.noise[chain];
  }
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
      first_kept_(to.mantissa_bits < from.mantissa_bits
                      ? from_.infinity()
                      : from_.code_of_power(to.min_exponent() - to.mantissa_bits + from.mantissa_bits)),
      saturated_(saturated),
      usual_share_(1.0 / (1.0 + power_of_two(to.mantissa_bits + 1))) {}

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

WordTally::Fate WordTally::fate(const std::byte* words, std::size_t count) const {
  const bool may_be_kept = first_kept_ < from_.infinity() && count % word_group == 0;
  WordRange range{.largest = 0, .smallest = 0};
  if (may_be_kept) {
    range = tally_loops_of(target_).words.range(words, count);
  } else {
    range.largest = largest_of(target_, words, count);
  }
  if (range.largest >= first_above_) return Fate::beyond;
  return may_be_kept && (range.largest == 0 || range.smallest >= first_kept_) ? Fate::kept : Fate::rounded;
}

std::size_t WordTally::count_usual(const std::byte* source, const std::byte* result, std::size_t count,
                                   Tally& tally) const {
  return tally_loops_of(target_).words.count_usual(source, result, count, usual_counts(tally), tally);
}

void WordTally::sum_one_by_one(const Block& block, std::size_t first, Tally& tally) const {
  for (std::size_t i = first; i < block.count; ++i) {
    const std::uint16_t source = word_at(block.source, i), result = word_at(block.result, i);
    if ((source & 0x7fff) >= from_.infinity() || (result & 0x7fff) >= from_.infinity()) continue;
    const double x = from_.number(source);
    const double error = x - from_.number(result);
    tally.signal[i % tally_chains] += x * x;
    tally.noise[i % tally_chains] += error * error;
  }
}

void WordTally::sum(const Block& block, Tally& tally) const {
  if (!block.is_finite) return sum_with_care(block, tally);
  const std::size_t whole = block.count / word_group * word_group;
  WordSums sums;
  if (whole != 0) {
    tally_loops_of(target_).words.add_squares(block.source, block.result, whole, from_.is_bfloat16(), block.errors,
                                              sums);
    if (!is_good(sums.signal) || !(block.errors == WordErrors::none || is_good(sums.noise)))
      return sum_with_care(block, tally);
  }
  add(sums, tally);
  sum_one_by_one(block, whole, tally);
}

void WordTally::sum_with_care(const Block& block, Tally& tally) const {
  const std::uint16_t most = largest_of(target_, block.source, block.count);
  if (most == 0) return;
  if (most < from_.infinity() && block.is_finite) return sum_one_by_one(block, 0, tally);
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
  finite.is_finite = true;
  sum(finite, tally);
}

// --- To results far away

bool DistantWordTally::takes_another_way(std::uint16_t magnitude) const {
  return magnitude >= what_.limit || (magnitude != 0 && magnitude < what_.finest);
}

bool DistantWordTally::add_groups(const std::byte* source, const std::byte* result, std::size_t count,
                                  Tally& tally) const {
  const WordLoops& loops = tally_loops_of(target_).words;
  const std::uint64_t inexact = tally.inexact;
  const bool is_bool = what_.kind == DistantKind::boolean;
  WordSums sums;
  const WordRange range = loops.add_distant(source, result, count, from_.is_bfloat16(), what_, sums, tally);
  if (takes_another_way(range.largest) || takes_another_way(range.smallest)) return false;
  const bool is_exact = tally.inexact == inexact;
  if (range.largest == 0 && is_exact) return true;
  if (!is_good(sums.signal)) return false;
  if (!is_exact) {
    if (!is_good(sums.noise)) return false;
    // Beyond that, float32 may lack digits of the error.
    if (is_bool && !(sums.largest_error >= 1.0 + 0x1p-12 && sums.largest_error < 0x1p23)) return false;
    const bool may_be_beyond = range.largest >= std::min(what_.bounds.positive, what_.bounds.negative);
    double largest_share = may_be_beyond ? what_.largest_share_beyond : what_.largest_share;
    if (is_bool) largest_share = 1.0 + 1.0 / from_.value(std::max(range.smallest, std::uint16_t{1}));
    if (tally.max_rel < largest_share) {
      loops.grow_share(source, result, count, from_.is_bfloat16(), what_.kind, tally);
    }
  }
  tally.max_abs = std::max(tally.max_abs, sums.largest_error);
  kernels::add(sums, tally);
  return true;
}

bool DistantWordTally::add(const std::byte* source, const std::byte* result, std::size_t count, const TallyRules& rules,
                           Tally& tally) const {
  const std::size_t whole = count / word_group * word_group;
  for (std::size_t i = whole; i < count; ++i) {
    if (takes_another_way(static_cast<std::uint16_t>(word_at(source, i) & 0x7fff))) return false;
  }
  if (Tally counted = tally; whole != 0) {
    if (!add_groups(source, result, whole, counted)) return false;
    tally = counted;
  }
  for (std::size_t i = whole; i < count; ++i) {
    const std::uint16_t code = word_at(source, i);
    const double x = from_.number(code);
    const bool is_less =
        what_.kind == DistantKind::scale && static_cast<std::int16_t>(code) < static_cast<std::int16_t>(what_.code);
    double y = is_less ? what_.least_result : 0.0;
    if (!needs_results()) y = x == 0.0 ? 0.0 : 1.0;
    if (needs_results() && !is_less) y = from_.number(word_at(result, i));
    tally_element(x, 0.0, y, 0.0, i % tally_chains, rules, tally);
  }
  return true;
}

}  // namespace tensorcast::kernels
