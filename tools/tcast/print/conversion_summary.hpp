// SPDX-License-Identifier: Apache-2.0
// Prints the result of a conversion, as text and as JSON.
#pragma once

#include <string>

#include "print/report_json.hpp"
#include "tensorcast/file.hpp"

namespace tcast {

// Returns what a tensor was: its type, or the spelling and scheme that were decoded.
[[nodiscard]] std::string from_text(const tensorcast::TensorOutcome& tensor);
[[nodiscard]] bool is_copied(const tensorcast::TensorOutcome& tensor);

// The tensor's name, with the folder of its component in diffusers' checkpoints: "unet/conv_in.weight".
[[nodiscard]] std::string qualified_name(const tensorcast::TensorOutcome& tensor);

// Returns the plan: each tensor's target type and the reason.
[[nodiscard]] std::string plan_table(const tensorcast::ConvertOutcome& outcome);

// "14 weights are read twice, as one scale is for a whole tensor\n"; "" if no weight is.
[[nodiscard]] std::string passes_text(const tensorcast::ConvertOutcome& outcome);

// "148 tensors: 145 converted to bfloat16, 3 copied"
[[nodiscard]] std::string tensor_counts(const tensorcast::ConvertOutcome& outcome);

// The average size of the weights whose schemes were chosen within a budget, and that of all tensors; "" if there are
// none.
[[nodiscard]] std::string bits_text(const tensorcast::ConvertOutcome& outcome);

// Returns the totals of each pair of types, then the tensors with the largest losses. Precondition: outcomes have
// reports.
[[nodiscard]] std::string loss_summary(const tensorcast::ConvertOutcome& outcome);

// Returns the whole outcome, for --report and --json. `seconds` is the wall time.
[[nodiscard]] Json outcome_json(const tensorcast::ConvertRequest& request, const tensorcast::ConvertOutcome& outcome,
                                double seconds);

}  // namespace tcast
