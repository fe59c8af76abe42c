// SPDX-License-Identifier: Apache-2.0
// `tcast inspect --budget`: a scheme for each weight within an average size.
#pragma once

#include <string>
#include <vector>

#include "print/inspected.hpp"
#include "print/report_json.hpp"
#include "tensorcast/error.hpp"

namespace tcast {

struct PlannedWeight {
  const Inspected* tensor = nullptr;
  const tensorcast::SchemeFit* fit = nullptr;  // of the scheme that was chosen
};

struct BudgetPlan {
  double budget = 0.0;
  double bits = 0.0;         // on average, scales included
  double noise_power = 0.0;  // of all weights
  std::vector<PlannedWeight> weights;
};

// Chooses for the matrices that `convert --to SCHEME` quantizes. `tensors` outlive the result.
// Errors: as choose_within_budget(); invalid_argument: there are no such matrices.
[[nodiscard]] tensorcast::Result<BudgetPlan> plan_budget(const std::vector<Inspected>& tensors, double budget);

[[nodiscard]] std::string plan_text(const BudgetPlan& plan);
// Adds `budget`, and `chosen` to each of the tensors.
void add_plan_json(Json& json, const BudgetPlan& plan);
// A file for `tcast convert --rules`.
[[nodiscard]] std::string plan_rules(const BudgetPlan& plan);

}  // namespace tcast
