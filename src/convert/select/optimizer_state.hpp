// SPDX-License-Identifier: Apache-2.0
// Finds the state of an optimizer in a training checkpoint.
#pragma once

#include <span>
#include <vector>

#include "formats/format.hpp"

namespace tensorcast::file_conversion {

// Reports whether a tensor is an optimizer's: its name has a part named "optimizer" (also "optimizer_state_dict" and
// the like) or "optim", it is a moment such as "exp_avg" or "exp_avg_sq", or one number named "step".
[[nodiscard]] bool is_optimizer_state(const formats::TensorInfo& tensor);

}  // namespace tensorcast::file_conversion
