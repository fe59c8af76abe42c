// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "formats/array_part.hpp"
#include "formats/format.hpp"
#include "tensorcast/cast_options.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast::file_conversion {

// Reads a part of a tensor that has a DType, or of the rows of bytes of one that has none, as `out`'s type. `out` has
// the part's elements. Random bits, and the elements that errors name, are those of the whole tensor.
// Memory: 1 MiB. Errors: those of the reader and of cast(); invalid_argument: strings.
[[nodiscard]] Result<void> read_part(formats::Reader& reader, std::size_t index, const formats::ArrayPart& part,
                                     const MutableTensorView& out, const CastOptions& options,
                                     const Execution& execution);

// The same of `count` elements of a weight that `reader` decodes, from `first` on. The bytes of `out` need not be
// aligned.
[[nodiscard]] Result<void> read_decoded(formats::Reader& reader, std::size_t index, std::uint64_t first,
                                        std::uint64_t count, const MutableTensorView& out, const CastOptions& options,
                                        const Execution& execution);

// Sets the bits behind `count` elements in their last byte to zero, as casts do.
void clear_rest(const MutableTensorView& out, std::uint64_t count) noexcept;

}  // namespace tensorcast::file_conversion
