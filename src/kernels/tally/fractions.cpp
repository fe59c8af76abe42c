#include "kernels/tally/fractions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/tally/tally_loops.hpp"

namespace tensorcast::kernels {
namespace {

// Squares of bfloat16 are summed up in float32: what is less has none there, or it does not matter beside the largest;
// and eight of the largest ones still have a sum.
constexpr double least_sum = 0x1p-30;
constexpr double most_squared = 0x1p62;

}  // namespace

FractionTally::FractionTally(Target target, const FloatFormat& from, int bits, bool is_signed)
    : target_(target), span_(std::ldexp(1.0, bits)), is_signed_(is_signed) {
  const double end = is_signed ? span_ / 2 : span_;
  if (from.bits() == 32) {
    minus_one_ = std::bit_cast<std::uint32_t>(-1.0F);
    end_ = std::bit_cast<std::uint32_t>(static_cast<float>(end));
    return;
  }
  words_.emplace(from);
  source_ = words_->is_bfloat16() ? FractionSource::bfloat16 : FractionSource::float16;
  minus_one_ = static_cast<std::uint32_t>(words_->code_of_power(0)) | 0x8000U;
  end_ = words_->first_from(std::min(end, most_squared));
}

double FractionTally::value(std::uint32_t magnitude) const {
  return words_ ? words_->value(static_cast<std::uint16_t>(magnitude))
                : static_cast<double>(std::bit_cast<float>(magnitude));
}

bool FractionTally::add(const std::byte* source, std::size_t count, Tally& tally) const {
  const FractionLoops& loops = tally_loops_of(target_).fractions;
  const bool has_float_sums = source_ == FractionSource::bfloat16;
  FractionSurvey found;
  loops.survey(source_, source, count, is_signed_, found);
  if (found.largest >= end_) return false;
  if (found.largest == 0) return true;
  if (has_float_sums && value(found.largest) < least_sum) return false;

  const auto beyond = static_cast<double>(found.beyond);
  FractionSums sums;
  std::memcpy(sums.signal, tally.signal, sizeof sums.signal);
  std::memcpy(sums.noise, tally.noise, sizeof sums.noise);
  loops.add(source_, source, count, found.beyond != 0 ? span_ : 0.0, sums);
  const auto fraction = static_cast<double>(sums.largest);
  if (has_float_sums && found.beyond == 0 && sums.inexact != 0 && fraction < least_sum) return false;
  sums.noise[0] += beyond * (span_ * span_);

  std::memcpy(tally.signal, sums.signal, sizeof sums.signal);
  std::memcpy(tally.noise, sums.noise, sizeof sums.noise);
  tally.inexact += sums.inexact;
  tally.beyond += found.beyond;
  if (found.beyond != 0) {
    const double nearest = value(found.nearest + (minus_one_ - (words_ ? 0x8000U : 0x80000000U)));
    const double share = (span_ + (nearest - std::trunc(nearest))) / nearest;
    tally.max_abs = std::max(tally.max_abs, span_ + fraction);
    if (share > tally.max_rel) {
      tally.max_rel = share;
      tally.is_max_rel_short = false;
    }
  } else if (sums.inexact != 0) {
    tally.max_abs = std::max(tally.max_abs, fraction);
    if (tally.max_rel < 1.0) loops.grow_share(source_, source, count, tally);
  }
  return true;
}

}  // namespace tensorcast::kernels
