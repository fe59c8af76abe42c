#include "kernels/per_target/functions.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

extern constexpr Ops ops = {
    .register_bytes = kRegisterBytes,
    .float_source_rows = float_source_rows,
    .integer_source_rows = integer_source_rows,
    .byte_source_rows = byte_source_rows,
    .table_loops = table_loops,
    .stream_copy = stream_copy,
    .stream_fence = stream_fence,
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
