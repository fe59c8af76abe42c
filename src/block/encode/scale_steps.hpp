// SPDX-License-Identifier: Apache-2.0
// Rules of scales that kernels apply to many blocks at once.
#pragma once

#include <optional>

#include "block/recipe/scale_rule.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {

// The steps that give the scales of this rule for ordinary numbers; empty if it has none in this context.
[[nodiscard]] std::optional<kernels::ScaleSteps> steps_of(ScaleRule rule, const ScaleContext& context) noexcept;

// What numbers are multiplied with or divided by where the scale has this code: not of NaN, infinity and zero.
[[nodiscard]] float factor_of_code(const kernels::ScaleSteps& steps, std::uint8_t code) noexcept;

}  // namespace tensorcast::block
