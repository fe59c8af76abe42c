// Moves all tensors of a plan from a reader to a writer, converting on the way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/damage.hpp"
#include "convert/plan.hpp"
#include "convert/progress_meter.hpp"

namespace tensorcast::convert {

struct TransferOutcome {
  // One for each tensor of the plan; empty unless asked for.
  std::vector<std::optional<CastReport>> reports;
  std::vector<std::optional<Damage>> damages;
  bool cancelled = false;
};

// Reading and converting happen on this thread, writing on another. Memory: a few blocks; all of one tensor for
// strings. Errors: those of reader, writer and cast, with Error::tensor; io and parse errors with Error::file.
[[nodiscard]] Result<TransferOutcome> transfer(const ConvertRequest& request, const Plan& plan, formats::Reader& reader,
                                               formats::Writer& writer, ProgressMeter& progress);

// The strings of a tensor that has them before or after its conversion, converted to strings.
[[nodiscard]] Result<StringBuffer> convert_to_strings(const CastOptions& options, const PlannedTensor& tensor,
                                                      formats::Reader& reader);
// The bytes of a tensor that becomes numbers from strings.
[[nodiscard]] Result<std::vector<std::byte>> convert_from_strings(const CastOptions& options,
                                                                  const PlannedTensor& tensor, formats::Reader& reader);

}  // namespace tensorcast::convert
