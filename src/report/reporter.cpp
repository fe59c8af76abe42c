// SPDX-License-Identifier: Apache-2.0
#include "report/reporter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"
#include "kernels/ops.hpp"
#include "report/code_outcome.hpp"
#include "report/decode.hpp"
#include "report/rules.hpp"

namespace tensorcast::report {
namespace {

using codec::RangeRule;

static_assert(block_elements % piece_multiple == 0);

// One block of float64, or of float32 in half of it.
struct Buffer {
  alignas(64) std::array<double, block_elements> numbers;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(numbers.data()); }
};

constexpr std::array<double, block_elements> zeros = {};

bool is_long_integer(DType dtype) { return family(dtype) == Family::integer && bit_width(dtype) == 64; }

// Eight bytes in one load, as the loads would take longer than the counting.
void count_each(const std::byte* data, std::size_t bytes, ByteCounts& counts) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, data + at, sizeof word);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < sizeof word; ++i) ++counts.bytes[i % ByteCounts::tables][word >> 8 * i & 0xff];
  }
  for (; at < bytes; ++at) ++counts.bytes[0][static_cast<std::uint8_t>(data[at])];
}

template <class Number>
kernels::Interval numbers_within(const kernels::Range<Number>& range) {
  constexpr Number infinity = std::numeric_limits<Number>::infinity(), largest = std::numeric_limits<Number>::max();
  return {.low = std::max(std::nextafter(range.below, infinity), -largest),
          .high = std::min(std::nextafter(range.above, -infinity), largest)};
}

template <class Number>
std::uint64_t count_below_zero(const std::byte* numbers, std::size_t count) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Number x;
    std::memcpy(&x, numbers + i * sizeof x, sizeof x);
    below += x < Number{0} ? 1 : 0;
  }
  return below;
}

}  // namespace

void ReportAccumulator::merge(const ReportAccumulator& other) {
  elements += other.elements;
  sums.merge(other.sums);
  by_reference.merge(other.by_reference);
  if (other.counts == nullptr) return;
  if (counts == nullptr) counts = std::make_unique<ByteCounts>();
  for (std::size_t table = 0; table < ByteCounts::tables; ++table) {
    for (std::size_t byte = 0; byte < 256; ++byte) counts->bytes[table][byte] += other.counts->bytes[table][byte];
  }
  for (std::size_t nibble = 0; nibble < 16; ++nibble) counts->nibbles[nibble] += other.counts->nibbles[nibble];
  for (std::size_t code = 0; code < 256; ++code) counts->codes[code] += other.counts->codes[code];
}

Reporter::Reporter(DType from, DType to, const codec::Policy& policy, Target target)
    : from_(from),
      to_(to),
      policy_(policy),
      target_(target),
      loses_signs_(family(to) == Family::floating && !row(to).format.has_sign && row(to).format.has_zero),
      has_word_(policy.has_word(row(to)) && (policy.rounding == Rounding::stochastic || bit_width(from) > 8)),
      rules_(rules_of(to, policy)) {
  const bool is_scaled = policy.scale != 1.0;
  if (has_word_ && is_scaled) {
    method_ = Method::reference;
  } else if (bit_width(from) <= 8 && !has_word_) {
    method_ = Method::histogram;
  } else if (is_scaled || is_long_integer(from) || is_long_integer(to)) {
    method_ = Method::sums;
  } else if (fits_float32(from) && fits_float32(to) && !has_word_) {  // words make errors with more digits than numbers
    method_ = Method::float32;
  } else {
    method_ = Method::float64;
  }
  if (!has_word_) return;
  in_range_ = fits_float32(from) ? numbers_within(rules_.of_float32) : numbers_within(rules_.of_float64);
  if (family(to) == Family::floating && !row(to).format.has_zero) {  // callers may flush its least number to zero
    in_range_.low = std::numeric_limits<float>::min();
  }
}

