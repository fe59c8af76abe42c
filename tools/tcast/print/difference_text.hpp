// SPDX-License-Identifier: Apache-2.0
// How far two tensors are apart, as cells of a table and as JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "print/report_json.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tcast {

// Infinities and NaN that only one of two tensors has.
struct Specials {
  std::uint64_t infinities_made = 0, infinities_lost = 0;
  std::uint64_t nan_made = 0, nan_lost = 0;
};
// "90 Inf made, 1 NaN lost"; "" if there are none.
[[nodiscard]] std::string specials_text(const Specials& specials);

// A table of tensors that differ, which are called `kind`, and how many more there are: without `all` it has the
// first 20. `unknown`: what stands for a type that no cast knows.
[[nodiscard]] std::string differences_table(const std::string& kind,
                                            std::span<const tensorcast::TensorDifference* const> tensors, bool all,
                                            std::string_view unknown);

// Orders compared tensors: those with more infinities and NaN made or lost first, then the worst SNR.
[[nodiscard]] bool is_worse(const tensorcast::TensorDifference& x, const tensorcast::TensorDifference& y);
// Adds the same numbers to `entry`. `tensor` was compared.
void add_difference(Json& entry, const tensorcast::TensorDifference& tensor);

}  // namespace tcast
