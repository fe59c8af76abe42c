// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/convert.hpp"
#include "kernels/per_target/functions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

static constexpr RowTable<DType::int64, DType::uint64, DType::int32, DType::uint32, DType::int16, DType::uint16> table;
static constexpr KernelRows rows = table.rows;

KernelRows integer_source_rows() noexcept { return rows; }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
