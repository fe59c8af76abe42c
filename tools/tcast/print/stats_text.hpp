// SPDX-License-Identifier: Apache-2.0
// Prints the statistics of tensors, and their losses as other types.
#pragma once

#include <span>
#include <string>

#include "print/inspected.hpp"

namespace tcast {

// Tables, "" without tensors that have statistics.
[[nodiscard]] std::string stats_table(std::span<const Inspected> tensors);
[[nodiscard]] std::string candidates_table(std::span<const Inspected> tensors);

}  // namespace tcast
