// SPDX-License-Identifier: Apache-2.0
// Numbers in runs that share a scale, and ggml's blocks, which become such runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/byte_table/split_table.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::kernels {

// One of each for a run. Null zeros are 0; null biases add nothing.
struct RunParameters {
  const float* scales = nullptr;
  const float* zeros = nullptr;
  const float* biases = nullptr;
};

// Numbers that share parameters: `run_of_all`, or 1, 16 or 32.
inline constexpr unsigned run_of_all = 0;

// The step of ScaleRunsFn's count: buffers and parameters are readable, and the target is writable, up to it.
inline constexpr std::size_t run_step = 64;

// Element i becomes (src[i] - zero) * scale + bias, each operation rounded to float32, and then rounded to the target.
// `count` is a multiple of run_step. `src` and `dst` have any alignment and are disjoint.
using ScaleRunsFn = void (*)(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& parameters);

// Codes of eight bits become the outputs of a table. Each run of `width` codes has its own; `skipped` codes of the
// first run come before. Any count and alignment; `codes` and `dst` are disjoint.
struct SplitRuns {
  const byte_table::SplitTable* const* tables;
  std::size_t width;
  std::size_t skipped = 0;
  // With AVX-512, stores do; `dst` is a line of the cache then, and all codes of runs are of whole run_steps.
  bool bypasses_cache = false;
};
using LookUpSplitFn = void (*)(const std::byte* codes, std::byte* dst, std::size_t count, const SplitRuns& runs);

// The outputs of one table, normal numbers of bfloat16, in runs of 32 that each have a power of two: an exponent, in
// its place, that is added to outputs that are not zero, infinite or NaN, and leaves them normal. Powers are readable,
// and the target is writable, up to `count` rounded up to a multiple of run_step. `bypasses_cache`: as in SplitRuns.
using LookUpSplitByPowersFn = void (*)(const std::byte* codes, std::byte* dst, std::size_t count,
                                       const byte_table::SplitTable& table, const std::uint16_t* powers,
                                       bool bypasses_cache);

// Where codes of four bits lie: two in each byte, or one in a half of each byte.
enum class Nibbles : std::uint8_t { low_first, high_first, low_halves, high_halves };

// Runs of codes of four bits, each with a table of 16 results of 16 bits.
struct NibbleRuns {
  const std::uint16_t* tables;            // 16 each
  const std::uint8_t* indices = nullptr;  // which table a run has; null: one after the other
  std::size_t width;                      // of a run, a multiple of 16
  std::size_t skipped = 0;                // codes of the first run that come before, a multiple of 16
  Nibbles nibbles = Nibbles::low_first;
  bool bypasses_cache = false;  // as in SplitRuns, but runs may have 16 codes
};
// Reads (count + 1) / 2 bytes, or `count` of halves, and writes results for `count` rounded up to a multiple of 16. Any
// alignment.
using LookUpNibblesFn = void (*)(const std::byte* codes, std::byte* dst, std::size_t count, const NibbleRuns& runs);

// Codes in a half of each byte, each with a power of two of its own: results of 16 bits, to which a power is added, but
// to those that are zero without their sign.
struct NibblePowers {
  const std::uint16_t* results;  // 16
  const std::uint16_t* powers;   // of elements: exponents, in their place
  bool are_upper = false;        // halves of bytes
  bool bypasses_cache = false;   // as in SplitRuns
};
// Reads `count` bytes, and powers and writes results for `count` rounded up to a multiple of 16. Any alignment.
using LookUpPowersFn = void (*)(const std::byte* codes, std::byte* dst, std::size_t count, const NibblePowers& by);

// The two numbers that a tie lies between: the even code, or the one towards zero.
enum class Ties : std::uint8_t { even, towards_zero };

// What codes zeros have, and numbers that round to zero.
enum class Zeros : std::uint8_t {
  sign_kept,         // -0 for negative ones
  negative_numbers,  // -0 for numbers below zero, +0 for -0
  never_negative,    // +0
  always_negative,   // -0
};

// How the quotients of numbers and scales become codes. Numbers out of range become the largest ones.
struct CodeRule {
  DType element = DType::undefined;  // a floating-point type of 4, 6 or 8 bits; int8 for integers
  int bits = 8;
  bool multiplies = false;             // number * factor, else number / factor
  DType rounds_to = DType::undefined;  // quotients are bfloat16 or float16; undefined: float32
  Ties ties = Ties::even;              // towards_zero: of float4 only
  Zeros zeros = Zeros::sign_kept;
  bool is_offset = false;          // integers of 4 bits: codes count from -8
  DType numbers = DType::float32;  // or bfloat16: what is read
  // Writes codes of 8 bits around the cache, with AVX-512; the codes must be aligned to 64 bytes.
  bool bypasses_cache = false;
};

