// SPDX-License-Identifier: Apache-2.0
#include "quantized/choose/scheme_choice.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace tensorcast::file_conversion {
namespace {

constexpr int most_rounds = 64;
constexpr std::size_t most_paired = 2000;

class Choice {
 public:
  Choice(const SchemeCosts& items, double budget) : items_(items), left_(budget) {}

  bool begin() {
    for (const auto& item : items_) {
      std::size_t smallest = item.size();
      for (std::size_t c = 0; c < item.size(); ++c) {
        if (item[c] && (smallest == item.size() || is_smaller(*item[c], *item[smallest]))) smallest = c;
      }
      if (smallest == item.size()) return false;
      chosen_.push_back(smallest);
      left_ -= item[smallest]->bits;
    }
    return left_ >= 0.0;
  }

  // Steps along each item's hull, the best of all items first.
  void climb() {
    std::priority_queue<Step> steps;
    for (std::size_t i = 0; i < items_.size(); ++i) push_best_step(i, steps);
    while (!steps.empty()) {
      const Step step = steps.top();
      steps.pop();
      if (step.bits > left_) continue;  // later steps of the item are larger, and are tried by fill()
      take(step.item, step.candidate);
      push_best_step(step.item, steps);
    }
  }

  // Gives what is left to the candidates that take away the most error.
  void fill() {
    for (bool again = true; again;) {
      again = false;
      double best = 0.0;
      std::size_t item = 0, candidate = 0;
      for (std::size_t i = 0; i < items_.size(); ++i) {
        for (std::size_t c = 0; c < items_[i].size(); ++c) {
          if (!items_[i][c] || more_bits(i, c) > left_ || gain(i, c) <= best) continue;
          best = gain(i, c);
          item = i, candidate = c;
          again = true;
        }
      }
      if (again) take(item, candidate);
    }
  }

  // The best exchange of two items; false: there is none.
  bool exchange() {
    const std::size_t n = items_.size();
    const std::size_t reach = n <= most_paired ? n : most_paired * most_paired / n;
    double best = 0.0;
    std::tuple<std::size_t, std::size_t, std::size_t, std::size_t> found;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t c = 0; c < items_[i].size(); ++c) {
        if (!items_[i][c] || gain(i, c) <= best) continue;
        const double needed = more_bits(i, c) - left_, gained = gain(i, c);
        const std::size_t first = n <= most_paired ? 0 : i - std::min(i, reach / 2);
        for (std::size_t k = first; k < std::min(n, first + reach); ++k) {
          if (k == i) continue;
          for (std::size_t d = 0; d < items_[k].size(); ++d) {
            if (!items_[k][d] || -more_bits(k, d) < needed || gained + gain(k, d) <= best) continue;
            best = gained + gain(k, d);
            found = {i, c, k, d};
          }
        }
      }
    }
    // Below this, sums of errors differ by their rounding only.
    if (best <= 1e-12 * total_error()) return false;
    const auto [i, c, k, d] = found;
    take(i, c);
    take(k, d);
    return true;
  }

  [[nodiscard]] std::vector<std::size_t> chosen() const { return chosen_; }

 private:
  struct Step {
    double rate = 0.0, bits = 0.0;
    std::size_t item = 0, candidate = 0;

    bool operator<(const Step& other) const {  // the largest is taken
      if (rate != other.rate) return rate < other.rate;
      return std::tie(item, candidate) > std::tie(other.item, other.candidate);
    }
  };

  static bool is_smaller(const SchemeCost& a, const SchemeCost& b) {
    return a.bits != b.bits ? a.bits < b.bits : a.error < b.error;
  }
  [[nodiscard]] const SchemeCost& now(std::size_t item) const { return *items_[item][chosen_[item]]; }
  [[nodiscard]] double more_bits(std::size_t item, std::size_t c) const {
    return items_[item][c]->bits - now(item).bits;
  }
  [[nodiscard]] double gain(std::size_t item, std::size_t c) const { return now(item).error - items_[item][c]->error; }

  [[nodiscard]] double total_error() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < items_.size(); ++i) sum += now(i).error;
    return sum;
  }

  void take(std::size_t item, std::size_t candidate) {
    left_ -= more_bits(item, candidate);
    chosen_[item] = candidate;
  }

  // The steepest step of the item is on its hull.
  void push_best_step(std::size_t item, std::priority_queue<Step>& steps) const {
    Step best;
    for (std::size_t c = 0; c < items_[item].size(); ++c) {
      if (!items_[item][c] || gain(item, c) <= 0.0) continue;
      const double bits = more_bits(item, c);
      const double rate = bits <= 0.0 ? std::numeric_limits<double>::infinity() : gain(item, c) / bits;
      if (rate > best.rate) best = {rate, bits, item, c};
    }
    if (best.rate > 0.0) steps.push(best);
  }

  const SchemeCosts& items_;
  double left_;
  std::vector<std::size_t> chosen_;
};

}  // namespace

std::optional<std::vector<std::size_t>> choose_schemes(const SchemeCosts& items, double budget) {
  Choice choice(items, budget);
  if (!choice.begin()) return std::nullopt;
  choice.climb();
  choice.fill();
  for (int round = 0; round < most_rounds && choice.exchange(); ++round) choice.fill();
  return choice.chosen();
}

}  // namespace tensorcast::file_conversion
