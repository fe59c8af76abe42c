// SPDX-License-Identifier: Apache-2.0
// The budget is never exceeded, and choices are near the best of all.
#include "quantized/choose/scheme_choice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tensorcast/budget.hpp"

namespace tensorcast::file_conversion {
namespace {

struct Sum {
  double bits = 0.0, error = 0.0;
};

Sum sum_of(const SchemeCosts& items, const std::vector<std::size_t>& chosen) {
  Sum sum;
  for (std::size_t i = 0; i < items.size(); ++i) {
    sum.bits += items[i][chosen[i]]->bits;
    sum.error += items[i][chosen[i]]->error;
  }
  return sum;
}

// The least error of all choices within the budget; infinity: there is none.
double best_error(const SchemeCosts& items, double budget) {
  std::vector<std::size_t> chosen(items.size(), 0);
  double best = INFINITY;
  for (;;) {
    const bool possible = std::ranges::all_of(
        items, [&, i = std::size_t{0}](const auto& item) mutable { return item[chosen[i++]].has_value(); });
    if (possible) {
      const Sum sum = sum_of(items, chosen);
      if (sum.bits <= budget) best = std::min(best, sum.error);
    }
    std::size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == items[i].size()) chosen[i++] = 0;
    if (i == chosen.size()) return best;
  }
}

// Errors fall fourfold with each bit, as those of quantization do, more or less.
SchemeCosts random_items(std::mt19937& random, std::size_t count) {
  const auto uniform = [&] { return static_cast<double>(random() >> 8) / 16777216.0; };
  SchemeCosts items(count);
  for (auto& item : items) {
    const double size = 1000.0 * (1 + static_cast<double>(random() % 8)), level = std::exp2(6.0 * uniform());
    for (const double bits : {4.125, 4.25, 4.5, 6.25, 8.0, 8.25}) {
      item.push_back(SchemeCost{bits * size, size * level * std::exp2(-2.0 * bits + uniform())});
      if (random() % 12 == 0) item.back().reset();
    }
  }
  return items;
}

TEST(SchemeChoice, StaysInTheBudgetAndNearTheBest) {
  std::mt19937 random(1);
  double worst = 1.0, sum_of_ratios = 0.0;
  int chosen_rounds = 0;
  for (int round = 0; round < 150; ++round) {
    const SchemeCosts items = random_items(random, 5);
    double elements = 0.0;
    for (const auto& item : items) {
      const auto one = std::ranges::find_if(item, [](const auto& cost) { return cost.has_value(); });
      if (one != item.end()) elements += std::round((*one)->bits / 4.0 / 1000.0) * 1000.0;
    }
    const double budget = elements * (4.1 + 4.0 * static_cast<double>(round) / 150.0);
    const double best = best_error(items, budget);
    const auto chosen = choose_schemes(items, budget);
    EXPECT_EQ(chosen.has_value(), std::isfinite(best));
    if (!chosen) continue;
    const Sum sum = sum_of(items, *chosen);
    EXPECT_LE(sum.bits, budget);
    EXPECT_GE(sum.error, best * (1 - 1e-12));
    worst = std::max(worst, sum.error / best);
    sum_of_ratios += sum.error / best;
    ++chosen_rounds;
  }
  // Of five items, single ones weigh much; most choices are the best itself.
  EXPECT_GT(chosen_rounds, 100);
  EXPECT_LT(sum_of_ratios / chosen_rounds, 1.05);
  EXPECT_LT(worst, 2.0);
}

TEST(SchemeChoice, TiesAreBrokenByOrder) {
  const SchemeCosts items(3, {SchemeCost{4, 4}, SchemeCost{8, 1}, SchemeCost{8, 1}});
  EXPECT_EQ(choose_schemes(items, 16.0), (std::vector<std::size_t>{1, 0, 0}));
  EXPECT_EQ(choose_schemes(items, 24.0), (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_EQ(choose_schemes(items, 11.9), std::nullopt);
  EXPECT_EQ(choose_schemes({}, 0.0), std::vector<std::size_t>());
}

TEST(SchemeChoice, ExchangesWhatTheFirstStepsTook) {
  // Greedily the first item's step is taken, 5 per bit, and nothing is left for the second, which is better together.
  const SchemeCosts items = {{SchemeCost{4, 20}, SchemeCost{6, 10}}, {SchemeCost{4, 40}, SchemeCost{8, 22}}};
  EXPECT_EQ(choose_schemes(items, 12.0), (std::vector<std::size_t>{0, 1}));
}

TEST(SchemeChoice, SlowManyItemsAreChosenQuickly) {
  std::mt19937 random(2);
  const SchemeCosts items = random_items(random, 3000);
  double smallest = 0.0;
  for (const auto& item : items) {
    double least = INFINITY;
    for (const auto& cost : item) least = cost ? std::min(least, cost->bits) : least;
    smallest += std::isfinite(least) ? least : 0.0;
  }
  const auto chosen = choose_schemes(items, smallest * 1.2);
  ASSERT_TRUE(chosen);
  EXPECT_LE(sum_of(items, *chosen).bits, smallest * 1.2);
}

SchemeFit fit(double bits, double error, const std::string& problem = {}) {
  SchemeFit made{.scheme = "x", .bits = bits};
  made.noise_power = error;
  made.problem = problem;
  return made;
}

TEST(Budget, JoinedWeightsGetOneScheme) {
  std::vector<BudgetWeight> weights;
  for (const char* name : {"l.0.q_proj.weight", "l.0.o_proj.weight", "l.0.k_proj.weight", "l.0.v_proj.weight"}) {
    weights.push_back({name, 100, {fit(4, 1), fit(8, 0.1)}});
  }
  // 8 bits fit one weight alone; the three that are joined cost three times as much.
  EXPECT_EQ(choose_within_budget(weights, 5.0).value(), (std::vector<std::size_t>{0, 1, 0, 0}));
  EXPECT_EQ(choose_within_budget(weights, 7.0).value(), (std::vector<std::size_t>{1, 0, 1, 1}));
  EXPECT_EQ(choose_within_budget(weights, 8.0).value(), (std::vector<std::size_t>{1, 1, 1, 1}));
  const auto small = choose_within_budget(weights, 3.9);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message, "the smallest candidates need 4 bits on average, and the budget is 3.9");
  weights[1].candidates[1].problem = "rows that are no whole blocks";
  EXPECT_EQ(choose_within_budget(weights, 5.0).value(), (std::vector<std::size_t>{0, 0, 0, 0}));
  weights[1].candidates[0].problem = "the same";
  EXPECT_EQ(choose_within_budget(weights, 9.0).error().tensor, "l.0.o_proj.weight");
  EXPECT_TRUE(tensorcast::choose_within_budget({}, 1.0).value().empty());
}

TEST(Budget, ExpertsOfALayerGetOneScheme) {
  std::vector<BudgetWeight> weights;
  for (const char* name :
       {"l.0.mlp.experts.0.up_proj.weight", "l.0.mlp.experts.1.down_proj.weight", "l.1.mlp.experts.0.down_proj.weight",
        "l.0.mlp.shared_experts.down_proj.weight", "l.2.mlp.experts.gate_up_proj", "l.2.mlp.experts.down_proj"}) {
    weights.push_back({name, 100, {fit(4, 1), fit(8, 0.1)}});
  }
  EXPECT_EQ(choose_within_budget(weights, 6.0).value(), (std::vector<std::size_t>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(choose_within_budget(weights, 7.0).value(), (std::vector<std::size_t>{1, 1, 1, 1, 0, 0}));
  weights[0].candidates[1].problem = "no whole blocks";
  EXPECT_EQ(choose_within_budget(weights, 8.0).value(), (std::vector<std::size_t>{0, 0, 1, 1, 1, 1}));
  weights[1].candidates[0].problem = "another";
  EXPECT_EQ(choose_within_budget(weights, 8.0).error().message, "no candidate can be used for it: no whole blocks");
}

}  // namespace
}  // namespace tensorcast::file_conversion
