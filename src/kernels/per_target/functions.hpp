// SPDX-License-Identifier: Apache-2.0
// The functions of per_target/ that ops.cpp puts into this instruction set's table.
#pragma once

#include "kernels/ops.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

extern const Ops ops;

[[nodiscard]] KernelRows float_source_rows() noexcept;
[[nodiscard]] KernelRows integer_source_rows() noexcept;
[[nodiscard]] KernelRows byte_source_rows() noexcept;
[[nodiscard]] byte_table::Loops table_loops() noexcept;
[[nodiscard]] MultiplyFn find_multiply(DType from, Products products) noexcept;
[[nodiscard]] bool multiply_each(const double* numbers, const double* scales, double* products, std::size_t count,
                                 const Multiplication& by, bool to_nearest);
[[nodiscard]] bool multiply_each_float32(const std::byte* numbers, const std::byte* scales, std::byte* products,
                                         std::size_t count, const Multiplication& by);
extern const Rounders rounders;
[[nodiscard]] EncodeByWordFn find_encode_by_word(DType from, DType to) noexcept;
void random_words(std::uint64_t seed, std::uint64_t first_block, std::size_t blocks, std::uint32_t* words);
void stream_copy(const std::byte* src, std::byte* dst, std::size_t bytes) noexcept;
void stream_fence() noexcept;
void transpose(std::size_t item_bytes, const std::byte* src, std::ptrdiff_t src_pitch, std::size_t rows,
               std::size_t columns, std::byte* dst, std::ptrdiff_t dst_pitch) noexcept;
void compare_float32(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                     CompareSums& sums) noexcept;
void compare_float64(const ComparedPairs& pairs, std::size_t count, const CompareRules& rules,
                     CompareSums& sums) noexcept;
void split_integers(const std::byte* integers, bool is_signed, double* high, double* low, std::size_t count) noexcept;
[[nodiscard]] bool split_products(double* numbers, double scale, double* low, std::size_t count) noexcept;
[[nodiscard]] bool any_outside_float32(const std::byte* numbers, std::size_t count, double low, double high) noexcept;
[[nodiscard]] bool any_outside_float64(const std::byte* numbers, std::size_t count, double low, double high) noexcept;
void unpack_bits(int bits, const std::byte* src, std::byte* dst, std::size_t count) noexcept;
void unpack_six_bits(const std::byte* src, std::byte* dst, std::size_t count) noexcept;
void look_up_six_bits(const std::byte* src, std::byte* dst, std::size_t count, const std::uint8_t* table) noexcept;
void count_nibbles(const std::byte* data, std::size_t bytes, std::uint64_t* counts) noexcept;
[[nodiscard]] ScaleRunsFn find_scale_runs(DType from, DType to, unsigned run) noexcept;
void scale_runs_by_powers(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& by);
void look_up_split(const std::byte* codes, std::byte* dst, std::size_t count, const SplitRuns& runs);
void look_up_split_by_powers(const std::byte* codes, std::byte* dst, std::size_t count,
                             const byte_table::SplitTable& table, const std::uint16_t* powers, bool bypasses_cache);
void look_up_nibbles(const std::byte* codes, std::byte* dst, std::size_t count, const NibbleRuns& runs);
void look_up_powers(const std::byte* codes, std::byte* dst, std::size_t count, const NibblePowers& by);
[[nodiscard]] EncodeRunsFn find_encode_runs(const CodeRule& rule) noexcept;
[[nodiscard]] EncodeMantissasFn find_encode_mantissas(const CodeRule& rule) noexcept;
void encode_integer_steps(const std::byte* numbers, std::size_t count, const CodeRule& rule,
                          const IntegerStepTables& tables, const RunOperand* operands, unsigned run_shift,
                          std::byte* codes, const Ahead& ahead);
void encode_steps(const std::byte* numbers, std::size_t count, const StepTables& tables, const std::uint8_t* scales,
                  unsigned run_shift, Zeros zeros, std::byte* codes, const Ahead& ahead);
void largest_of_runs(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift,
                     std::uint32_t* largest);
void range_of_runs(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift, float* low,
                   float* high);
[[nodiscard]] bool scale_blocks(const std::uint32_t* largest, std::size_t count, const ScaleSteps& steps,
                                std::uint8_t* codes, RunOperand* operands);
void fit_offset_runs(const float* numbers, const float* weights, std::size_t runs, const ScaleSearch& search,
                     const OffsetFit& fit);
void set_offset_codes(const float* numbers, std::size_t runs, const OffsetFit& stored);
void fit_signed_runs(const float* numbers, const float* weights, std::size_t runs, const SignedFit& fit);
[[nodiscard]] EncodeGgufFn find_encode_gguf(GgufBlock block) noexcept;
[[nodiscard]] UnpackGgufFn find_unpack_gguf(GgufBlock block, GgufElements elements) noexcept;
[[nodiscard]] DecodeGgufFn find_decode_gguf(GgufBlock block) noexcept;
void pack_six_bits(const std::byte* codes, std::byte* dst, std::size_t count) noexcept;

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
