// How far two tensors are apart, as cells of a table and as JSON.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "report_json.hpp"
#include "tensorcast/checkpoint.hpp"
#include "text_table.hpp"

namespace tcast {

// Infinities and NaN that only one of two tensors has.
struct Specials {
  std::uint64_t infinities_made = 0, infinities_lost = 0;
  std::uint64_t nan_made = 0, nan_lost = 0;
};
// "90 Inf made, 1 NaN lost"; "" if there are none.
[[nodiscard]] std::string specials_text(const Specials& specials);

// Columns of a list of tensors, which are called `kind`: name, change, and those of difference_cells().
[[nodiscard]] std::vector<Column> difference_columns(const std::string& kind);
// `tensor` was compared.
[[nodiscard]] std::vector<std::string> difference_cells(const tensorcast::TensorDifference& tensor);
// Orders compared tensors: those with more infinities and NaN made or lost first, then the worst SNR.
[[nodiscard]] bool is_worse(const tensorcast::TensorDifference& x, const tensorcast::TensorDifference& y);
// Adds the same numbers to `entry`. `tensor` was compared.
void add_difference(Json& entry, const tensorcast::TensorDifference& tensor);

}  // namespace tcast
