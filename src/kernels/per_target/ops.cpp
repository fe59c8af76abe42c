#include "kernels/per_target/functions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

extern constexpr Ops ops = {
    .float_source_rows = float_source_rows,
    .integer_source_rows = integer_source_rows,
    .stream_copy = stream_copy,
    .stream_fence = stream_fence,
};

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
