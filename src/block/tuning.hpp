// SPDX-License-Identifier: Apache-2.0
// How much of a weight is worked on at a time, and from which sizes on tables pay. Results do not depend on these;
// bench/blocks measures them. The constants that are not of blocks are those of cast/tuning.hpp.
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
