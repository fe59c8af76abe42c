// Chooses the schemes of weights within QuantizeTargets::budget.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <span>

#include "convert/quantized/quantizing_plan.hpp"
#include "formats/format.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {

// Chooses a scheme for each weight that has none; the others count with theirs. Reads the weights, twice, and measures
// what each candidate would make of them, in the spelling of the request, which is not empty. Calls `run.on_progress`.
// Errors: as choose_within_budget(), naming a weight that no candidate is for; invalid_argument (candidates and options
// that do not exist), cancelled, those of reading.
[[nodiscard]] Result<void> choose_within_budget(std::span<quantized::ChosenWeight> weights,
                                                const quantized::FoundLayers& found, formats::Reader& reader,
                                                const quantized::QuantizeRequest& request, const ConversionRun& run);

}  // namespace tensorcast::file_conversion
