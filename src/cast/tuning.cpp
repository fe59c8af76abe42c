#include "cast/tuning.hpp"
// SPDX-License-Identifier: Apache-2.0
#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

// Reports whether the loop is so short that the CPU's own prefetching, which stops at the end of a page, falls behind:
// it only loads and stores, in registers of a cache line.
bool needs_software_prefetch(Target target, DType from, DType to) {
  if (kernels::ops_of(target).register_bytes < 64) return false;
  const int from_bits = bit_width(from), to_bits = bit_width(to);
  if (from_bits == to_bits) return from_bits == 32;
  if (from_bits < to_bits) return from_bits >= 8 && to_bits <= 32;
  if (from_bits < 32) return false;
  if (from == DType::float32) return to_bits <= 8 && family(to) != Family::floating;
  if (from == DType::float64 && to_bits < 8) return false;
  if (to == DType::boolean) return from_bits == 32;
  if (to == DType::float16) return family(from) == Family::integer && from_bits == 64;
  return to == DType::float32 || family(to) == Family::integer;
}

bool is_intel() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel") != 0;
#else
  return false;
#endif
}

const bool has_slow_bypass = is_intel();

}  // namespace

bool stores_bypass_cache(std::size_t read_bytes, std::size_t written_bytes, Pages pages) noexcept {
  if (read_bytes + written_bytes < bypass_cache_min_bytes || pages == Pages::new_small) return false;
  return !has_slow_bypass || (pages == Pages::there && read_bytes < 2 * written_bytes);
}

PieceTuning converted_pieces(Target target, DType from, DType to, bool is_memory_bound) {
  // Short loops: 0.7 to 0.8 of the time with prefetching; loops that compute take 1.05 to 1.3. Conversions to
  // wider types read little at a time and prefetch four pieces ahead; otherwise unaligned memory takes 1.1 to 1.25.
  const bool writes_little = bit_width(from) >= 4 * bit_width(to);
  if (is_memory_bound && needs_software_prefetch(target, from, to)) {
    // If little is written, reading must never stop: without the buffer 0.6 to 0.9 of the time.
    if (writes_little && bit_width(to) <= 8) return {.bytes = 0};
    return {.bytes = 2048, .prefetch_pieces = bit_width(to) > bit_width(from) ? std::size_t{4} : std::size_t{2}};
  }
  // Other loops: large pieces stop less often; small ones leave more of the first-level cache to the source.
  const bool is_long_source = bit_width(from) >= 32 && writes_little;
  return {.bytes = is_long_source ? largest_piece_bytes : largest_piece_bytes / 2};
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
