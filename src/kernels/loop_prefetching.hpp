// SPDX-License-Identifier: Apache-2.0
// Which loops prefetch their source themselves.
#pragma once

#include "dtype/dtype_table.hpp"

namespace tensorcast::kernels {

// Reports whether narrowing is hardly more than loads and stores.
constexpr bool narrows_by_one_step(DType from, DType to) {
  const DTypeRow &source = row(from), &target = row(to);
  if (source.bits < 32 || target.bits < 8 || target.bits >= source.bits) return false;
  if (target.family != Family::floating) return source.family == Family::integer;
  return to == DType::float32 ? from == DType::float64 : to == DType::float16 && source.bits == 32;
}

// Reports whether the loop prefetches its source with registers of 32 bytes. The CPU falls behind while it computes,
// and at each end of a page. The time from memory with prefetching, relative to that without (AVX2, Zen 3):
//   narrowing, from 16 bits or more       0.74 to 1.0; where that is one step 1.0 to 1.25, so not there
//   narrowing, from 8 bits or fewer       0.75 to 1.06
//   same width, 16 bits or more           0.6 to 1.0, against pieces that are prefetched as a whole
//   widening, from 8 bits or fewer        0.6 to 1.05
//   widening, from 16 bits or more        0.9 to 1.08, against such pieces, so not there
constexpr bool loop_prefetches(DType from, DType to) {
  if (row(from).bits >= 16 && row(to).bits > row(from).bits) return false;
  return !narrows_by_one_step(from, to);
}

}  // namespace tensorcast::kernels
