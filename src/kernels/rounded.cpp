// SPDX-License-Identifier: Apache-2.0
#include "kernels/rounded.hpp"

#include <algorithm>
#include <limits>

#include "dtype/dtype_table.hpp"
#include "dtype/number_range.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

using codec::Policy;

constexpr std::size_t rounded_count = 1024;  // elements that stay in the first-level cache; a multiple of 4

bool is_power_of_two(const DTypeRow& to) { return to.family == Family::floating && !to.format.has_zero; }
bool is_integer(const DTypeRow& type) { return type.family == Family::integer; }

// Null for types that float32 holds.
NarrowFn to_float32_odd(const Rounders& rounders, const DTypeRow& from) {
  if (from.id == DType::float64) return rounders.float64_to_float32;
  if (!is_integer(from) || from.bits < 32) return nullptr;
  if (from.bits == 32) return from.is_signed ? rounders.int32_to_float32 : rounders.uint32_to_float32;
  return from.is_signed ? rounders.int64_to_float32 : rounders.uint64_to_float32;
}

RoundRule rule_of(const DTypeRow& to, const Policy& policy) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  RoundRule rule = {.word = policy.rounding, .positive_limit = infinity, .negative_limit = infinity};
  if (to.family == Family::integer) {
    rule.kept_bits = 64;
    return rule;
  }
  rule.is_power_of_two = is_power_of_two(to);
  rule.kept_bits = to.format.mantissa_bits;
  rule.last_place = to.format.min_exponent() - to.format.mantissa_bits;
  rule.is_magnitude = !to.format.has_sign && !rule.is_power_of_two;
  if (rule.is_power_of_two) return rule;
  const codec::RoundingStep step = policy.step(Rounding::nearest_even, 0);
  const bool saturates = policy.range == codec::RangeRule::saturate;
  if (saturates || step.leads_to_zero(false)) rule.positive_limit = largest_of(to);
  if (saturates || step.leads_to_zero(true)) rule.negative_limit = largest_of(to);
  return rule;
}

}  // namespace

RoundedConversion::RoundedConversion(Target target, DType from, DType to, const Policy& policy) noexcept
    : from_(from), to_(to), policy_(policy), rule_(rule_of(row(to), policy)) {
  const DTypeRow &source = row(from), &target_type = row(to);
  const Ops& ops = ops_of(target);
  const bool is_stochastic = policy.rounding == Rounding::stochastic, to_integer = is_integer(target_type);
  const bool fits_float32 = source.bits <= 16 || from == DType::float32;
  if (is_stochastic) random_words_ = ops.random_words;
  seed_ = policy.seed;
  if (to_integer && !is_stochastic) {  // kernels of wide floats know the word
    const bool is_wide = source.family == Family::floating && source.bits >= 16;
    if (!is_wide) decode_ = find_kernel(target, from, DType::float32)->run;
    encode_ = find_kernel(target, is_wide ? from : DType::float32, to)->run;
    return;
  }
  // Integers that float32 lacks are out of the range of floats of 8 bits.
  const bool to_short_float = target_type.family == Family::floating && target_type.bits <= 8;
  const bool is_clear = fits_float32 || (is_integer(source) && to_short_float);
  // Of a number that is stochastically rounded, 32 bits below the last that is kept count.
  if (!is_stochastic && !is_clear && target_type.bits <= 16 && !rule_.is_power_of_two) {
    narrow_ = to_float32_odd(*ops.rounders, source);
  }
  const bool is_limited = !to_integer && !to_short_float && policy.range == codec::RangeRule::saturate;
  if ((is_clear || narrow_ != nullptr) && !is_limited) {
    if (!is_stochastic) encode_by_word_ = ops.find_encode_by_word(from, to);
    if (encode_by_word_ != nullptr) return;
    if (!is_stochastic || to != DType::float16) encode_by_word_ = ops.find_encode_by_word(DType::float32, to);
  }
  if (encode_by_word_ != nullptr) {
    if (is_integer(source) && source.bits == 64 && narrow_ == nullptr) {
      narrow_ = source.is_signed ? ops.rounders->int64_limited : ops.rounders->uint64_limited;
    }
    if (narrow_ == nullptr && from != DType::float32) decode_ = find_kernel(target, from, DType::float32)->run;
    return;
  }
  choose_rounder(target);
  policy_.rounding = Rounding::automatic;
}

void RoundedConversion::choose_rounder(Target target) noexcept {
  const DTypeRow& source = row(from_);
  const Rounders& rounders = *ops_of(target).rounders;
  const bool fits_float32 = (source.bits <= 16 || from_ == DType::float32) && !rule_.is_power_of_two;
  const bool is_whole = is_integer(source) && !fits_float32 && narrow_ == nullptr;
  const bool is_rounded_32 = is_whole && source.bits == 32 && !rule_.is_power_of_two;
  const bool is_short = fits_float32 || narrow_ != nullptr || is_rounded_32;
  const DType number = is_short ? DType::float32 : DType::float64;
  round_ = is_short ? rounders.float32 : rounders.float64;
  if (is_rounded_32) {
    round_ = source.is_signed ? rounders.int32 : rounders.uint32;
  } else if (is_whole && !rule_.is_power_of_two) {
    round_ = source.is_signed ? rounders.int64 : rounders.uint64;
  } else if (is_whole && source.bits == 64) {
    narrow_ = source.is_signed ? rounders.int64_to_float64 : rounders.uint64_to_float64;
  } else if (narrow_ == nullptr && number != from_) {
    decode_ = find_kernel(target, from_, number)->run;
  }
  if (number != to_) encode_ = find_kernel(target, number, to_)->run;
}

void RoundedConversion::run(const std::byte* src, std::byte* dst, std::size_t count,
                            std::uint64_t first) const noexcept {
  if (decode_ == nullptr && narrow_ == nullptr && round_ == nullptr && random_words_ == nullptr) {
    if (encode_by_word_ != nullptr) return encode_by_word_(src, dst, count, policy_, nullptr);
    return encode_(src, dst, count, policy_);
  }
  // Not in place, which compilers do not vectorize.
  alignas(64) std::byte numbers[rounded_count * sizeof(double)], rounded[rounded_count * sizeof(double)];
  alignas(64) std::uint32_t random[rounded_count + 4];
  for (std::size_t step = 0; count != 0; count -= step, first += step) {
    step = std::min(rounded_count, count);
    const auto skipped = static_cast<std::size_t>(first % 4);  // words of the first block
    if (random_words_ != nullptr) random_words_(seed_, first / 4, (skipped + step + 3) / 4, random);
    if (decode_ != nullptr) decode_(src, numbers, step, Policy{});
    if (narrow_ != nullptr) narrow_(src, numbers, step);
    const std::byte* const read = decode_ != nullptr || narrow_ != nullptr ? numbers : src;
    const std::uint32_t* const words = random_words_ != nullptr ? random + skipped : nullptr;
    if (encode_by_word_ != nullptr) {
      encode_by_word_(read, dst, step, policy_, words);
    } else if (round_ != nullptr) {
      round_(read, encode_ != nullptr ? rounded : dst, step, rule_, words);
      if (encode_ != nullptr) encode_(rounded, dst, step, policy_);
    } else {
      encode_(read, dst, step, policy_);
    }
    src += storage_bytes(row(from_), step);
    dst += storage_bytes(row(to_), step);
  }
}

}  // namespace tensorcast::kernels
