// Copies all tensors of a plan from a reader to a writer, with conversion.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/damage.hpp"
#include "convert/plan.hpp"
#include "convert/progress_meter.hpp"

namespace tensorcast::convert {

struct TransferOutcome {
  // One report for each tensor of the plan; empty unless requested.
  std::vector<std::optional<CastReport>> reports;
  std::vector<std::optional<Damage>> damages;
  bool cancelled = false;
};

// This thread reads and converts, another one writes. Memory: a few blocks; a whole tensor for strings. Errors: those
// of reader, writer and cast, with Error::tensor; io and parse errors with Error::file.
[[nodiscard]] Result<TransferOutcome> transfer(const ConvertRequest& request, const Plan& plan, formats::Reader& reader,
                                               formats::Writer& writer, ProgressMeter& progress);

// Converts a tensor to strings, from strings or numbers.
[[nodiscard]] Result<StringBuffer> convert_to_strings(const CastOptions& options, const PlannedTensor& tensor,
                                                      formats::Reader& reader);
// Converts a tensor of strings to numbers; returns their storage.
[[nodiscard]] Result<std::vector<std::byte>> convert_from_strings(const CastOptions& options,
                                                                  const PlannedTensor& tensor, formats::Reader& reader);

}  // namespace tensorcast::convert
