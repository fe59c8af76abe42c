// SPDX-License-Identifier: Apache-2.0
// A part of a tensor as callers in C give it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "c_api/c_call.hpp"
#include "dtype/try.hpp"
#include "formats/array_part.hpp"
#include "tensorcast/c_files.h"

namespace tensorcast::c_api {

// Errors: invalid_argument: null pointers; more ranges than `dimensions`, of which none is read.
[[nodiscard]] inline Result<std::vector<IndexRange>> callers_ranges(const uint64_t* begin, const uint64_t* end,
                                                                    size_t ranges, size_t dimensions) {
  TRY(formats::check_range_count(ranges, dimensions));
  if (ranges != 0 && (begin == nullptr || end == nullptr)) return invalid("the ranges are null");
  std::vector<IndexRange> slice;
  for (size_t i = 0; i < ranges; ++i) slice.push_back({begin[i], end[i]});
  return slice;
}

// The memory of a caller for a part's elements of a type. Errors: invalid_argument: too little, none.
[[nodiscard]] inline Result<MutableTensorView> callers_view(const formats::ArrayPart& part, DType dtype, void* dst,
                                                            size_t dst_bytes) {
  if (!is_castable(dtype)) return invalid("no type of numbers has this number");
  const size_t bytes = storage_bytes(dtype, part.count());
  if (dst == nullptr && bytes != 0) return invalid("the buffer is null");
  if (bytes > dst_bytes) {
    return invalid(formatted("{} elements of {} take {} bytes, and the buffer has {}", part.count(), name(dtype), bytes,
                             dst_bytes));
  }
  return MutableTensorView{dtype, part.shape(), {static_cast<std::byte*>(dst), bytes}};
}

}  // namespace tensorcast::c_api