// What the elements of a run need of its scale.
struct RunOperand {
  float factor = 1.0f;  // or divisor
  float zero = 0.0f;    // added to the quotient of integers
};

// Runs have a power of two of numbers, 16 or more: element i has operands[i >> run_shift].
inline constexpr unsigned least_run_shift = 4;
inline constexpr unsigned shift_of_all = 31;

// What is read next, which is prefetched meanwhile.
struct Ahead {
  std::size_t bytes = 0;  // how far it lies behind the numbers; 0: nothing
  bool is_begun = false;  // it has three quarters as many bytes as the numbers: the rest was prefetched before

  // The same for numbers that begin so many bytes behind.
  [[nodiscard]] Ahead after(std::size_t read) const noexcept { return {is_begun ? bytes - read / 4 : bytes, is_begun}; }
};

// Writes codes one after the other, low bits first. `count` is a multiple of run_step.
using EncodeRunsFn = void (*)(const std::byte* numbers, std::size_t count, const CodeRule& rule,
                              const RunOperand* operands, unsigned run_shift, std::byte* codes, const Ahead& ahead);

// Turns bfloat16 into float8 under one scale by a table: code = upper bits of (magnitude - base) -
// differences[mantissa].
struct MantissaTable {
  std::uint8_t differences[128];
  // The same in cells of eight mantissas: that of the first, and the last one that has it; the others' is one less.
  std::uint8_t first[16], last[16];
  std::uint16_t base;          // the first magnitude of the binade
  std::uint16_t below_normal;  // the last magnitude whose code may be subnormal
};
// As EncodeRunsFn, for runs of 64 numbers or more.
using EncodeMantissasFn = void (*)(const std::byte* numbers, std::size_t count, const CodeRule& rule,
                                   const MantissaTable* tables, const RunOperand* operands, unsigned run_shift,
                                   std::byte* codes, const Ahead& ahead);

// The float4 codes of bfloat16 in blocks whose scales have codes of a byte. A code is a step function of the magnitude,
// which moves by binades with the exponent of the scale: so scales of one mantissa share a table, with a cell for each
// quarter of a binade. The code is that of the cell plus the magnitude's place, without its lower five bits.
struct StepTables {
  static constexpr int cell_bits = 5;
  static constexpr std::size_t cells = 32, mantissas = 8;

  std::uint16_t steps[mantissas][cells];
  std::uint32_t bases[256];    // of a scale's code: the first magnitude of the first cell, twice
  std::uint16_t offsets[256];  // of its table, in bytes
};
// Writes codes one after the other, low bits first, of runs of 16 or 32 numbers with a scale's code each. `count` is a
// multiple of run_step. Numbers are finite.
using EncodeStepsFn = void (*)(const std::byte* numbers, std::size_t count, const StepTables& tables,
                               const std::uint8_t* scales, unsigned run_shift, Zeros zeros, std::byte* codes,
                               const Ahead& ahead);

// The codes of integers of 4 bits from quotients of bfloat16 numbers and scales, rounded to bfloat16: as StepTables,
// with a table for each mantissa of a scale, and a cell for each eighth of a binade from that of half the scale on.
struct IntegerStepTables {
  static constexpr int cell_bits = 4;
  static constexpr std::size_t cells = 64, mantissas = 128;

  std::uint16_t steps[mantissas][cells];
};
// As EncodeRunsFn, for runs of 32 numbers or more, which are finite.
using EncodeIntegerStepsFn = void (*)(const std::byte* numbers, std::size_t count, const CodeRule& rule,
                                      const IntegerStepTables& tables, const RunOperand* operands, unsigned run_shift,
                                      std::byte* codes, const Ahead& ahead);

// What is known of a run of float32 or bfloat16: the largest magnitude as bits of float32, so that NaN is above all.
using LargestOfRunsFn = void (*)(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift,
                                 std::uint32_t* largest);
// The least number, at most `low`, and the greatest, at least `high`; NaN is passed over.
using RangeOfRunsFn = void (*)(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift, float* low,
                               float* high);

