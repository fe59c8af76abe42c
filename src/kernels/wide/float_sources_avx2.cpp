#include "kernels/rows.hpp"
#include "kernels/wide/convert.hpp"

namespace tensorcast::kernels::avx2 {

static constexpr RowTable<DType::float64, DType::float32, DType::float16, DType::bfloat16> table;
static constexpr KernelRows rows = table.rows;

KernelRows float_source_rows() noexcept { return rows; }

}  // namespace tensorcast::kernels::avx2
