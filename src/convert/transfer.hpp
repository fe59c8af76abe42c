// Copies all tensors of a plan from a reader to a writer, with conversion.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/damage.hpp"
#include "convert/plan.hpp"
#include "convert/progress_meter.hpp"

namespace tensorcast::conversion {

struct TransferOutcome {
  // One report for each tensor of the plan; empty unless requested.
  std::vector<std::optional<CastReport>> reports;
  std::vector<std::optional<Damage>> damages;
  bool cancelled = false;
};

// This thread reads and converts, another one writes. Memory: a few blocks, or a few strings if they are larger.
// Errors: those of reader, writer and cast, with Error::tensor; io and parse errors with Error::file.
[[nodiscard]] Result<TransferOutcome> transfer(const ConvertRequest& request, const Plan& plan, formats::Reader& reader,
                                               formats::Writer& writer, ProgressMeter& progress);

}  // namespace tensorcast::conversion
