// What a conversion did, for people and for programs.
#pragma once

#include <string>

#include "report_json.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// The plan: what each tensor becomes, and why.
[[nodiscard]] std::string plan_table(const tensorcast::ConvertOutcome& outcome);

// "148 tensors: 145 converted to bfloat16, 3 copied"
[[nodiscard]] std::string tensor_counts(const tensorcast::ConvertOutcome& outcome);

// Totals of each pair of types, then the tensors that lost most. Precondition: outcomes have reports.
[[nodiscard]] std::string loss_summary(const tensorcast::ConvertOutcome& outcome);

// Everything, for --report and --json. `seconds` is the wall time.
[[nodiscard]] Json outcome_json(const tensorcast::ConvertRequest& request, const tensorcast::ConvertOutcome& outcome,
                                double seconds);

}  // namespace tcast
