// SPDX-License-Identifier: Apache-2.0
// Copies tensors from a reader to a writer, with conversion.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "convert/run/progress_meter.hpp"
#include "io/sha256.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/rewrite/damage.hpp"

namespace tensorcast::file_conversion {

struct TransferOutcome {
  // One for each tensor; reports are empty unless requested.
  std::vector<std::optional<CastReport>> reports;
  std::vector<std::optional<Damage>> damages;
  bool cancelled = false;

  // Moves what happened to a tensor to its outcome.
  void move_to(TensorOutcome& tensor, std::size_t index);
};

// Lets a layer be read in its target's type, if the reader knows it. `layer`: its place among those of the reader.
void add_rounded_source(PlannedTensor& tensor, std::size_t layer, quantized::DecodedReader& reader);

// Writes the tensors in their order. This thread reads and converts, another one writes, a third one updates `hash`, if
// there is one, with the bytes that are appended; strings are not hashed. Memory: a few blocks, or a few strings if
// they are larger. Errors: those of reader, writer and cast, with Error::tensor; io and parse errors with Error::file.
[[nodiscard]] Result<TransferOutcome> transfer(const ConversionRun& run, std::span<const PlannedTensor* const> tensors,
                                               formats::Reader& reader, formats::Writer& writer,
                                               ProgressMeter& progress, io::Sha256* hash = nullptr);

}  // namespace tensorcast::file_conversion
