// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "quantized/choose/scheme_choice.hpp"
#include "quantized/names/module_name.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// The sizes and errors of weights that get one candidate together.
std::vector<std::optional<file_conversion::SchemeCost>> costs_of(std::span<const BudgetWeight> weights,
                                                                 const std::vector<std::size_t>& members) {
  std::vector<std::optional<file_conversion::SchemeCost>> costs;
  for (std::size_t c = 0; c < weights[members[0]].candidates.size(); ++c) {
    std::optional<file_conversion::SchemeCost> cost = file_conversion::SchemeCost{};
    for (const std::size_t member : members) {
      const SchemeFit& fit = weights[member].candidates[c];
      if (!fit.problem.empty()) cost.reset();
      if (!cost) break;
      cost->bits += fit.bits * static_cast<double>(weights[member].count);
      cost->error += fit.noise_power;
    }
    costs.push_back(cost);
  }
  return costs;
}

// Weights that get one candidate together, and none that all of them can have: the first reason is told.
Error unusable(std::span<const BudgetWeight> weights, const std::vector<std::size_t>& members) {
  bool is_by_rules = false;
  for (const std::size_t member : members) {
    const BudgetWeight& weight = weights[member];
    for (std::size_t c = 0; c < weight.candidates.size(); ++c) {
      const bool is_ruled_out = c < weight.ruled_out.size() && weight.ruled_out[c];
      is_by_rules = is_by_rules || is_ruled_out;
      const std::string& problem = weight.candidates[c].problem;
      if (problem.empty() || is_ruled_out) continue;
      return of_tensor(weight.name, invalid("no candidate can be used for it: " + problem));
    }
  }
  return of_tensor(
      weights[members[0]].name,
      invalid(is_by_rules ? "rules name several schemes for weights that loaders join, such as q, k and v, or experts"
                          : "no candidate can be used for it and for weights that loaders join with it"));
}

Result<std::vector<std::size_t>> choose(std::span<const BudgetWeight> weights, double bits) {
  std::vector<std::vector<std::size_t>> groups;
  std::map<std::string, std::size_t> joined;
  double elements = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].candidates.size() != weights[0].candidates.size()) {
      return of_tensor(weights[i].name, invalid("it has another number of candidates than the first weight"));
    }
    elements += static_cast<double>(weights[i].count);
    const std::string whole = quantized::one_scheme_module(weights[i].name);
    if (whole.empty()) {
      groups.push_back({i});
    } else if (const auto [known, is_new] = joined.try_emplace(whole, groups.size()); is_new) {
      groups.push_back({i});
    } else {
      groups[known->second].push_back(i);
    }
  }
  file_conversion::SchemeCosts items;
  double smallest = 0.0;
  for (const std::vector<std::size_t>& members : groups) {
    items.push_back(costs_of(weights, members));
    double least = -1.0;
    for (const auto& cost : items.back()) {
      if (cost && (least < 0.0 || cost->bits < least)) least = cost->bits;
    }
    if (least < 0.0) return unusable(weights, members);
    smallest += least;
  }
  const auto chosen = file_conversion::choose_schemes(items, bits * elements);
  if (!chosen) {
    return invalid(fmt::format("the smallest candidates need {:.4g} bits on average, and the budget is {:.4g}",
                               smallest / std::max(elements, 1.0), bits));
  }
  std::vector<std::size_t> all(weights.size());
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::size_t member : groups[group]) all[member] = (*chosen)[group];
  }
  return all;
}

}  // namespace

Result<std::vector<std::size_t>> choose_within_budget(std::span<const BudgetWeight> weights, double bits) {
  return guarded([&]() -> Result<std::vector<std::size_t>> {
    if (weights.empty()) return std::vector<std::size_t>();
    return choose(weights, bits);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
