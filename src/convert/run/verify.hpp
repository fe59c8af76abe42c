// SPDX-License-Identifier: Apache-2.0
// Reads a finished output back and compares it with what it should hold.
#pragma once

#include <span>

#include "convert/plan/file_plan.hpp"
#include "convert/run/progress_meter.hpp"

namespace tensorcast::file_conversion {

// The most elements compared with the reference; larger files are sampled evenly.
inline constexpr std::uint64_t max_reference_elements = std::uint64_t{64} << 20;

// `tensors` are those of the output, in its order. What is compared, tensor by tensor: names, types and shapes; copied
// tensors byte for byte with the input; converted ones byte for byte with a second conversion of the input, and with
// codec::reference_cast: every element up to max_reference_elements in the file, beyond that every n-th run of 4096
// elements. Returns false when cancelled. Errors: internal, naming tensor and element that differ; io, parse.
[[nodiscard]] Result<bool> verify(const ConversionRun& run, std::span<const PlannedTensor* const> tensors,
                                  formats::Reader& input, formats::Reader& output, ProgressMeter& progress);

}  // namespace tensorcast::file_conversion
