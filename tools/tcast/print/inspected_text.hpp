// SPDX-License-Identifier: Apache-2.0
// The tables of `tcast inspect` that need no statistics.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "print/inspected.hpp"

namespace tcast {

// Returns the file's own name of a type that is not castable: such tensors can only be listed and copied.
[[nodiscard]] std::string_view shown_type(const tensorcast::TensorSummary& tensor);

[[nodiscard]] std::string tensors_table(const std::vector<Inspected>& tensors);
// One row for each type, in order of first appearance.
[[nodiscard]] std::string types_table(const std::vector<Inspected>& tensors);
// One row for each kind of layer, largest first.
[[nodiscard]] std::string kinds_table(const std::vector<Inspected>& tensors);
// The reasons why some tensors can only be listed.
[[nodiscard]] std::string problems_text(const std::vector<Inspected>& tensors);
// "safetensors: 3 of 6 tensors, 1.2 MB"
[[nodiscard]] std::string totals_line(const tensorcast::FileSummary& file, const std::vector<Inspected>& tensors);
[[nodiscard]] std::string metadata_table(const tensorcast::FileSummary& file);
// The start of a PyTorch checkpoint's data that are no tensors.
[[nodiscard]] std::string other_data_text(const std::string& other_data);

}  // namespace tcast
