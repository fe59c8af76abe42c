// SPDX-License-Identifier: Apache-2.0
#include "print/budget_plan.hpp"

#include <fmt/format.h>

#include <map>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "print/text_table.hpp"
#include "print/value_text.hpp"
#include "process/printable.hpp"
#include "tensorcast/budget.hpp"

namespace tcast {
namespace {

using tensorcast::SchemeFit;

// A regular expression that matches the name alone, in single quotes of YAML.
std::string exact_pattern(const std::string& name) {
  std::string pattern = "^";
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      pattern += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
      continue;
    }
    if (std::string_view("\\.+*?()[]{}|^$").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c == '\'' ? "''" : std::string(1, c);
  }
  return pattern + "$";
}

}  // namespace

tensorcast::Result<BudgetPlan> plan_budget(const std::vector<Inspected>& tensors, double budget) {
  BudgetPlan plan;
  plan.budget = budget;
  std::vector<tensorcast::BudgetWeight> weights;
  for (const Inspected& tensor : tensors) {
    const bool is_measured = tensor.stats && !tensor.stats->schemes.empty();
    if (!is_measured || !tensorcast::is_quantized_matrix(tensor.summary.name, tensor.summary.shape.size())) continue;
    weights.push_back({tensor.summary.name, tensor.stats->count, tensor.stats->schemes});
    plan.weights.push_back({&tensor, nullptr});
  }
  if (weights.empty()) return tensorcast::invalid("there are no matrices of layers to quantize");
  const std::vector<std::size_t> chosen = TRY(tensorcast::choose_within_budget(weights, budget));
  double bits = 0.0, elements = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const SchemeFit& fit = plan.weights[i].tensor->stats->schemes[chosen[i]];
    plan.weights[i].fit = &fit;
    plan.noise_power += fit.noise_power;
    bits += fit.bits * static_cast<double>(weights[i].count);
    elements += static_cast<double>(weights[i].count);
  }
  plan.bits = elements == 0.0 ? 0.0 : bits / elements;
  return plan;
}

std::string plan_text(const BudgetPlan& plan) {
  struct Total {
    std::uint64_t weights = 0, elements = 0;
    double noise = 0.0;
  };
  std::map<std::string, Total> totals;
  for (const PlannedWeight& weight : plan.weights) {
    Total& total = totals[weight.fit->scheme];
    ++total.weights;
    total.elements += weight.tensor->stats->count;
    total.noise += weight.fit->noise_power;
  }
  Table table({{"chosen"}, {"weights", Align::right}, {"elements", Align::right}, {"squared error", Align::right}});
  for (const auto& [scheme, total] : totals) {
    table.add_row({scheme, grouped(total.weights), grouped(total.elements), short_number(total.noise)});
  }
  return fmt::format("\n{}{:.4f} bits on average of {:.4g}, scales included\n", table.to_string(), plan.bits,
                     plan.budget);
}

void add_plan_json(Json& json, const BudgetPlan& plan) {
  std::map<std::string, Json> chosen;
  for (const PlannedWeight& weight : plan.weights) {
    chosen[weight.tensor->summary.name] = {{"scheme", weight.fit->scheme},
                                           {"recipe", weight.fit->recipe},
                                           {"bits", weight.fit->bits},
                                           {"snr_db", finite_or_null(weight.fit->snr_db())}};
  }
  for (Json& tensor : json["tensors"]) {
    const auto one = chosen.find(tensor["name"].get<std::string>());
    if (one != chosen.end()) tensor["chosen"] = one->second;
  }
  json["budget"] = {{"bits", plan.budget},
                    {"average_bits", plan.bits},
                    {"noise_power", finite_or_null(plan.noise_power)},
                    {"weights", plan.weights.size()}};
}

std::string plan_rules(const BudgetPlan& plan) {
  std::string text =
      fmt::format("# Within {:.4g} bits: {:.4f} on average, scales included.\nrules:\n", plan.budget, plan.bits);
  for (const PlannedWeight& weight : plan.weights) {
    const tensorcast::QuantizeRecipe* usual = tensorcast::find_quantize_recipe(weight.fit->scheme);
    const bool is_usual = usual != nullptr && usual->recipe == weight.fit->recipe;
    text += fmt::format("  - {{match: '{}', to: {}{}}}  # {}\n", exact_pattern(weight.tensor->summary.name),
                        weight.fit->scheme, is_usual ? "" : ", recipe: " + weight.fit->recipe,
                        decibel_text(weight.fit->snr_db()));
  }
  return text;
}

}  // namespace tcast
