#include "cast/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cast/report_codes.hpp"
#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast {
namespace {

using codec::IntegerRange;
using codec::Policy;
using kernels::RealSums;
using kernels::TallyRules;
using kernels::WordErrors;

constexpr std::size_t block_elements = 512;  // five blocks of float64 fit the first-level cache
constexpr double infinity = std::numeric_limits<double>::infinity();

// --- Which source values are beyond the target's range, and which errors show that they are not

// What is just beyond an end is a float64 plus less than its last place: products with a scale may lie in between.
TallyRules rules_of_float(const DTypeRow& target) {
  const FloatFormat& format = target.format;
  if (target.bits >= 16) return {};  // no extreme to saturate to: these overflow to infinity
  const double lowest = facts(target.id).lowest;
  const double largest = facts(target.id).largest;
  if (!format.has_zero) {
    const double below = std::nextafter(lowest, 0.0), above = std::nextafter(largest, infinity);
    return {.below = below,
            .below_low = std::nextafter(lowest - below, 0.0),
            .above = above,
            .above_low = std::nextafter(largest - above, 0.0),
            .usual_error = 0.0};
  }
  // Rounding as if the exponent went on: half a step above the largest value, a tie going to the even mantissa.
  const double half_step = std::ldexp(1.0, format.max_exponent() - format.mantissa_bits - 1);
  const bool tie_goes_up = format.largest_code() % 2 == 1;
  const double end = largest + half_step;
  const double above = tie_goes_up ? end : std::nextafter(end, infinity);
  const double above_low = tie_goes_up ? 0.0 : std::nextafter(end - above, 0.0);
  return {.below = -above, .below_low = -above_low, .above = above, .above_low = above_low, .usual_error = half_step};
}

// Truncated, numbers are beyond from one past the ends. Rounded to nearest, from half a step past the largest, which is
// odd, and beyond half a step past the lowest, which is even. In 64 bits such numbers take two float64.
TallyRules rules_of_integer(const DTypeRow& target, IntRounding rounding) {
  const bool truncates = rounding == IntRounding::trunc;
  const double end = std::ldexp(1.0, target.is_signed ? target.bits - 1 : target.bits);  // the largest plus one
  const double lowest = target.is_signed ? -end : 0.0;
  const double step = truncates ? 1.0 : 0.5;
  const double end_below = truncates ? lowest - 1.0 : std::nextafter(lowest - 0.5, -infinity);
  TallyRules rules{.below = end_below,
                   .below_low = truncates ? 0.0 : std::nextafter((lowest - 0.5) - end_below, 0.0),
                   .above = truncates ? end : end - 0.5,
                   .usual_error = step,
                   .counts_zeros = false,
                   .beyond_has_large_error = truncates,
                   .beyond_error = step};
  if (target.bits == 64 && target.is_signed) {
    rules.below = lowest;
    rules.below_low = truncates ? -1.0 : std::nextafter(-0.5, -1.0);
  }
  if (target.bits == 64 && !truncates) {
    rules.above = end;
    rules.above_low = -0.5;
  }
  return rules;
}

TallyRules rules_of(DType to, const Policy& policy) {
  const DTypeRow& target = row(to);
  if (target.family == Family::floating) return rules_of_float(target);
  if (target.family == Family::integer) return rules_of_integer(target, policy.int_rounding);
  return {.usual_error = 0.0, .counts_zeros = false, .beyond_has_large_error = true};  // float32 lacks digits for 1 - x
}

// Of sources with 11 digits from 2^-24 to 2^16, if the result has 8 bits or is near.
bool has_float32_errors(DType from, DType to) {
  if (from != DType::float16) return false;
  return bit_width(to) <= 16 &&
         (family(to) == Family::floating || (family(to) == Family::integer && bit_width(to) <= 8));
}

bool is_short_float(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

kernels::Usually usually(DType from, DType to, const TallyRules& rules) {
  using kernels::Usually;
  if (family(from) != Family::floating) return Usually::inexact;
  if (to == DType::float8_e8m0fnu) return Usually::below_zero;
  if (to == DType::float4_e2m1fn) return Usually::extremes;
  if (to == DType::boolean) return Usually::beyond;  // none is
  if (family(to) != Family::integer || !rules.beyond_has_large_error) return Usually::inexact;
  const bool often_beyond = row(to).is_signed ? bit_width(to) < 8 : bit_width(to) != 16;  // measured
  return often_beyond ? Usually::beyond : Usually::inexact;
}

// Of 16-bit floats, to floats that have all of their numbers.
bool are_kept_words(DType from, DType to) {
  return is_short_float(from) && family(to) == Family::floating && bit_width(to) > 16;
}

// Of 16-bit floats, to floats with fewer digits: rounded to nearest, or to a range that has less room.
bool are_rounded_words(DType from, DType to) {
  return is_short_float(from) && family(to) == Family::floating && bit_width(to) <= 16 && row(to).format.has_zero;
}

bool are_distant_words(DType from, DType to, const Policy& policy) {
  if (!is_short_float(from) || bit_width(to) > 8) return false;
  if (to == DType::float8_e8m0fnu) return policy.saturate;
  return family(to) == Family::integer || to == DType::boolean;
}

// Of floats, to integers modulo 2^8 or more: numbers beyond fewer bits are too frequent. Float32 gains nothing by it
// for 8 bits.
bool are_fractions(DType from, DType to, const Policy& policy) {
  return (is_short_float(from) || from == DType::float32) && family(to) == Family::integer &&
         bit_width(to) >= (from == DType::float32 ? 16 : 8) && policy.integer_range == IntegerRange::wrap &&
         policy.int_rounding == IntRounding::trunc;
}

// Where numbers begin whose result is not rounded, or which the source's type cannot hold.
double first_above(DType from, DType to, const TallyRules& rules) {
  if (bit_width(to) <= 8) return rules.above;
  const FloatFormat& format = row(to == DType::bfloat16 ? from : to).format;
  const int lost_bits = row(from).format.mantissa_bits - row(to).format.mantissa_bits;
  const double largest = facts(to == DType::bfloat16 ? from : to).largest;
  return largest - std::ldexp(1.0, format.max_exponent() - format.mantissa_bits + std::max(lost_bits, 0) - 1);
}

// --- Blocks as real numbers

bool fits_float32(DType dtype) {
  const DTypeRow& type = row(dtype);
  return type.bits <= 16 || dtype == DType::float32;
}

bool fit_float32(Target target, DType dtype, const std::byte* data, std::size_t count) {
  if (fits_float32(dtype)) return true;
  const DTypeRow& type = row(dtype);
  return type.family == Family::integer && kernels::are_small(target, data, type.bits, type.is_signed, 24, count);
}

void decode(Target target, DType dtype, const std::byte* data, std::size_t count, DType as, void* out) {
  auto* const bytes = static_cast<std::byte*>(out);
  if (dtype == as) {
    std::memcpy(bytes, data, storage_bytes(dtype, count));
  } else {
    kernels::find_kernel(target, dtype, as)->run(data, bytes, count, Policy{});
  }
}

struct DoubleBlock {
  alignas(64) std::array<double, block_elements> high, low;
};

constexpr std::array<double, block_elements> zeros = {};

RealSums decode_sums(Target target, DType dtype, const std::byte* data, std::size_t count, DoubleBlock& out) {
  const DTypeRow& type = row(dtype);
  const auto are_float64 = [&](std::size_t elements) {
    return kernels::are_small(target, data, type.bits, type.is_signed, 53, elements);
  };
  const bool is_long = type.family == Family::integer && type.bits == 64;
  // Large ones seldom come alone: mostly, there is one among the first.
  if (is_long && !(are_float64(std::min<std::size_t>(count, 16)) && are_float64(count))) {
    kernels::split_integers(target, data, type.is_signed, out.high.data(), out.low.data(), count);
    return {out.high.data(), out.low.data()};
  }
  if (dtype == DType::float64 && reinterpret_cast<std::uintptr_t>(data) % alignof(double) == 0) {
    return {reinterpret_cast<const double*>(data), zeros.data()};
  }
  decode(target, dtype, data, count, DType::float64, out.high.data());
  return {out.high.data(), zeros.data()};
}

}  // namespace

// --- The reporter

Reporter::Reporter(DType from, DType to, const Policy& policy, Target target)
    : from_(from), to_(to), policy_(policy), rules_(rules_of(to, policy)), target_(target) {
  rules_.set_floats();
  const bool is_scaled = policy.scale != 1.0;  // products have more digits
  rules_.has_float32_errors = !is_scaled && has_float32_errors(from, to);
  rules_.is_source_short = !is_scaled && is_short_float(from) && to != DType::boolean;
  rules_.usually = usually(from, to, rules_);
  if (bit_width(from) <= 8) {
    method_ = Method::bytes;
    bytes_.emplace(from, to, policy, target);
  } else if (IntegerReporter::is_for(from, to, policy)) {
    method_ = Method::integers;
    integers_.emplace(from, to, policy, target);
  } else if (!is_scaled && are_kept_words(from, to)) {
    method_ = Method::kept;
    words_.emplace(target, row(from).format, row(from).format, infinity, std::nan(""));
  } else if (!is_scaled && are_rounded_words(from, to)) {
    method_ = Method::words;
    const bool saturates = bit_width(to) < 8 || (bit_width(to) == 8 && policy.saturate);
    words_.emplace(target, row(from).format, row(to).format, first_above(from, to, rules_),
                   saturates ? facts(to).largest : std::nan(""));
  } else if (!is_scaled && are_fractions(from, to, policy)) {
    method_ = Method::by_source;
    fractions_.emplace(target, row(from).format, bit_width(to), row(to).is_signed);
    if (are_distant_words(from, to, policy)) emplace_distant_words();
  } else if (!is_scaled && are_distant_words(from, to, policy)) {
    method_ = Method::words;
    emplace_distant_words();
  } else if (!is_scaled && from == DType::float32 && to == DType::float8_e8m0fnu && policy.saturate) {
    method_ = Method::by_source;
    powers_.emplace(target, policy.e8m0_rounding);
  } else if (is_scaled && fits_float32(from) && fits_float32(to) && std::fabs(policy.scale) >= 0x1p-800 &&
             std::fabs(policy.scale) <= 0x1p800) {
    method_ = Method::products;
  } else {
    method_ = is_scaled || from == DType::float64 ? Method::float64 : Method::float32_if_they_fit;
  }
}

// Of integers, relative errors are the largest for numbers that become zero, and for the first ones that wrap: from
// there on to the next multiple of 2^bits, and from that to the following one, they decrease.
void Reporter::emplace_distant_words() {
  const FloatFormat& format = row(from_).format;
  const kernels::WordFormat words(format);
  const std::uint16_t none = words.infinity();
  kernels::DistantWords what{.bounds = {.positive = none, .negative = none}, .limit = none};
  if (family(to_) == Family::integer) {
    const bool wraps = policy_.integer_range == IntegerRange::wrap;
    const bool is_far = !wraps || (!row(to_).is_signed && format.mantissa_bits + 1 + bit_width(to_) > 12);
    if (is_far) what.kind = kernels::DistantKind::far_integer;
    if (!wraps) what.limit = std::min(none, words.code_of_power(23));  // float32 has no such error
    what.bounds = {.positive = words.first_from(rules_.above), .negative = words.first_from(-rules_.below)};
    for (const unsigned code : {unsigned{what.bounds.positive}, what.bounds.negative | 0x8000U}) {
      const double share = fate_of(from_, code, to_, policy_).relative_error;
      what.largest_share_beyond = std::max(what.largest_share_beyond, share);
    }
  } else if (to_ == DType::float8_e8m0fnu) {
    what.limit = words.code_of_power(format.max_exponent());  // the next power of two may be none of the source's
    what.finest = words.code_of_power(-70);  // else errors of negative numbers are longer than a float64
    what.kind = kernels::DistantKind::scale;
    what.code = std::max<std::uint16_t>(words.code_of_power(-127), 1);
    what.least_result = facts(to_).lowest;
  } else {
    what.kind = kernels::DistantKind::boolean;
    what.code = words.code_of_power(0);
  }
  distant_words_.emplace(target_, format, what);
}

void Reporter::Count::merge(const Count& other) noexcept {
  elements += other.elements;
  if (other.bytes) {
    if (!bytes) bytes = std::make_unique<ByteReporter::Count>();
    bytes->merge(*other.bytes);
  }
  integers.narrow.merge(other.integers.narrow);
}

void Reporter::add(const Conversion& done, Count& count) const {
  count.elements += done.count;
  switch (method_) {
    case Method::bytes:
      if (!count.bytes) count.bytes = std::make_unique<ByteReporter::Count>();
      return bytes_->add(done.src, done.count, *count.bytes);
    case Method::integers:
      return integers_->add(done, count.integers);
    case Method::kept:
      return add_kept(done, count);
    case Method::words:
      return add_words(done, count);
    case Method::by_source:
      return add_by_source(done, count);
    case Method::float32_if_they_fit:
      return add_float32_if_they_fit(done, count);
    case Method::products:
      for (std::size_t first = 0; first < done.count; first += 2 * block_elements) {
        add_float32({done.src + storage_bytes(from_, first), from_, done.dst + storage_bytes(to_, first), to_,
                     std::min(2 * block_elements, done.count - first)},
                    count);
      }
      return;
    case Method::float64:
      return add_float64(done, count);
  }
}

void Reporter::add_by_reference(const Conversion& done, Count& count) const {
  for (std::size_t i = 0; i < done.count; ++i) {
    add_code(fate_of(from_, codec::load_code(from_, done.src, i), to_, policy_), 1, count.by_reference);
  }
}

// Numbers that float32 has give the same report either way, so each part of a block may go its own.
void Reporter::add_float32_if_they_fit(const Conversion& done, Count& count) const {
  constexpr std::size_t part_elements = 2 * block_elements;
  for (std::size_t first = 0; first < done.count; first += part_elements) {
    const Conversion part{done.src + storage_bytes(from_, first), from_, done.dst + storage_bytes(to_, first), to_,
                          std::min(part_elements, done.count - first)};
    // What float32 has is the same in float64.
    const bool fit = fit_float32(target_, from_, part.src, part.count) &&
                     (to_ == DType::float64 || fit_float32(target_, to_, part.dst, part.count));
    if (fit) {
      add_float32(part, count);
    } else {
      add_float64(part, count);
    }
  }
}

// Each number is its own result: there is nothing but the squares.
void Reporter::add_kept(const Conversion& done, Count& count) const {
  for (std::size_t first = 0; first < done.count; first += by_source_part()) {
    const std::byte* const part = done.src + storage_bytes(from_, first);
    words_->sum({.source = part,
                 .result = part,
                 .count = std::min(by_source_part(), done.count - first),
                 .errors = kernels::WordErrors::none,
                 .is_finite = true},
                count.tally);
  }
}

void Reporter::add_words(const Conversion& done, Count& count) const {
  for (std::size_t first = 0; first < done.count; first += words_part) {
    const Conversion part{done.src + storage_bytes(from_, first), from_, done.dst + storage_bytes(to_, first), to_,
                          std::min(words_part, done.count - first)};
    words_ ? add_rounded_words(part, count) : add_distant_words(part, count);
  }
}

void Reporter::add_distant_words(const Conversion& part, Count& count) const {
  alignas(64) std::array<std::byte, 2 * words_part> result;
  if (distant_words_->needs_results()) decode(target_, to_, part.dst, part.count, from_, result.data());
  if (distant_words_->add(part.src, result.data(), part.count, rules_, count.tally)) return;
  add_float32_if_they_fit(part, count);
}

// Groups that are not usual are counted as float32. The more of them there are, the more are taken for such at once.
void Reporter::add_rounded_words(const Conversion& part, Count& count) const {
  constexpr std::size_t group = kernels::word_group;
  constexpr int longest_run = 8;
  alignas(64) std::array<std::byte, 2 * words_part> result;
  alignas(64) std::array<float, longest_run * group> numbers, results;
  kernels::Tally& tally = count.tally;
  if (bit_width(to_) == 16) {
    using Fate = kernels::WordTally::Fate;
    const Fate fate = words_->fate(part.src, part.count);
    if (fate == Fate::kept) return add_kept(part, count);
    if (fate == Fate::beyond) return add_float32_if_they_fit(part, count);
  }
  decode(target_, to_, part.dst, part.count, from_, result.data());

  const std::uint64_t inexact = tally.inexact, beyond = tally.beyond, not_finite = tally.overflowed + tally.nan_made;
  int& run = tally.unusual_run;
  run = std::max(run, 1);
  const std::size_t whole = part.count / group * group;
  std::size_t first = 0;
  while (first < part.count) {
    const std::size_t usual =
        first + words_->count_usual(part.src + 2 * first, result.data() + 2 * first, whole - first, tally);
    if (usual == part.count) break;
    run = usual - first >= 2 * group ? 1 : std::min(2 * run, longest_run);
    first = std::min(usual + static_cast<std::size_t>(run) * group, part.count);
    const std::size_t elements = first - usual;
    decode(target_, from_, part.src + 2 * usual, elements, DType::float32, numbers.data());
    decode(target_, to_, part.dst + storage_bytes(to_, usual), elements, DType::float32, results.data());
    kernels::count_float32(target_, numbers.data(), results.data(), elements, rules_, tally);
  }
  // Rounding loses no more digits than the source has; what is beyond the range is far from its result.
  const bool is_far = tally.beyond != beyond;
  words_->sum({.source = part.src,
               .result = result.data(),
               .count = part.count,
               .errors = tally.inexact == inexact ? WordErrors::none
                         : is_far                 ? WordErrors::any
                                                  : WordErrors::short_ones,
               .is_finite = tally.overflowed + tally.nan_made == not_finite},
              tally);
}

// What can be told from the source alone, part by part; the others are compared with their results.
void Reporter::add_by_source(const Conversion& done, Count& count) const {
  for (std::size_t first = 0; first < done.count;) {
    const std::size_t left = done.count - first;
    Conversion part{done.src + storage_bytes(from_, first), from_, done.dst + storage_bytes(to_, first), to_,
                    std::min(by_source_part(), left / kernels::fraction_group * kernels::fraction_group)};
    const bool is_whole = part.count != 0;
    if (!is_whole) part.count = left;
    first += part.count;
    if (is_whole && fractions_ && fractions_->add(part.src, part.count, count.tally)) continue;
    if (is_whole && powers_ && powers_->add(part.src, part.count, count.tally)) continue;
    distant_words_ ? add_distant_words(part, count) : add_float32_if_they_fit(part, count);
  }
}

void Reporter::add_float32(const Conversion& part, Count& count) const {
  alignas(64) std::array<float, 2 * block_elements> source, result;
  const auto floats = [&](DType dtype, const std::byte* data, float* buffer) -> const float* {
    if (dtype == DType::float32 && reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0) {
      return reinterpret_cast<const float*>(data);
    }
    decode(target_, dtype, data, part.count, DType::float32, buffer);
    return buffer;
  };
  const float* const numbers = floats(from_, part.src, source.data());
  const float* const results = floats(to_, part.dst, result.data());
  if (policy_.scale == 1.0) {
    kernels::tally_float32(target_, numbers, results, part.count, rules_, count.tally);
  } else {
    kernels::tally_products(target_, numbers, policy_.scale, results, part.count, rules_, count.tally);
  }
}

void Reporter::add_float64(const Conversion& done, Count& count) const {
  DoubleBlock source, result, products;
  for (std::size_t first = 0; first < done.count; first += block_elements) {
    const std::size_t elements = std::min(block_elements, done.count - first);
    const std::byte* const src = done.src + storage_bytes(from_, first);
    RealSums from = decode_sums(target_, from_, src, elements, source);
    if (policy_.scale != 1.0) {
      const bool is_exact =
          from.low == zeros.data() || std::all_of(from.low, from.low + elements, [](double low) { return low == 0.0; });
      if (!is_exact || !kernels::split_products(target_, from.high, policy_.scale, products.high.data(),
                                                products.low.data(), elements)) {
        add_by_reference({src, from_, nullptr, to_, elements}, count);
        continue;
      }
      from = {products.high.data(), products.low.data()};
    }
    RealSums to = decode_sums(target_, to_, done.dst + storage_bytes(to_, first), elements, result);
    if (from.low == zeros.data() && to.low == zeros.data()) from.low = to.low = nullptr;
    kernels::tally_float64(target_, from, to, elements, rules_, count.tally);
  }
}

CastReport Reporter::report(const Count& count) const {
  CastReport report = count.bytes ? bytes_->report(*count.bytes)
                      : integers_ ? integers_->report(count.integers)
                                  : count.by_reference;
  report.count = count.elements;

  const kernels::Tally& tally = count.tally;
  const bool to_integer = family(to_) == Family::integer;
  const bool wraps = to_integer && policy_.integer_range == IntegerRange::wrap;
  report.overflowed += tally.overflowed;
  (wraps ? report.wrapped : report.saturated) += tally.beyond;
  report.underflowed_to_zero += family(to_) == Family::floating ? tally.underflowed : 0;
  report.inexact += tally.inexact;
  report.nan_made += tally.nan_made;
  report.nan_lost += tally.nan_lost;
  report.max_abs_error = std::max(report.max_abs_error, tally.max_abs);
  report.max_rel_error = std::max(report.max_rel_error, tally.max_rel);
  for (std::size_t chain = 0; chain < kernels::tally_chains; ++chain) {
    report.signal_power += tally.signal[chain];
    report.noise_power += tally.noise[chain];
  }
  return report;
}

}  // namespace tensorcast
