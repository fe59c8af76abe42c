// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/convert.hpp"
#include "kernels/per_target/functions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

static constexpr RowTable<DType::float64, DType::float32, DType::float16, DType::bfloat16> table;
static constexpr KernelRows rows = table.rows;

KernelRows float_source_rows() noexcept { return rows; }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
