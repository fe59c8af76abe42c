// SPDX-License-Identifier: Apache-2.0
// Chooses the schemes of weights within QuantizeTargets::budget.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "quantized/rewrite/quantizing_plan.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// Choices for models of a folder, which an interrupted conversion keeps, so that the next run measures nothing.
struct MadeChoice {
  struct Weight {
    std::string name, scheme, recipe, choice;  // as quantized::ChosenWeight
  };
  std::string basis;  // SHA-256 of all that decides it, the numbers themselves aside
  std::vector<Weight> weights = {};
};
struct BudgetMemory {
  std::string source;                  // the files of the model, and their versions
  std::vector<MadeChoice> known = {};  // of an earlier run
  std::vector<MadeChoice> made = {};
};

// Chooses a scheme for each weight that has none; the others count with theirs. Reads the weights, twice, and measures
// what each candidate would make of them, in the spelling of the request, which is not empty. Calls `run.on_progress`.
// Errors: as choose_within_budget(), naming a weight that no candidate is for; invalid_argument (candidates and options
// that do not exist), cancelled, those of reading. `memory`: null: none. A choice that it knows is taken, and no weight
// is read.
[[nodiscard]] Result<void> choose_within_budget(std::span<quantized::ChosenWeight> weights,
                                                const quantized::FoundLayers& found, formats::Reader& reader,
                                                const quantized::QuantizeRequest& request, const ConversionRun& run,
                                                BudgetMemory* memory = nullptr);

}  // namespace tensorcast::file_conversion
