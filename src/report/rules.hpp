// SPDX-License-Identifier: Apache-2.0
// The range of a target type, as reports and strict casts need it.
#pragma once

#include "codec/policy.hpp"
#include "kernels/compare.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::report {

// The numbers that are out of the range of `to`: those whose rounded value would be, if `to` had more exponents or
// bits. float types of 16 bits and more have none, as large numbers become infinite.
[[nodiscard]] kernels::CompareRules rules_of(DType to, const codec::Policy& policy);

}  // namespace tensorcast::report
