// SPDX-License-Identifier: Apache-2.0
// Converts the tensors of one output: a file of any format, or a shard of a checkpoint.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "convert/run/conversion_source.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/tensor_note.hpp"
#include "formats/format.hpp"
#include "io/sha256.hpp"

namespace tensorcast::file_conversion {

// Where an output goes: complete, or nowhere. ShardConversion::run() calls these in their order.
class ShardOutput {
 public:
  virtual ~ShardOutput() = default;

  // Creates the output, with all that comes before its data.
  [[nodiscard]] virtual Result<formats::Writer*> begin(ProgressMeter& progress) = 0;
  // What the data is hashed with; null: it is not.
  [[nodiscard]] virtual io::Sha256* hash() noexcept { return nullptr; }
  // Opens what was written, to verify it.
  [[nodiscard]] virtual Result<formats::Reader*> read_back() = 0;
  [[nodiscard]] virtual Result<void> commit(ProgressMeter& progress) = 0;

  // Say where an error of reading the input, or of writing the output, happened.
  [[nodiscard]] virtual Error at_source(Error error) const = 0;
  [[nodiscard]] virtual Error at_output(Error error) const = 0;
};

class ShardConversion {
 public:
  // `tensors` are in the order of the output's data, and those of `source`. `run` and the tensors outlive this.
  ShardConversion(const ConversionRun& run, std::span<PlannedTensor* const> tensors, ConversionSource source);

  // Converts all tensors, and verifies them if the settings say so. Returns false when cancelled. Errors: those of
  // `output`, of reading, casting and verifying.
  [[nodiscard]] Result<bool> run(ShardOutput& output);

  [[nodiscard]] TensorNotes take_notes() noexcept { return std::move(notes_); }

 private:
  [[nodiscard]] Result<bool> write(formats::Writer& writer, ProgressMeter& progress, io::Sha256* hash);
  [[nodiscard]] Result<void> note_losses();
  [[nodiscard]] std::uint64_t work_bytes() const noexcept;

  const ConversionRun* run_;
  std::vector<const PlannedTensor*> tensors_;
  ConversionSource source_;
  TensorNotes notes_;
};

}  // namespace tensorcast::file_conversion
