// SPDX-License-Identifier: Apache-2.0
// The record in an output's metadata of the scale that its numbers were multiplied by.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "convert/plan/file_plan.hpp"
#include "formats/format.hpp"

namespace tensorcast::file_conversion {

inline constexpr std::string_view scale_key = "tensorcast.scale";

// Collects the scales of the tensors of one output file.
class ScaleRecorder {
 public:
  void add(const PlannedTensor& tensor);
  // Adds what was collected: JSON such as [{"scale": 255}], with the names of the tensors if others were copied.
  // Conversions before this one have their entries before it. Without a scale, nothing changes.
  void write(formats::Metadata& metadata) const;

 private:
  std::size_t count_ = 0;
  std::vector<std::pair<double, std::vector<std::string>>> names_;  // by scale, in the order of the tensors
};

}  // namespace tensorcast::file_conversion
