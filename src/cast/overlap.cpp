// SPDX-License-Identifier: Apache-2.0
#include "cast/overlap.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "dtype/errors.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Values tried before the answer is "perhaps". Arrays that people make take one or two for each axis.
constexpr int most_trials = 20000;

// stride * x, for an x from 0 to `last`.
using Term = Footprint::Axis;

// Searches sums of terms that are `target`.
class SumSearch {
 public:
  explicit SumSearch(std::vector<Term> terms) : terms_(std::move(terms)) {
    std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
    rest_.resize(terms_.size() + 1);
    divisor_.resize(terms_.size() + 1);
    for (std::size_t i = terms_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1] + terms_[i].stride * terms_[i].last;
      divisor_[i] = std::gcd(divisor_[i + 1], terms_[i].stride);
    }
  }

  // Reports whether there are `most` sums or more, or perhaps are.
  [[nodiscard]] bool has(int most, std::uint64_t target) {
    wanted_ = most;
    search(0, target);
    return wanted_ <= 0 || trials_ > most_trials;
  }

 private:
  // Large strides first: what the smaller ones can reach then leaves few values for each.
  void search(std::size_t term, std::uint64_t target) {
    if (target > rest_[term]) return;
    if (term == terms_.size()) {
      --wanted_;  // the target is 0
      return;
    }
    if (target % divisor_[term] != 0) return;
    const auto [stride, last] = terms_[term];
    const std::uint64_t beyond = target > rest_[term + 1] ? target - rest_[term + 1] : 0;
    const std::uint64_t highest = std::min(last, target / stride);
    for (std::uint64_t x = beyond / stride + (beyond % stride != 0 ? 1 : 0); x <= highest; ++x) {
      if (wanted_ <= 0 || ++trials_ > most_trials) return;
      search(term + 1, target - x * stride);
    }
  }

  std::vector<Term> terms_;
  std::vector<std::uint64_t> rest_;     // the largest sum of a term and those after it
  std::vector<std::uint64_t> divisor_;  // their strides' greatest common divisor
  int wanted_ = 0;
  int trials_ = 0;
};

}  // namespace

Result<Footprint> footprint(const std::byte* data, const Shape& shape, const Shape& strides, std::uint64_t item_bytes) {
  // Sums of two footprints must not overflow.
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max() / 8;
  Footprint result{.lowest = reinterpret_cast<std::uintptr_t>(data), .item_bytes = item_bytes};
  std::uint64_t below = 0, above = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] < 2) continue;
    const bool descends = strides[axis] < 0;
    const auto bits = static_cast<std::uint64_t>(strides[axis]);
    const std::uint64_t stride = descends ? 0 - bits : bits, last = static_cast<std::uint64_t>(shape[axis]) - 1;
    std::uint64_t reach = 0;
    std::uint64_t& side = descends ? below : above;
    if (__builtin_mul_overflow(stride, last, &reach) || reach > most || (side += reach) > most) {
      return invalid("strides reach beyond the addresses of memory");
    }
    result.axes.push_back({stride, last});
  }
  if (below > result.lowest || std::numeric_limits<std::uintptr_t>::max() - result.lowest < above + item_bytes) {
    return invalid("strides reach beyond the addresses of memory");
  }
  result.lowest -= static_cast<std::uintptr_t>(below);
  result.span = below + above + item_bytes;
  return result;
}

bool may_overlap(const Footprint& a, const Footprint& b) {
  if (a.lowest >= b.lowest + b.span || b.lowest >= a.lowest + a.span) return false;
  // a.lowest + (an offset in a) = b's highest byte - (an offset in b, counted down from its last indices): the two
  // offsets add up to a distance that is known.
  std::vector<Term> terms;
  for (const Footprint* side : {&a, &b}) {
    for (const Footprint::Axis& axis : side->axes) {
      if (axis.stride != 0) terms.push_back(axis);
    }
    if (side->item_bytes > 1) terms.push_back({1, side->item_bytes - 1});
  }
  return SumSearch(std::move(terms)).has(1, b.lowest + b.span - 1 - a.lowest);
}

bool may_overlap_itself(const Footprint& array) {
  std::vector<Footprint::Axis> axes = array.axes;
  std::sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.stride < b.stride; });
  if (!axes.empty() && axes.front().stride == 0) return true;
  // Usually each stride passes all that the smaller ones reach.
  std::uint64_t reach = array.item_bytes;
  bool nested = true;
  for (const Footprint::Axis& axis : axes) {
    nested = nested && axis.stride >= reach;
    reach += axis.stride * axis.last;
  }
  if (nested) return false;
  // Else two elements overlap if the differences of their indices, times strides, and the difference of two bytes of
  // an item add up to 0. Each difference is raised by its maximum, as terms start at 0. Equal indices are one solution.
  std::vector<Term> terms;
  std::uint64_t target = array.item_bytes - 1;
  for (const Footprint::Axis& axis : axes) {
    terms.push_back({axis.stride, 2 * axis.last});
    target += axis.stride * axis.last;
  }
  if (array.item_bytes > 1) terms.push_back({1, 2 * (array.item_bytes - 1)});
  return SumSearch(std::move(terms)).has(2, target);
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
