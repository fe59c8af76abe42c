// SPDX-License-Identifier: Apache-2.0
// The constants of the piece loop, each with the measurement that chose it.
//
// Measured over all pairs on 64 MiB, in pages of 4 KiB as malloc gives them and in huge pages as NumPy asks for. Times
// are relative to the same loop without the measure.
#pragma once

#include <cstddef>

#include "cast/pages.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Source and target together. From this size on the target does not stay in the cache, so stores may bypass it: a store
// that first loads the line it overwrites costs a third of the bandwidth.
inline constexpr std::size_t bypass_cache_min_bytes = std::size_t{32} << 20;

// Reports whether stores bypass the cache. The time of stores through the cache, relative to that of stores that bypass
// it, by bench/stores (docs/benchmarks/stores.md):
//                            EPYC (AVX-512)  EPYC (Zen 3)    Xeon (Sapphire Rapids)
//   new pages of 4 KiB       0.57 to 0.79    0.59 to 0.89    0.58 to 0.61
//   new huge pages           0.9 to 1.1      0.9 to 1.2      0.62 to 0.66
//   there, not narrowing     1.2 to 1.5      1.1 to 1.5      1.5 to 2.3
//   there, narrowing         1.1 to 1.3      0.8 to 1.0      0.7 to 0.9
//     loops that prefetch    not measured    1.0 to 1.2      not measured
//   there, float8 to float8  not measured    0.9             not measured
// So bypassing always gains on AMD's CPUs with AVX-512, and on its others if loops that narrow prefetch and do not
// encode float8. NEON and portable code have no such stores. `is_memory_bound`: as below.
[[nodiscard]] bool stores_bypass_cache(Target target, DType from, DType to, std::size_t count, Pages pages,
                                       bool is_memory_bound) noexcept;

// Reports whether stores of blocks that bypass the cache do so where numbers are made, not from a buffer in the cache.
// The time with it, by bench/blocks: Xeon (Emerald Rapids) 0.7 to 0.9. Others are not measured.
[[nodiscard]] bool stores_bypass_buffer(Target target) noexcept;

// Targets from this size on: whether their pages exist is worth asking.
inline constexpr std::size_t asked_pages_min_bytes = std::size_t{2} << 20;

// Source and target together. Below this, starting threads costs more than it gives.
inline constexpr std::size_t threads_min_bytes = std::size_t{1} << 20;

// Elements of a task, which is the unit of threads and of reports: sums are added task by task, in order, so that a
// report does not depend on the number of threads. A multiple of piece_granule.
inline constexpr std::size_t task_elements = std::size_t{1} << 18;

struct PieceTuning {
  std::size_t bytes = 0;            // of a piece, in the wider of both types; 0: all at once, straight to the target
  std::size_t prefetch_pieces = 0;  // how many pieces ahead the source is prefetched; 0: the CPU alone is faster
};

// The tuning of pieces that are converted and bypass the cache, not scanned. `is_memory_bound`: the conversion is
// hardly more than a load and a store. Its source is then prefetched, from the number of bits on from which loops are
// that short. The time with prefetching, relative to that without:
//   AVX2 (Zen 3), sources of 16 bits or more, widening          0.76 to 0.94
//   AVX-512 (EPYC), narrowing  32 or 64 bits                    0.7 to 0.8; loops that compute 1.05 to 1.3
// Not measured with AVX-512: 16 bits to 16 bits, and targets of 64 bits. Wider targets are prefetched four pieces
// ahead, as little is read at a time; otherwise unaligned memory takes 1.1 to 1.25. Most loops of AVX2 prefetch by
// themselves (kernels/loop_prefetching.hpp): pieces of 2 KiB then take 0.9 of the time of 4 KiB, from 16 bits on.
[[nodiscard]] PieceTuning converted_pieces(Target target, DType from, DType to, bool is_memory_bound);

// Pieces that are scanned, in the cache, after they are converted. With 8 KiB, memory waits for the scan; with less
// than 2 KiB, starting it costs more than it does.
inline constexpr PieceTuning scanned_pieces = {.bytes = 4096};

// Pieces whose kernel scans them meanwhile and that do not bypass the cache: a scan after that, of pieces with numbers
// that may fail, finds them in the second-level cache.
inline constexpr PieceTuning checked_pieces = {.bytes = std::size_t{1} << 16};

inline constexpr std::size_t largest_piece_bytes = 8192;

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
