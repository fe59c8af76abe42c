// Whole buffers of text: the same results as cast_text() and append_text(), many times faster.
#pragma once

#include <cstddef>

#include "codec/policy.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::codec {

// Strings to `count` elements of a numeric or bool type; src has count + 1 ascending offsets within its data.
// Errors: parse, out_of_range, with the element.
[[nodiscard]] Result<void> parse_strings(const StringView& src, DType to, std::byte* dst, std::size_t count,
                                         const Policy& policy);

// `count` elements of a numeric or bool type to strings. Errors: internal, when memory runs out.
[[nodiscard]] Result<StringBuffer> print_strings(const std::byte* src, DType from, std::size_t count,
                                                 const Policy& policy);

}  // namespace tensorcast::codec
