// SPDX-License-Identifier: Apache-2.0
// The operations of an instruction set: one table for each, chosen in one place (select.cpp).
//
// The sources in per_target/ are compiled once for every instruction set of CMakeLists.txt, each time in a namespace of
// its name. A function in one of them becomes usable by a field here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/byte_table/loop.hpp"
#include "kernels/compare.hpp"
#include "kernels/kernel.hpp"
#include "kernels/multiply.hpp"
#include "kernels/rounding.hpp"
#include "kernels/runs.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

using KernelRows = std::span<const Kernel>;

struct Ops {
  int register_bytes = 0;  // of a vector
  // Kernels of sources wider than 8 bits. May be called before main().
  KernelRows (*float_source_rows)() noexcept;
  KernelRows (*integer_source_rows)() noexcept;
  // Kernels of sources of 8 bits or fewer, and bool. May be called before main().
  KernelRows (*byte_source_rows)() noexcept;
  // Lookups in tables of all results of a pair.
  byte_table::Loops (*table_loops)() noexcept;
  // Products of elements of this type, which multiply.hpp lists.
  MultiplyFn (*find_multiply)(DType from, Products products) noexcept;
  MultiplyEachFn multiply_each;
  MultiplyEachFloat32Fn multiply_each_float32;
  // Numbers rounded by the words of D16, and the random words of elements.
  const Rounders* rounders;
  // Null for sources other than float32, float16 and bfloat16, and for targets that `rounders` round for. Stochastic
  // rounding: only of float32, and not to float16.
  EncodeByWordFn (*find_encode_by_word)(DType from, DType to) noexcept;
  RandomWordsFn random_words;
  // Numbers times the scales of their runs: int8, bfloat16 or float32 to float32, float16 or bfloat16.
  ScaleRunsFn (*find_scale_runs)(DType from, DType to, unsigned run) noexcept;
  // As the function for bfloat16 to bfloat16 in runs of 32, which have a scale each and no zero or bias, if all scales
  // are powers of two, and all numbers and results are zero, normal, infinite or NaN.
  ScaleRunsFn scale_runs_by_powers;
  // Null if the instruction set has no fast way.
  LookUpSplitFn look_up_split;
  LookUpSplitByPowersFn look_up_split_by_powers;
  LookUpNibblesFn look_up_nibbles;
  LookUpPowersFn look_up_powers;
  // Codes of numbers whose runs have scales, and what scales are made from: raises `largest` and widens ranges.
  EncodeRunsFn (*find_encode_runs)(const CodeRule& rule) noexcept;
  // Null for rules that it does not take: others than float8 from bfloat16 whose codes keep signs.
  EncodeMantissasFn (*find_encode_mantissas)(const CodeRule& rule) noexcept;
  EncodeStepsFn encode_steps;                 // null if the instruction set has no fast way
  EncodeIntegerStepsFn encode_integer_steps;  // the same
  LargestOfRunsFn largest_of_runs;
  RangeOfRunsFn range_of_runs;
  ScaleBlocksFn scale_blocks;
  FitOffsetRunsFn fit_offset_runs;
  SetOffsetCodesFn set_offset_codes;
  FitSignedRunsFn fit_signed_runs;
  // q8_0, q4_0, q4_1, q5_0 and q5_1; null for others.
  EncodeGgufFn (*find_encode_gguf)(GgufBlock block) noexcept;
  // Null for GgufBlock::none, for codes of a format whose scales are not codes of a byte, and for codes where
  // look_up_nibbles is null.
  UnpackGgufFn (*find_unpack_gguf)(GgufBlock block, GgufElements elements) noexcept;
  // Null, and for q6_k and blocks of 1 to 3 bits, if there is no faster way than to unpack and to scale.
  DecodeGgufFn (*find_decode_gguf)(GgufBlock block) noexcept;
  // Copies with stores that bypass the cache, for outputs larger than it. Any alignment. Other threads may read the
  // result after this one has called stream_fence(): once at the end, as it waits until every store has left.
  void (*stream_copy)(const std::byte* src, std::byte* dst, std::size_t bytes) noexcept;
  void (*stream_fence)() noexcept;
  // Compares `count` pairs and adds the results to `sums` (compare.hpp). float64: pairs with low parts or without.
  void (*compare_float32)(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                          CompareSums& sums) noexcept;
  void (*compare_float64)(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                          CompareSums& sums) noexcept;
  // Splits 64-bit integers into sums: `high` is the nearest float64, `low` its exact error.
  void (*split_integers)(const std::byte* integers, bool is_signed, double* high, double* low,
                         std::size_t count) noexcept;
  // Replaces numbers by their products with `scale`, as sums. Returns false if a sum is not exact: a product overflows,
  // or is so small that it loses bits.
  bool (*split_products)(double* numbers, double scale, double* low, std::size_t count) noexcept;
  // Reports whether a number is NaN, below `low` or above `high`. Any alignment; float32 has both bounds exactly.
  bool (*any_outside_float32)(const std::byte* numbers, std::size_t count, double low, double high) noexcept;
  bool (*any_outside_float64)(const std::byte* numbers, std::size_t count, double low, double high) noexcept;
  // Packed codes of six bits to one a byte, or to table[code], and back.
  void (*unpack_six_bits)(const std::byte* src, std::byte* dst, std::size_t count) noexcept;
  void (*look_up_six_bits)(const std::byte* src, std::byte* dst, std::size_t count, const std::uint8_t* table) noexcept;
  void (*pack_six_bits)(const std::byte* codes, std::byte* dst, std::size_t count) noexcept;
  // Adds to counts[x] how often each x of 0 to 15 is half a byte. Null if the instruction set has no fast way.
  void (*count_nibbles)(const std::byte* data, std::size_t bytes, std::uint64_t* counts) noexcept;
  // Packed codes of one to seven bits to one a byte. Any alignment.
  void (*unpack_bits)(int bits, const std::byte* src, std::byte* dst, std::size_t count) noexcept;
  // dst[j][i] = src[i][j] for `rows` x `columns` elements of 1, 2, 4 or 8 bytes, neighbours in a row; from row to row
  // it is so many bytes. Null if registers have 16 bytes (cast/transpose.hpp does it then).
  void (*transpose)(std::size_t item_bytes, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
                    std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) noexcept;
};

// The last enumerator of Target and one: the rows of the tables of targets.
inline constexpr std::size_t target_count = static_cast<std::size_t>(Target::neon) + 1;

// The operations of `target`; those of `portable` if the build lacks it.
[[nodiscard]] const Ops& ops_of(Target target) noexcept;

}  // namespace tensorcast::kernels
