// SPDX-License-Identifier: Apache-2.0
// The outcome of converting one code, by the reference.
#pragma once

#include <cstdint>

#include "codec/policy.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::report {

struct CodeOutcome {
  std::uint32_t events = 0;  // of codec::Event
  bool is_finite = false;    // before and after; otherwise there are no errors
  double source = 0.0;       // absolute value
  double error = 0.0;
  double relative_error = 0.0;  // 0 if the source is
};

// `random`: the element's word, of stochastic rounding.
[[nodiscard]] CodeOutcome code_outcome(DType from, std::uint64_t code, DType to, const codec::Policy& policy,
                                       std::uint32_t random = 0);

// Adds the counts and the maxima of `times` elements.
void add_counts(const CodeOutcome& outcome, std::uint64_t times, CastReport& report);
// Adds the counts, the maxima and the sums of `times` elements.
void add_outcome(const CodeOutcome& outcome, std::uint64_t times, CastReport& report);

}  // namespace tensorcast::report