void Reporter::add(const ConvertedPiece& piece, ReportAccumulator& accumulator) const {
  accumulator.elements += piece.count;
  if (method_ == Method::histogram) {
    if (accumulator.counts == nullptr) accumulator.counts = std::make_unique<ByteCounts>();
    return add_to_histogram(piece, *accumulator.counts);
  }
  if (has_word_ && method_ != Method::reference) {
    return for_each_block(piece, piece_multiple, [&](const ConvertedPiece& part) {
      if (!all_in_range(part)) return add_by_reference(part, accumulator.by_reference);
      method_ == Method::sums ? compare_sums(part, accumulator) : compare(part, accumulator);
    });
  }
  const std::size_t elements = method_ == Method::float32 ? 2 * block_elements : block_elements;
  for_each_block(piece, elements, [&](const ConvertedPiece& block) {
    if (method_ == Method::reference) {
      add_by_reference(block, accumulator.by_reference);
    } else if (method_ == Method::sums) {
      compare_sums(block, accumulator);
    } else {
      compare(block, accumulator);
    }
  });
}

template <class Function>
void Reporter::for_each_block(const ConvertedPiece& piece, std::size_t elements, Function function) const {
  for (std::size_t first = 0; first < piece.count; first += elements) {
    function(ConvertedPiece{piece.source + storage_bytes(from_, first), piece.result + storage_bytes(to_, first),
                            std::min(elements, piece.count - first), piece.first + first});
  }
}

// Codes of 6 bits do not fill bytes, and are unpacked first.
void Reporter::add_to_histogram(const ConvertedPiece& piece, ByteCounts& counts) const {
  if (bit_width(from_) == 6) {
    return for_each_block(piece, block_elements, [&](const ConvertedPiece& block) {
      alignas(64) std::array<std::byte, block_elements> codes;
      kernels::ops_of(target_).unpack_six_bits(block.source, codes.data(), block.count);
      count_each(codes.data(), block.count, counts);
    });
  }
  const auto per_byte = static_cast<std::size_t>(8 / bit_width(from_));
  const std::size_t bytes = piece.count / per_byte;
  const auto count_nibbles = kernels::ops_of(target_).count_nibbles;
  if (per_byte > 1 && count_nibbles != nullptr) {
    count_nibbles(piece.source, bytes, counts.nibbles.data());
  } else {
    count_each(piece.source, bytes, counts);
  }
  for (std::size_t i = bytes * per_byte; i < piece.count; ++i) ++counts.codes[codec::load_code(from_, piece.source, i)];
}

bool Reporter::all_in_range(const ConvertedPiece& part) const {
  Buffer buffer;
  const bool is_float32 = fits_float32(from_);
  const DType as = is_float32 ? DType::float32 : DType::float64;
  const std::byte* const numbers = decode(target_, from_, part.source, part.count, as, buffer.bytes());
  const kernels::Ops& ops = kernels::ops_of(target_);
  return !(is_float32 ? ops.any_outside_float32 : ops.any_outside_float64)(numbers, part.count, in_range_.low,
                                                                           in_range_.high);
}

bool Reporter::finds_change(const ConvertedPiece& piece) const {
  ReportAccumulator found;
  add(piece, found);
  const CastReport all = report(found);
  return (all.overflowed | all.saturated | all.wrapped | all.underflowed_to_zero | all.inexact | all.nan_made |
          all.nan_lost | all.sign_lost) != 0;
}

void Reporter::compare(const ConvertedPiece& block, ReportAccumulator& accumulator) const {
  Buffer source, result;
  const bool is_float32 = method_ == Method::float32;
  const DType as = is_float32 ? DType::float32 : DType::float64;
  const kernels::ComparedPairs pairs = {.source = decode(target_, from_, block.source, block.count, as, source.bytes()),
                                        .result = decode(target_, to_, block.result, block.count, as, result.bytes())};
  const kernels::Ops& ops = kernels::ops_of(target_);
  (is_float32 ? ops.compare_float32 : ops.compare_float64)(pairs, block.count, rules_, accumulator.sums);
  if (!loses_signs_) return;
  accumulator.by_reference.sign_lost += is_float32 ? count_below_zero<float>(pairs.source, block.count)
                                                   : count_below_zero<double>(pairs.source, block.count);
}

