// SPDX-License-Identifier: Apache-2.0
#include "cast/tuning.hpp"

#include "dtype/dtype_table.hpp"
#include "kernels/loop_prefetching.hpp"
#include "kernels/ops.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

bool has_wide_registers(Target target) { return kernels::ops_of(target).register_bytes >= 64; }

// NEON and portable code store lines as any others.
bool has_bypassing_stores(Target target) { return kernels::ops_of(target).register_bytes >= 32; }

#if defined(__x86_64__)
const bool is_amd = __builtin_cpu_is("amd") != 0;
const bool bypass_always_gains = is_amd && __builtin_cpu_supports("avx512f") != 0;
#else
constexpr bool is_amd = false, bypass_always_gains = false;
#endif

bool loop_prefetches(Target target, DType from, DType to) {
  return kernels::ops_of(target).register_bytes == 32 && kernels::loop_prefetches(from, to);
}

// Reports whether the loop is so short that the CPU's own prefetching, which stops at the end of a page, falls behind.
// With narrow registers, most loops prefetch themselves.
bool outruns_prefetching(Target target, DType from, DType to) {
  const bool is_wide = has_wide_registers(target);
  const int from_bits = bit_width(from), to_bits = bit_width(to);
  if (!is_wide) return from_bits >= 16 && to_bits > from_bits;
  if (from_bits <= to_bits) return from_bits >= 8 && to_bits >= 16;
  return from_bits >= 32 && (to == DType::float32 || family(to) != Family::floating);
}

// Reports whether each code is looked up in so many instructions that pieces wait for them, not for memory.
bool looks_up_slowly(Target target, DType from, DType to) {
  return !has_wide_registers(target) && bit_width(from) == bit_width(to) && bit_width(to) <= 8 &&
         (family(to) != Family::integer || family(from) == Family::floating);
}

}  // namespace

bool stores_bypass_cache(Target target, DType from, DType to, std::size_t count, Pages pages,
                         bool is_memory_bound) noexcept {
  const std::size_t read = storage_bytes(from, count), written = storage_bytes(to, count);
  if (read + written < bypass_cache_min_bytes || pages == Pages::new_small || !has_bypassing_stores(target))
    return false;
  if (bypass_always_gains) return true;
  if (pages != Pages::there) return false;
  if (read <= written) return !looks_up_slowly(target, from, to);
  const bool encodes_little = bit_width(to) > 8 || (bit_width(to) == 8 && family(to) != Family::floating);
  return is_amd && is_memory_bound && encodes_little && loop_prefetches(target, from, to);
}

bool stores_bypass_buffer(Target target) noexcept { return has_wide_registers(target) && !is_amd; }

PieceTuning converted_pieces(Target target, DType from, DType to, bool is_memory_bound) {
  const bool writes_little = bit_width(from) >= 4 * bit_width(to);
  if (is_memory_bound && outruns_prefetching(target, from, to)) {
    // If little is written, reading must never stop: without the buffer 0.6 to 0.9 of the time.
    if (writes_little && bit_width(to) <= 8) return {.bytes = 0};
    return {.bytes = 2048, .prefetch_pieces = bit_width(to) > bit_width(from) ? std::size_t{4} : std::size_t{2}};
  }
  if (is_memory_bound && bit_width(from) >= 16 && loop_prefetches(target, from, to)) return {.bytes = 2048};
  // Other loops: large pieces stop less often; small ones leave more of the first-level cache to the source.
  const bool is_long_source = bit_width(from) >= 32 && writes_little;
  return {.bytes = is_long_source ? largest_piece_bytes : largest_piece_bytes / 2};
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
