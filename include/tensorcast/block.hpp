// Numbers in blocks that share scales: what codes and scales mean, and their conversion to floating point.
//
// A weight is [..., rows, columns]. Its codes lie in matrices of their own rows and columns, mostly the same; block
// (i, j) of them has scale (i, j). Every step is one float32 operation, in the order of the tool that wrote the format,
// then comes one rounding to the target type. docs/blocks.md lists formats, tools and formulas.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string_view>

#include "tensorcast/cast.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast::inline TENSORCAST_ABI {

// Where codes lie in a row of bytes. Words are 32 bits, little endian.
enum class BlockPacking : std::uint8_t {
  stream,             // dense, low bits first, each row in whole bytes: one code a byte for 8 bits
  high_nibble_first,  // 4 bits, two codes a byte
  flat,               // high_nibble_first over the whole tensor, as one row
  words_down,         // dense in words down the rows: word (i, c) has rows 32 / bits * i and on of column c
  awq,                // 4 bits, eight columns a word in the order 0 2 4 6 1 3 5 7
  row_pairs,          // 4 bits, the byte (i, c) has rows 2 i (low) and 2 i + 1 of column c
  gguf,               // ggml's blocks, scales inside
};

enum class GlobalScale : std::uint8_t { none, factor, divisor };

// Formats of GGUF, by ggml's names.
enum class GgufBlock : std::uint8_t {
  none,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  nvfp4
};

// What codes and scales mean: (element - zero) * scale + bias.
struct BlockCoding {
  // A floating-point type of 8 bits or fewer, or (u)int8 for integers of `bits` bits. Undefined: an index into a table.
  DType element = DType::undefined;
  int bits = 8;
  BlockPacking packing = BlockPacking::stream;
  int offset = 0;                             // subtracted from integers without zero points
  int zero_added = 0;                         // added to stored zero points: 1 for GPTQ v1
  BlockPacking zeros = BlockPacking::stream;  // the packing of zero points that are words
  bool positive_zero = false;                 // ModelOpt's NVFP4: the code of -0 means +0
  DType scale = DType::undefined;             // float8_e8m0fnu or float8_e4m3fn that is stored as uint8
  GlobalScale global = GlobalScale::none;     // scale * global scale, or scale / global scale
  bool swizzled = false;                      // scales in tiles of 128 x 4, as NVIDIA's tensor cores read them
  float factor = 1.0f;                        // multiplies last, unless it is 1
  bool transposed = false;                    // the weight is the transpose of the codes' matrices
  GgufBlock gguf = GgufBlock::none;

  friend bool operator==(const BlockCoding&, const BlockCoding&) = default;
};

// A weight in blocks. Views may have any number of dimensions; their elements are counted, not their shapes compared.
struct BlockTensor {
  BlockCoding coding = {};
  Shape shape = {};                   // of the weight
  std::int64_t block_rows = 1;        // of the codes' matrices; 0: all rows. The last block may be shorter
  std::int64_t block_columns = 0;     // 0: all columns
  TensorView codes = {};              // of the whole tensor, but `bytes` may be those of code_range()
  TensorView scales = {};             // floating point, or as coding.scale says
  TensorView global_scale = {};       // float32: one, or one for each matrix; no dtype: none
  TensorView zero_points = {};        // packed in int32 words, else any numeric type; no dtype: none
  TensorView biases = {};             // as scales; no dtype: none
  TensorView group_index = {};        // int32, the row of scales for each row of codes; no dtype: row / block_rows
  std::span<const float> table = {};  // what codes mean if coding.element is undefined: 2^bits numbers
};

// The shape of the weight that codes of this dtype and shape are; `flat` codes are one row.
// Errors: invalid_argument: the codes have fewer dimensions than the packing needs, or no whole blocks.
[[nodiscard]] TENSORCAST_API Result<Shape> weight_shape(const BlockCoding& coding, DType codes_dtype,
                                                        const Shape& codes_shape);

// Bytes [begin, end) of a tensor's codes.
struct CodeRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The rows of a weight: the product of all its dimensions but the last.
// Returns the codes that rows [first, first + count) of the weight need: whole matrices where they are transposed.
// Errors: invalid_argument: sizes that contradict each other, such as too few codes or scales.
[[nodiscard]] TENSORCAST_API Result<CodeRange> code_range(const BlockTensor& tensor, std::int64_t first,
                                                          std::int64_t count);

// Converts rows [first, first + out's rows) to a floating-point type of 8 bits or more. `out` has the weight's columns
// in its last dimension. tensor.codes.bytes are all codes, or those of code_range() if `first` and out's rows are its.
// Errors: as code_range() and cast().
[[nodiscard]] TENSORCAST_API Result<void> dequantize(const BlockTensor& tensor, std::int64_t first,
                                                     const MutableTensorView& out, const CastOptions& options = {},
                                                     CastReport* report = nullptr, const Execution& execution = {});

// A format by its name, with the shape of its blocks.
struct BlockFormat {
  std::string_view scheme;    // "fp8-block", "nvfp4", "int4-group", "q4_k"
  std::string_view spelling;  // whose layout: "compressed-tensors"; the first row of a scheme is its default
  BlockCoding coding;
  std::int64_t block_rows = 1;
  std::int64_t block_columns = 0;
  std::string_view order;  // of operations, for people
};

[[nodiscard]] TENSORCAST_API std::span<const BlockFormat> block_formats() noexcept;
// Returns null if there is none. An empty spelling: the default one.
[[nodiscard]] TENSORCAST_API const BlockFormat* find_block_format(std::string_view scheme,
                                                                  std::string_view spelling = {}) noexcept;

// The numbers of bitsandbytes' NF4 and FP4 codes.
[[nodiscard]] TENSORCAST_API std::span<const float> nf4_table() noexcept;
[[nodiscard]] TENSORCAST_API std::span<const float> fp4_table() noexcept;

struct GgufBlockSize {
  std::uint32_t elements = 0;
  std::uint32_t bytes = 0;
};
[[nodiscard]] TENSORCAST_API GgufBlockSize block_size(GgufBlock block) noexcept;

}  // namespace tensorcast::inline TENSORCAST_ABI