void Reporter::compare_sums(const ConvertedPiece& block, ReportAccumulator& accumulator) const {
  const kernels::Ops& ops = kernels::ops_of(target_);
  const auto as_sums = [&](DType dtype, const std::byte* data, Buffer& high, Buffer& low) -> const double* {
    if (is_long_integer(dtype)) {
      ops.split_integers(data, row(dtype).is_signed, high.numbers.data(), low.numbers.data(), block.count);
      return low.numbers.data();
    }
    const std::byte* const numbers = decode(target_, dtype, data, block.count, DType::float64, high.bytes());
    if (numbers != high.bytes()) std::memcpy(high.bytes(), numbers, block.count * sizeof(double));
    return zeros.data();
  };
  Buffer source, source_low, result, result_low;
  const double* low = as_sums(from_, block.source, source, source_low);
  if (policy_.scale != 1.0) {
    const bool is_exact =
        std::all_of(low, low + block.count, [](double x) { return x == 0.0; }) &&
        ops.split_products(source.numbers.data(), policy_.scale, source_low.numbers.data(), block.count);
    if (!is_exact && block.count > piece_multiple) {  // which elements the reference sees must not depend on blocks
      return for_each_block(block, piece_multiple,
                            [&](const ConvertedPiece& part) { compare_sums(part, accumulator); });
    }
    if (!is_exact) return add_by_reference(block, accumulator.by_reference);
    low = source_low.numbers.data();
  }
  if (loses_signs_) accumulator.by_reference.sign_lost += count_below_zero<double>(source.bytes(), block.count);
  const double* const low_of_result = as_sums(to_, block.result, result, result_low);
  ops.compare_float64({source.bytes(), result.bytes(), low, low_of_result}, block.count, rules_, accumulator.sums);
}

void Reporter::add_by_reference(const ConvertedPiece& block, CastReport& report) const {
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::uint32_t random = codec::random_of(policy_, block.first + i);
    add_outcome(code_outcome(from_, codec::load_code(from_, block.source, i), to_, policy_, random), 1, report);
  }
}

// Every element of one code has the same outcome.
void Reporter::add_byte_counts(const ByteCounts& counts, CastReport& report) const {
  const auto per_byte = static_cast<std::size_t>(8 / bit_width(from_));
  std::array<std::uint64_t, 256> codes = counts.codes;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    std::uint64_t times = 0;
    for (const auto& table : counts.bytes) times += table[byte];
    const auto packed = static_cast<std::byte>(byte);
    for (std::size_t i = 0; i < per_byte; ++i) codes[codec::load_code(from_, &packed, i)] += times;
  }
  for (std::size_t nibble = 0; nibble < 16; ++nibble) {
    const auto packed = static_cast<std::byte>(nibble);
    for (std::size_t i = 0; i < per_byte / 2; ++i) codes[codec::load_code(from_, &packed, i)] += counts.nibbles[nibble];
  }
  for (std::size_t code = 0; code < 256; ++code) {
    if (codes[code] != 0) add_outcome(code_outcome(from_, code, to_, policy_), codes[code], report);
  }
}

CastReport Reporter::report(const ReportAccumulator& accumulator) const {
  CastReport report = accumulator.by_reference;
  report.count = accumulator.elements;
  if (accumulator.counts != nullptr) add_byte_counts(*accumulator.counts, report);

  const kernels::CompareSums& sums = accumulator.sums;
  const bool wraps = family(to_) == Family::integer && policy_.range == RangeRule::wrap;
  report.overflowed += sums.overflowed;
  (wraps ? report.wrapped : report.saturated) += sums.out_of_range;
  report.underflowed_to_zero += sums.zeroed;
  report.inexact += sums.inexact;
  report.nan_made += sums.nan_made;
  report.nan_lost += sums.nan_lost;
  report.max_abs_error = std::max(report.max_abs_error, sums.max_abs_error);
  report.max_rel_error = std::max(report.max_rel_error, sums.max_rel_error);
  for (std::size_t i = 0; i < kernels::accumulator_count; ++i) {
    report.signal_power += sums.signal[i];
    report.noise_power += sums.noise[i];
  }
  return report;
}

}  // namespace tensorcast::report
