#include "cast/tuning.hpp"
// SPDX-License-Identifier: Apache-2.0
#include "dtype/dtype_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

bool has_wide_registers(Target target) { return kernels::ops_of(target).register_bytes >= 64; }

// NEON and portable code store lines as any others.
bool has_bypassing_stores(Target target) { return kernels::ops_of(target).register_bytes >= 32; }

bool bypass_always_gains() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512f") != 0;
#else
  return false;
#endif
}

const bool has_fast_bypass = bypass_always_gains();

// Reports whether the loop is so short that the CPU's own prefetching, which stops at the end of a page, falls behind.
// Narrow registers look up a byte in many instructions.
bool outruns_prefetching(Target target, DType from, DType to) {
  const bool is_wide = has_wide_registers(target);
  const int from_bits = bit_width(from), to_bits = bit_width(to);
  if (from_bits <= to_bits) return from_bits >= (is_wide ? 8 : 16) && to_bits >= 16;
  return is_wide && from_bits >= 32 && (to == DType::float32 || family(to) != Family::floating);
}

// Reports whether each code is looked up in so many instructions that pieces wait for them, not for memory.
bool looks_up_slowly(Target target, DType from, DType to) {
  return !has_wide_registers(target) && bit_width(from) == bit_width(to) && bit_width(to) <= 8 &&
         family(to) == Family::floating;
}

}  // namespace

bool stores_bypass_cache(Target target, DType from, DType to, std::size_t count, Pages pages) noexcept {
  const std::size_t read = storage_bytes(from, count), written = storage_bytes(to, count);
  if (read + written < bypass_cache_min_bytes || pages == Pages::new_small || !has_bypassing_stores(target))
    return false;
  if (has_fast_bypass) return true;
  return pages == Pages::there && read <= written && !looks_up_slowly(target, from, to);
}

PieceTuning converted_pieces(Target target, DType from, DType to, bool is_memory_bound) {
  const bool writes_little = bit_width(from) >= 4 * bit_width(to);
  if (is_memory_bound && outruns_prefetching(target, from, to)) {
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
