// SPDX-License-Identifier: Apache-2.0
// Component core. Casts between any two types, exactly as ONNX Cast 1 to 28 define it (docs/semantics.md).
#pragma once

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/string_buffer.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Converts every element of `src` to `dst.dtype` with a single rounding.
//
// Sizes    shapes must be equal; each `bytes` must hold exactly storage_bytes(dtype, count).
// Overlap  `src` and `dst` are disjoint, or start at the same address with dst not wider than src.
// Loss     as `options` say; tail bits of sub-byte targets are written as zero.
// Errors   invalid_argument, unsupported (type or attribute newer than options.opset),
//          out_of_range (only when options demand it; names the element; dst is then unspecified).
// Cost     O(count), no allocation when execution.threads == 1; threads only for large tensors.
[[nodiscard]] TENSORCAST_API Result<void> cast(const TensorView& src, const MutableTensorView& dst,
                                               const CastOptions& options = {}, const Execution& execution = {});

// Converts as cast() above and adds what happened to the numbers to `report`, unless there is an error.
// Cost: each piece is compared with its source while it is in the cache; allocates.
[[nodiscard]] TENSORCAST_API Result<void> cast(const TensorView& src, const MutableTensorView& dst,
                                               const CastOptions& options, CastReport& report,
                                               const Execution& execution = {});

// Reads every string as a number (D8 of docs/semantics.md) and rounds it once to `dst.dtype`.
//
// Sizes    dst.shape has as many elements as `src` has strings; dst.bytes as in cast(). `src` and `dst` are disjoint.
// Errors   parse (names the element that is not a number); otherwise as cast(). After an error `dst` is unspecified.
// Cost     O(bytes of text), one thread.
[[nodiscard]] TENSORCAST_API Result<void> cast_from_strings(const StringView& src, const MutableTensorView& dst,
                                                            const CastOptions& options = {});

// Prints every number as options.float_string says (D9 of docs/semantics.md).
// Errors: invalid_argument (also if options.scale is not 1), unsupported. Cost: O(count), one thread; allocates the
// result.
[[nodiscard]] TENSORCAST_API Result<StringBuffer> cast_to_strings(const TensorView& src,
                                                                  const CastOptions& options = {});

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
