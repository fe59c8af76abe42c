// SPDX-License-Identifier: Apache-2.0
// The options of a promotion, each described once.
#pragma once

#include "options/option.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/promote.hpp"

namespace tensorcast::options {

inline constexpr Words promote_rules = {"openvino", "numpy", "torch", "jax", "jax_strict", "tensorflow"};

// In the order in which interfaces list them. PromoteOptions has the defaults.
inline constexpr std::tuple promote_options{
    option("promote_unsafe", &PromoteOptions::promote_unsafe, &tc_promote_options::promote_unsafe,
           {.help = "allow promotions that can lose values or add bits (openvino, tensorflow)", .flag = "unsafe"}),
    option("pytorch_scalar_promotion", &PromoteOptions::pytorch_scalar_promotion,
           &tc_promote_options::pytorch_scalar_promotion,
           {.help = "between a scalar and a tensor of one family, the tensor's type wins (openvino)",
            .flag = "pytorch_scalar"}),
    option("u64_integer_promotion_target", &PromoteOptions::u64_integer_promotion_target,
           &tc_promote_options::u64_integer_promotion_target,
           {.help = "with promote_unsafe, what uint64 and a signed integer become (default float32; openvino)",
            .flag = "u64_target"}),
    option("rules", &PromoteOptions::rules, &tc_promote_options::rules,
           {.words = promote_rules, .help = "whose rules (default {})"}),
};

}  // namespace tensorcast::options
