// SPDX-License-Identifier: Apache-2.0
// Copies tensors from a reader to a writer, with conversion.
#pragma once

#include <span>

#include "convert/plan/file_plan.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/tensor_note.hpp"
#include "io/sha256.hpp"

namespace tensorcast::file_conversion {

// Writes the tensors in their order. This thread reads and converts, another one writes, a third one updates `hash`, if
// there is one, with the bytes that are appended; strings are not hashed. Adds to `notes` reports, if they are asked
// for, and damages. Returns false when cancelled. Memory: a few blocks, or a few strings if they are larger. Errors:
// those of reader, writer and cast, with Error::tensor; io and parse errors with Error::file.
[[nodiscard]] Result<bool> transfer(const ConversionRun& run, std::span<const PlannedTensor* const> tensors,
                                    formats::Reader& reader, formats::Writer& writer, ProgressMeter& progress,
                                    TensorNotes& notes, io::Sha256* hash = nullptr);

}  // namespace tensorcast::file_conversion
