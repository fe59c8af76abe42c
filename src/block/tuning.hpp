// SPDX-License-Identifier: Apache-2.0
// How much of a weight is worked on at a time, and which tables pay, from which sizes on. Results do not depend on
// these; bench/blocks measures them. The constants that are not of blocks are those of cast/tuning.hpp.
//
// Tables and ways of their own take lines that have to pay: below 1.1, one should go. The time without it over the time
// with it, AVX-512 with VBMI, one thread, bench/blocks --in-cache, bfloat16, the least of three to six runs in turns
// (AMD EPYC, Zen 4):
//
//   kernels::ScaleSteps        scales of many blocks at once     1.8 to 2.3 (MX), 2.7 (nvfp4)
//   kernels::StepTables        codes of four bits by steps       1.2 (mxfp4), 1.5 (nvfp4)
//   kernels::IntegerStepTables int4-group by steps               1.2; 1.0 where memory is slower
//   kernels::MantissaTable     float8 under one scale            2.0 (fp8-tensor), 1.6 (fp8-channel, fp8-block)
//   MantissaTables             those of 128 scales, made once    1.15 to 1.3 (fp8-channel, in memory)
//   kernels::Ahead             numbers that are read next        1.05 to 1.1 (float32); kept for memory
//   Float8Products             a table for each scale            1.7 (fp8-channel), 1.5 (fp8-block)
//   Float8Products, one scale  powers added to exponents         1.1 (mxfp8)
//   scale_runs_by_powers       the same of other codes           1.3 (mxfp6)
//   TransposedTile             codes, not numbers, change place  2.5 to 4.0 (gptq), 5.2 (awq)
//   TransposedExperts          the same of gpt-oss               3.3
//   find_decode_gguf           blocks of GGUF in one pass        1.1 to 1.7
#pragma once

#include <cstddef>

namespace tensorcast::block {

// --- Quantizing

// Numbers that are measured, then encoded: they and their codes stay in the L1 cache. Half of them if the kernels read
// float32.
inline constexpr std::size_t piece_numbers = 4096;
// Columns processed at once if rows share scales: 128 rows of them, and the 128 that are prefetched, fit into the L2
// cache.
inline constexpr std::size_t band_columns = 2048;
// Numbers at a time that become blocks of ggml.
inline constexpr std::size_t gguf_numbers = 1024;
// How far ahead numbers are prefetched that are read once, as the weight has one scale.
inline constexpr std::size_t prefetched_numbers = 1024;
// Fewer scales are faster one by one than in vectors.
inline constexpr std::size_t least_vector_scales = 16;
// Tables for all scales take as long to make as this many codes of a weight.
inline constexpr std::size_t least_tabled_weight = std::size_t{1} << 18;
// A table for one scale pays for this many of its numbers.
inline constexpr std::size_t least_tabled_block = 1024;

// --- Decoding

// Rows of codes in a tile that is transposed.
inline constexpr std::size_t tile_depth = 256;
// Blocks with fewer columns are not worth a table of products each.
inline constexpr std::size_t least_table_width = 64;

}  // namespace tensorcast::block
