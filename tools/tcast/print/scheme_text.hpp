// SPDX-License-Identifier: Apache-2.0
// Candidates of `tcast inspect --stats`: types and schemes, and how tensors fare as them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "flags/options.hpp"
#include "print/inspected.hpp"
#include "print/report_json.hpp"

namespace tcast {

// Types and schemes, as --candidates names them; "schemes" are default_scheme_candidates().
struct Candidates {
  std::vector<tensorcast::DType> types = {};
  std::vector<tensorcast::SchemeCandidate> schemes = {};
};
CLI::Option* add_candidates(CLI::App& app, Candidates& candidates);

// Returns a table of tensors by schemes, "" if there are none.
[[nodiscard]] std::string schemes_table(std::span<const Inspected> tensors);

// All candidates of a tensor: schemes, then types, whose recipe is null. `rank` 1 has the best ratio of signal to
// noise; of equal ones, the one of fewer bits, then the first.
[[nodiscard]] Json candidates_json(const tensorcast::TensorStats& stats);

// One HTML page, which needs no network: layers by candidates, with a histogram of each tensor.
[[nodiscard]] std::string candidates_page(const std::string& title, std::span<const Inspected> tensors);

}  // namespace tcast
