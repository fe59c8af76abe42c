// SPDX-License-Identifier: Apache-2.0
#include "runs.hpp"

#include <algorithm>

#include "samples.hpp"

namespace oracle {
namespace {

constexpr std::uint32_t sign = 0x80000000;
constexpr std::uint32_t infinity = 0x7F800000;
constexpr std::uint32_t two_to_12 = 0x45800000;
constexpr long integers_in_runs = 1L << 12;

// The smallest code whose value is at least `threshold`.
std::uint32_t first_code_at_least(const mpq_class& threshold) {
  const NearestFloat nearest = nearest_float(threshold, f32);
  if (nearest.beyond) return infinity;
  const auto code = static_cast<std::uint32_t>(nearest.magnitude);
  return decode(f32, code).value < threshold ? code + 1 : code;
}

}  // namespace

Runs::Runs(Type to, const tc_cast_options& options) : to_(to), options_(options) {
  std::vector<std::uint32_t> starts = {0, 1, two_to_12, infinity};
  add_thresholds(starts);
  // NaN payloads: the types of this sweep keep at most the 10 leading fraction bits.
  for (std::uint32_t nan = infinity + 1; nan < sign; nan = (nan | 0x1FFF) + 1) starts.push_back(nan);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (const std::uint32_t half : {0U, sign}) {
    for (const std::uint32_t start : starts) {
      const std::uint32_t code = start | half;
      runs_.push_back({code, Conversion(f32, code, decode(f32, code), to).under(options).code});
    }
  }
}

void Runs::add_thresholds(std::vector<std::uint32_t>& starts) const {
  const auto add = [&](const mpq_class& threshold) {
    const std::uint32_t start = first_code_at_least(threshold);
    starts.push_back(start);
    if (start < infinity) starts.push_back(start + 1);  // a tie may belong to either side
  };
  if (is_integer(to_)) {
    for (long k = 1; k <= integers_in_runs; ++k) {
      if (options_.rounding == 0) add(mpq_class(k));
      if (options_.rounding != 0) add(mpq_class(2 * k - 1, 2));
    }
  } else if (to_ == e8m0) {
    for (const mpq_class& power : magnitudes(e8m0)) {
      add(power);
      add(power * 3 / 2);
    }
  } else if (to_ != boolean) {
    for (const mpq_class& middle : midpoints(to_)) add(middle);
  }
}

bool Runs::by_arithmetic(std::uint32_t code) const {
  const std::uint32_t magnitude = code & ~sign;
  return is_integer(to_) && magnitude >= two_to_12 && magnitude < infinity;
}

// Codes of one binade: significand * 2^exponent with an exponent that all share.
template <class Code>
void Runs::fill_integers(std::uint32_t first, std::span<Code> out) const {
  const int exponent = static_cast<int>(first >> 23 & 0xFF) - 150;
  const bool negative = (first & sign) != 0;
  const bool saturate = options_.out_of_range == 2;
  const std::uint64_t extreme = integer_extreme(to_, negative);  // its code is its magnitude
  if (saturate ? exponent >= 41 : exponent >= 64) {              // 2^64 and more; multiples of 2^64
    std::fill(out.begin(), out.end(), static_cast<Code>(saturate ? extreme : 0));
    return;
  }
  const bool round = options_.rounding != 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t significand = ((first + i) & 0x7FFFFF) | 0x800000;
    std::uint64_t magnitude = 0;
    if (exponent >= 0) {
      magnitude = significand << exponent;
    } else {
      const std::uint64_t half = std::uint64_t{1} << (-exponent - 1);
      const std::uint64_t odd = significand >> -exponent & 1;
      magnitude = (significand + (round ? half - 1 + odd : 0)) >> -exponent;  // a tie goes to the even neighbour
    }
    const std::uint64_t low = (negative ? std::uint64_t{0} - magnitude : magnitude) & code_mask(to_);
    out[i] = static_cast<Code>(saturate && magnitude > extreme ? extreme : low);
  }
}

template <class Code>
void Runs::fill(std::uint32_t first, std::span<Code> out) const {
  const auto after = [](std::uint32_t code, const Run& run) { return code < run.first; };
  auto run = std::upper_bound(runs_.begin(), runs_.end(), first, after) - 1;
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint32_t code = first + static_cast<std::uint32_t>(done);
    const auto next = run + 1;
    const std::uint64_t end = next == runs_.end() ? std::uint64_t{1} << 32 : next->first;
    std::size_t length = std::min<std::uint64_t>(end - code, out.size() - done);
    const bool integers = by_arithmetic(code);
    if (integers) length = std::min<std::size_t>(length, 0x800000 - (code & 0x7FFFFF));
    if (integers) {
      fill_integers(code, out.subspan(done, length));
    } else {
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(done), length, static_cast<Code>(run->result));
    }
    done += length;
    if (code + length == end) run = next;
  }
}

template void Runs::fill(std::uint32_t, std::span<std::uint8_t>) const;
template void Runs::fill(std::uint32_t, std::span<std::uint16_t>) const;
template void Runs::fill(std::uint32_t, std::span<std::uint32_t>) const;
template void Runs::fill(std::uint32_t, std::span<std::uint64_t>) const;

}  // namespace oracle
