#include "kernels/tally/powers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels {
namespace {

constexpr float largest_power = 0x1p127F;
constexpr float least_number = 0x1p-70F;

std::uint32_t addend_of(RoundMode rounding) {
  if (rounding == RoundMode::down) return 0;
  return rounding == RoundMode::up ? 0x7fffff : 0x400000;
}

}  // namespace

PowerTally::PowerTally(Target target, RoundMode rounding) : target_(target), addend_(addend_of(rounding)) {}

bool PowerTally::add(const std::byte* source, std::size_t count, Tally& tally) const {
  const PowerLoops& loops = tally_loops_of(target_).powers;
  PowerSums sums;
  std::memcpy(sums.signal, tally.signal, sizeof sums.signal);
  std::memcpy(sums.noise, tally.noise, sizeof sums.noise);
  loops.add(source, count, addend_, sums);
  const bool has_negative = sums.largest_code > 0x80000000;
  const auto largest = std::max(static_cast<std::uint32_t>(std::max(sums.largest_number, 0)),
                                has_negative ? sums.largest_code - 0x80000000 : 0);
  if (largest > std::bit_cast<std::uint32_t>(largest_power)) return false;
  if (sums.least < std::bit_cast<std::uint32_t>(least_number)) return false;
  if (sums.inexact != 0 && sums.largest_error == 0.0F) return false;  // only zeros have errors

  std::memcpy(tally.signal, sums.signal, sizeof sums.signal);
  std::memcpy(tally.noise, sums.noise, sizeof sums.noise);
  tally.inexact += sums.inexact;
  tally.beyond += sums.beyond;
  tally.max_abs = std::max(tally.max_abs, static_cast<double>(sums.largest_error));
  if (has_negative && tally.max_rel < 1.0) {
    tally.max_rel = 1.0;
    tally.is_max_rel_short = false;
  }
  if (sums.inexact != 0 && tally.max_rel < 1.0) loops.grow_share(source, count, addend_, tally);
  return true;
}

}  // namespace tensorcast::kernels
