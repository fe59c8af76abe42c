// SPDX-License-Identifier: Apache-2.0
// Reads what tensors are before they are cast: as they are stored, decoded, or in another spelling or scheme.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "convert/plan/file_plan.hpp"
#include "formats/format.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/rewrite/respelled_reader.hpp"

namespace tensorcast::file_conversion {

class ConversionSource {
 public:
  // What is read as it is has its PlannedTensor::source in `stored`; the sources of the others are set here: those of
  // layers, which `load` makes by Decoded::layer and Rewritten::layer, of tensors of `stored`. It is called again while
  // these are read; of a layer that is decoded, `becomes` may be null. `stored` outlives this. Errors: those of `load`.
  [[nodiscard]] static Result<ConversionSource> create(std::span<PlannedTensor* const> tensors, formats::Reader& stored,
                                                       quantized::LoadLayer load, const Execution& execution);

  // Has the tensors of `stored`, and others after them.
  [[nodiscard]] formats::Reader& reader() const noexcept { return *reader_; }

  // Measures what weights lose while they are quantized. To be called before they are read.
  void measure_losses();
  // What a tensor lost; nullopt: it is not the codes of a weight that was quantized, read whole and measured.
  [[nodiscard]] std::optional<quantized::QuantizedLoss> loss(const PlannedTensor& tensor);

 private:
  explicit ConversionSource(formats::Reader& stored) : reader_(&stored) {}
  [[nodiscard]] Result<void> read_decoded(std::span<PlannedTensor* const> tensors, const quantized::LoadLayer& load);
  void read_rewritten(std::span<PlannedTensor* const> tensors, quantized::LoadLayer load, const Execution& execution);

  formats::Reader* reader_;  // the last of the readers, each of which has the tensors of the one before, too
  std::unique_ptr<quantized::DecodedReader> decoded_;      // null: no layer is decoded
  std::unique_ptr<quantized::RespelledReader> respelled_;  // null: none gets another spelling or scheme
};

}  // namespace tensorcast::file_conversion
