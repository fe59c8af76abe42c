#include "cast/streaming.hpp"

#include "dtype/dtype_table.hpp"

namespace tensorcast {
namespace {

// Measured over all pairs on 64 MiB, both in pages of 4 KiB, as malloc gives them, and in huge ones, as NumPy asks for.
// In huge pages the hardware's prefetching reads a third faster, if the loop does not stop for long, and memcpy with
// it.

// Whether the loop outruns the hardware's prefetching, as hardly more is done than to load and store in registers as
// long as a cache line.
bool outruns_prefetching(Target target, DType from, DType to) {
  const bool has_long_registers = target == Target::avx512 || target == Target::avx512vbmi;
  const int from_bits = bit_width(from), to_bits = bit_width(to);
  if (!has_long_registers) return false;
  if (from_bits == to_bits) return from_bits == 32;
  if (from_bits < to_bits) return from_bits >= 8 && to_bits <= 32;
  if (from_bits < 32) return false;
  if (from == DType::float32) return to_bits <= 8 && family(to) != Family::floating;
  if (from == DType::float64 && to_bits < 8) return false;
  if (to == DType::boolean) return from_bits == 32;
  if (to == DType::float16) return family(from) == Family::integer && from_bits == 64;
  return to == DType::float32 || family(to) == Family::integer;
}

}  // namespace

Streaming streaming_of(Target target, DType from, DType to, bool is_light) {
  const bool quarters = 4 * bit_width(to) <= bit_width(from);
  if (is_light && outruns_prefetching(target, from, to)) {
    // 1. Prefetching ends with each small page: 0.7 to 0.8 of the time where the source is asked for. Loops that
    //    compute, or have shorter registers, lose by it: 1.05 to 1.3.
    // 2. Where little is written, what matters is that reading never stops: without the buffer 0.9 of that time in huge
    //    pages, though 1.2 of it in small ones, which is still less than memcpy takes there.
    // 3. What becomes wider reads little at a time: four pieces ahead. With larger pieces and none ahead, unaligned
    //    memory costs a tenth to a quarter more.
    const bool widens = bit_width(to) > bit_width(from);
    return {.around_caches = !quarters || bit_width(to) > 8,
            .piece_bytes = 2048,
            .pieces_ahead = widens ? std::size_t{4} : std::size_t{2}};
  }
  // 4. Larger pieces stop less often, and smaller ones leave more of the first-level cache to the source.
  return {.piece_bytes = quarters && bit_width(from) >= 32 ? std::size_t{8192} : std::size_t{4096}};
}

}  // namespace tensorcast
