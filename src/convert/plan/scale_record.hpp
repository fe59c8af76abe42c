// SPDX-License-Identifier: Apache-2.0
// The record in an output's metadata of the scale that its numbers were multiplied by.
#pragma once

#include <span>

#include "convert/plan/file_plan.hpp"
#include "formats/format.hpp"

namespace tensorcast::file_conversion {

inline constexpr std::string_view scale_key = "tensorcast.scale";

// Adds to `metadata` the scale of `tensors`, those of one output file: JSON such as [{"scale": 255}], with the names of
// the tensors if others were copied. Conversions before this one have their entries before it. Without a scale, nothing
// changes.
void record_scale(std::span<const PlannedTensor* const> tensors, formats::Metadata& metadata);

}  // namespace tensorcast::file_conversion
