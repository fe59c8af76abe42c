// SPDX-License-Identifier: Apache-2.0
// What weights lost that were quantized, in the outcome of a conversion.
#pragma once

#include <span>

#include "convert/run/transfer.hpp"
#include "quantized/rewrite/respelled_reader.hpp"

namespace tensorcast::file_conversion {

// Reports whether a conversion measures what quantized weights lose.
[[nodiscard]] bool measures_losses(const ConversionSettings& settings) noexcept;

// Sets the reports and damages of weights that `reader` quantized. `tensors`: those of the transfer.
// Errors: out_of_range (a damaged weight, as judge() has it), which names the tensor.
[[nodiscard]] Result<void> add_quantized_losses(const ConversionSettings& settings,
                                                std::span<const PlannedTensor* const> tensors,
                                                quantized::RespelledReader& reader, TransferOutcome& outcome);

}  // namespace tensorcast::file_conversion
