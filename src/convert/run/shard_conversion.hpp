// SPDX-License-Identifier: Apache-2.0
// Converts the tensors of one output: a file of any format, or a shard of a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/tensor_note.hpp"
#include "formats/format.hpp"
#include "io/sha256.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/rewrite/respelled_reader.hpp"

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
  // `tensors` are in the order of the output's data. What is read as it is has its source in `stored`; the sources of
  // the others are set here: those of layers, which `load` makes by Decoded::layer and Rewritten::layer, of tensors of
  // `stored`. It is called again while these are read; of a layer that is decoded, `becomes` may be null. `run`, the
  // tensors and `stored` outlive this. Errors: those of `load`.
  [[nodiscard]] static Result<ShardConversion> create(const ConversionRun& run, std::span<PlannedTensor* const> tensors,
                                                      formats::Reader& stored, quantized::LoadLayer load);

  // Converts all tensors, and verifies them if the settings say so. Returns false when cancelled. Errors: those of
  // `output`, of reading, casting and verifying.
  [[nodiscard]] Result<bool> run(ShardOutput& output);

  [[nodiscard]] TensorNotes take_notes() noexcept { return std::move(notes_); }

 private:
  ShardConversion(const ConversionRun& run, std::span<PlannedTensor* const> tensors, formats::Reader& stored)
      : run_(&run), tensors_(tensors.begin(), tensors.end()), source_(&stored) {}
  [[nodiscard]] Result<void> read_decoded(std::span<PlannedTensor* const> tensors, const quantized::LoadLayer& load);
  void read_rewritten(std::span<PlannedTensor* const> tensors, quantized::LoadLayer load);
  [[nodiscard]] Result<bool> write(formats::Writer& writer, ProgressMeter& progress, io::Sha256* hash);
  [[nodiscard]] Result<void> note_losses();
  [[nodiscard]] std::uint64_t work_bytes() const noexcept;

  const ConversionRun* run_;
  std::vector<const PlannedTensor*> tensors_;
  formats::Reader* source_;  // the last of the readers, each of which has the tensors of the one before, too
  std::unique_ptr<quantized::DecodedReader> decoded_;      // null: no layer is decoded
  std::unique_ptr<quantized::RespelledReader> respelled_;  // null: none gets another spelling or scheme
  TensorNotes notes_;
};

}  // namespace tensorcast::file_conversion