// What multiplies or divides the numbers of a block whose scale is rounded to float8_e4m3fn.
enum class ScaleFactor : std::uint8_t {
  product,           // scale * constant
  quotient,          // scale / constant
  inverse_quotient,  // constant / scale
  inverse_product,   // 1 / (scale * constant)
};

// How the scales of blocks come from their largest magnitudes, by steps in float32 that have no special cases for
// ordinary numbers: largest / divisor / second_divisor * multiplier, rounded to the scale's type.
struct ScaleSteps {
  bool is_e8m0 = false;  // else float8_e4m3fn
  float divisor = 1.0f, second_divisor = 1.0f, multiplier = 1.0f;
  float least = 0.0f;  // E8M0: of the largest magnitude; E4M3: of the scale
  // E8M0: the code is the exponent field of the bits plus `added`, plus `offset`. Numbers are divided by the scale, or
  // multiplied by its inverse.
  std::uint32_t added = 0;
  int offset = 0;
  bool is_inverse = false;
  // E4M3.
  ScaleFactor factor = ScaleFactor::product;
  float constant = 1.0f;
};

// The codes and operands of `count` blocks, a multiple of run_step. Returns false if a block is not ordinary: a number
// among its steps is far from 1, as zero, infinity and NaN are, or its code is 0. Its rule decides then.
using ScaleBlocksFn = bool (*)(const std::uint32_t* largest, std::size_t count, const ScaleSteps& steps,
                               std::uint8_t* codes, RunOperand* operands);

// ggml's searches for the scale of a run that gives the least error. Each run is searched on its own, in float32 sums
// in the order of its elements: that order is part of the result.
//
// The inverse scales that a search tries: those of so many codes more or fewer.
struct ScaleSearch {
  float first, step;
  int steps;
};
// Q4_K and Q5_K: runs of 32, x is about scale * code - minimum, codes from 0 to `most`. `weights`: of each number;
// null: the mean size of the run's numbers plus the number's own, summed up in `weight_sums`, unless that is null. The
// codes are those of the search; null: nobody needs them.
struct OffsetFit {
  static constexpr std::size_t run = 32;

  float* scales;
  float* minima;
  float* weight_sums;
  std::uint8_t* codes;
  int most = 15;
};
using FitOffsetRunsFn = void (*)(const float* numbers, const float* weights, std::size_t runs,
                                 const ScaleSearch& search, const OffsetFit& fit);
// Writes the codes that these scales and minima give: nearest((x + minimum) / scale), clamped. Runs with scale 0 keep
// theirs.
using SetOffsetCodesFn = void (*)(const float* numbers, std::size_t runs, const OffsetFit& stored);
// Q6_K: runs of 16, x is about scale * (code - 32), codes from 0 to 63. Null weights: the numbers' squares.
struct SignedFit {
  static constexpr std::size_t run = 16;
  static constexpr int zero = 32;
  static constexpr float least_size = 1e-15F;  // smaller runs get scale 0 and codes 0

  float* scales;
  std::uint8_t* codes;
};
using FitSignedRunsFn = void (*)(const float* numbers, const float* weights, std::size_t runs, const SignedFit& fit);

// Encodes ggml's blocks of 32 numbers from the first on, and returns how many: it stops at numbers with special cases
// (NaN, infinity, zero, very large and small ones), and where blocks are fewer than the lanes of a register.
using EncodeGgufFn = std::size_t (*)(const float* numbers, std::size_t blocks, std::byte* dst);

// A chunk of ggml's blocks as integers, with parameters for each run of them.
struct GgufRuns {
  static constexpr std::size_t max_elements = 2048;

  std::int8_t q[max_elements];
  float scales[max_elements / 16];
  float biases[max_elements / 16];
  std::uint8_t scale_codes[max_elements / 16];
};

// Unpacks `blocks` blocks, of at most GgufRuns::max_elements elements.
using UnpackGgufFn = void (*)(const std::byte* src, std::size_t blocks, GgufRuns& runs);

// What is unpacked: numbers, or codes of elements, four bits in a byte each, and of scales, from which tables give
// results.
enum class GgufElements : std::uint8_t { numbers, codes };

// Decodes `blocks` blocks to bfloat16. `tables`: 16 results for each code of a scale, of formats whose scales have
// codes of a byte. `bypasses_cache`: as in SplitRuns. Returns false if a scale is NaN; `dst` is unspecified then.
using DecodeGgufFn = bool (*)(const std::byte* src, std::size_t blocks, std::byte* dst, const std::uint16_t* tables,
                              bool bypasses_cache);

}  // namespace tensorcast::kernels
