// SPDX-License-Identifier: Apache-2.0
// Component core. Numbers in blocks that share scales: what codes and scales mean, and their conversion to floating
// point.
//
// A weight is [..., rows, columns]. Its codes lie in matrices of their own rows and columns, mostly the same; block
// (i, j) of them has scale (i, j). Every step is one float32 operation, in the order of the tool that wrote the format,
// then comes one rounding to the target type. docs/blocks.md lists formats, tools and formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/cast_report.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/execution.hpp"
#include "tensorcast/export.hpp"
#include "tensorcast/result_vector.hpp"
#include "tensorcast/view.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

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
  nvfp4,
  // 1 to 3 bits: read, not written.
  iq1_s,
  iq1_m,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  tq1_0,
  tq2_0
};

// What codes and scales mean: (element - zero) * scale + bias.
struct BlockCoding {
  // A floating-point type of 8 bits or fewer, or (u)int8 for integers of `bits` bits. Undefined: an index into a table.
  DType element = DType::undefined;
  int bits = 8;
  BlockPacking packing = BlockPacking::stream;
  int offset = 0;                             // subtracted from integers, and from zero points that are packed
  int zero_added = 0;                         // added to stored zero points: 1 for GPTQ v1, in whole words
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

// A weight in blocks. Views of scales, zero points and biases have the dimensions of the blocks, [matrices, rows,
// columns], which may be joined or split, but not change places; swizzled ones and packed ones have any.
struct BlockTensor {
  BlockCoding coding = {};
  Shape shape = {};                   // of the weight
  std::int64_t block_rows = 1;        // of the codes' matrices; 0: all rows. The last block may be shorter
  std::int64_t block_columns = 0;     // 0: all columns
  TensorView codes = {};              // of the whole tensor, but `bytes` may be those of code_range()
  TensorView scales = {};             // floating point, or as coding.scale says
  TensorView global_scale = {};       // floating point: one, or one for each matrix; no dtype: coding.global is none
  TensorView zero_points = {};        // packed in int32 words, else numbers of any type; no dtype: none
  TensorView biases = {};             // as scales; no dtype: none
  TensorView group_index = {};        // int32, the row of scales for each row of codes; no dtype: row / block_rows
  std::span<const float> table = {};  // what codes mean if coding.element is undefined: 2^bits numbers
};

// The shape of the weight that codes of this dtype and shape are; `flat` codes are one row. gpt-oss stores codes as
// [experts, N, K / 32, 16], which their scales tell: [experts, N, K / 32].
// Errors: invalid_argument: a coding that does not exist; the codes have fewer dimensions than the packing needs, or no
// whole blocks.
[[nodiscard]] TENSORCAST_API Result<Shape> weight_shape(const BlockCoding& coding, DType codes_dtype,
                                                        const Shape& codes_shape, const Shape& scales_shape = {});

// Bytes [begin, end) of a tensor's codes.
struct CodeRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The rows of a weight: the product of all its dimensions but the last.
// Returns the codes that rows [first, first + count) of the weight need: whole matrices where they are transposed.
// Errors: invalid_argument: fields that do not exist or exclude each other; sizes that contradict each other, such as
// too few codes or scales.
[[nodiscard]] TENSORCAST_API Result<CodeRange> code_range(const BlockTensor& tensor, std::int64_t first,
                                                          std::int64_t count);

// Converts rows [first, first + out's rows) to a floating-point type of 8 bits or more. `out` has the weight's columns
// in its last dimension. tensor.codes.bytes are all codes, or those of code_range() if `first` and out's rows are its.
// Stochastic rounding takes the places of elements in the weight, whose first one is at execution.first_element.
// `out` shares no memory with the arrays of the tensor. Errors: as code_range() and cast().
[[nodiscard]] TENSORCAST_API Result<void> dequantize(const BlockTensor& tensor, std::int64_t first,
                                                     const MutableTensorView& out, const CastOptions& options = {},
                                                     CastReport* report = nullptr, const Execution& execution = {});

// Rows of one weight to one type, a few at a time: what dequantize() checks and prepares is done once. Borrows the
// arrays of the tensor; its global scale, group index and table are read once, the others in each call. For one thread
// at a time: each thread prepares its own.
class PreparedDequantize {
 public:
  TENSORCAST_API PreparedDequantize(PreparedDequantize&& other) noexcept;
  TENSORCAST_API PreparedDequantize& operator=(PreparedDequantize&& other) noexcept;
  TENSORCAST_API ~PreparedDequantize();

  // Converts rows [first, first + count) to `count` rows of the weight's columns at `dst`, on the calling thread.
  // Errors: invalid_argument (a null buffer, rows that the weight lacks, memory shared with the tensor's arrays), and
  // those of cast() that the options demand.
  // Cost: O(count), allocates nothing for ggml's blocks.
  [[nodiscard]] TENSORCAST_API Result<void> operator()(std::int64_t first, std::int64_t count, void* dst) noexcept;
  // The same with codes that lie elsewhere: those of code_range(tensor, first, count). The tensor's own may be empty.
  [[nodiscard]] TENSORCAST_API Result<void> operator()(std::span<const std::byte> codes, std::int64_t first,
                                                       std::int64_t count, void* dst) noexcept;
  // As code_range() of the tensor.
  [[nodiscard]] TENSORCAST_API Result<CodeRange> code_range(std::int64_t first, std::int64_t count) const noexcept;

 private:
  friend struct PreparedDequantizeAccess;
  struct State;
  explicit PreparedDequantize(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

// Errors: as dequantize(), of the tensor, the type and the options. Allocates.
[[nodiscard]] TENSORCAST_API Result<PreparedDequantize> prepare_dequantize(const BlockTensor& tensor, DType to,
                                                                           const CastOptions& options = {});

// A format by its name, with the shape of its blocks.
struct BlockFormat {
  std::string_view scheme;    // "fp8-block", "nvfp4", "int4-group", "q4_k"
  std::string_view spelling;  // whose layout: "compressed-tensors"; the first row of a scheme is its default
  BlockCoding coding;
  std::int64_t block_rows = 1;
  std::int64_t block_columns = 0;
  std::string_view order;             // of operations, for people
  std::span<const float> table = {};  // what its codes mean, if they are indexes: 2^bits numbers
};

[[nodiscard]] TENSORCAST_API std::span<const BlockFormat> block_formats() noexcept;
// Returns null if there is none. An empty spelling: the default one. Names are the same in any case, and with `-` as
// with `_`, wherever this library takes one: "INT4_group" is "int4-group".
[[nodiscard]] TENSORCAST_API const BlockFormat* find_block_format(std::string_view scheme,
                                                                  std::string_view spelling = {}) noexcept;

// The numbers of bitsandbytes' NF4 and FP4 codes.
[[nodiscard]] TENSORCAST_API std::span<const float> nf4_table() noexcept;
[[nodiscard]] TENSORCAST_API std::span<const float> fp4_table() noexcept;

// Of one block; zeros for `none` and for numbers without a format.
struct GgufBlockSize {
  std::uint32_t elements = 0;
  std::uint32_t bytes = 0;
};
[[nodiscard]] TENSORCAST_API GgufBlockSize block_size(GgufBlock block) noexcept;

// What becomes of NaN and infinity in a weight. `tool`: whatever the recipe's tool makes of them on a CPU; an error
// where that is undefined (docs/blocks.md).
enum class NonFiniteWeights : std::uint8_t { error, tool };

// Whether the scale of a block is searched.
enum class Clip : std::uint8_t {
  none,  // it is the recipe's
  // The recipe's, or that of a block whose largest magnitude is smaller by up to half, in steps of a 64th: the one with
  // the smallest sum of squared errors; numbers beyond become the largest code. Of equal sums, the largest scale.
  mse,
};

// How one tool quantizes to one scheme, in words: a row of the table of recipes.
struct QuantizeRecipe {
  std::string_view scheme;
  std::string_view recipe;          // the tool or its mode; the first row of a scheme is the scheme's default
  std::string_view spelling;        // whose layout the codes have: that of find_block_format(scheme, spelling)
  std::string_view scale;           // how the scales of blocks come from their largest magnitude
  std::string_view element;         // how codes come from numbers and scales
  bool uses_weights_dtype = false;  // steps of the computation are rounded to the weights' own type
  bool is_from_source = false;      // derived from code for GPUs; the others were compared with the output of the tool
};

[[nodiscard]] TENSORCAST_API std::span<const QuantizeRecipe> quantize_recipes() noexcept;
// Returns null if there is none. An empty recipe: the scheme's default. Names as in find_block_format().
[[nodiscard]] TENSORCAST_API const QuantizeRecipe* find_quantize_recipe(std::string_view scheme,
                                                                        std::string_view recipe = {}) noexcept;

// What quantize() makes. Equal options, shapes and numbers give equal bytes.
struct QuantizeOptions {
  std::string_view recipe = {};            // empty: the scheme's default, in which a tensor of zeros has scale 1
  std::int64_t group_size = 0;             // int4-group: inputs that share a scale; 0: 128
  bool symmetric = true;                   // int4-group: false stores zero points
  bool power_of_two_scales = false;        // fp8-block
  DType compute_dtype = DType::undefined;  // the weights are rounded to it first; undefined: their own type
  NonFiniteWeights nonfinite = NonFiniteWeights::error;
  // Schemes with a scale for the whole tensor: its largest magnitude, if several share a scale; rounded as the weights.
  std::optional<float> maximum = {};
  Clip clip =
      Clip::none;  // not with one scale for the whole tensor, nor GGUF's blocks, which have searches of their own
  // How much squared errors of each column count, or of each column of each matrix; none is negative. Empty: the same.
  // For Clip::mse, and for ggml's q2_k to q6_k, iq4_nl and iq4_xs, which have ggml's bytes with the same importance
  // matrix; others ignore it.
  std::span<const float> importance = {};
};

// A weight in blocks, with the memory of its parts; of its codes in Execution::memory. Codes are packed low bits first
// and scales are in rows of blocks, as `coding` says; files of some spellings swap nibbles, or have scales in tiles.
struct QuantizedTensor {
  const QuantizeRecipe* recipe = nullptr;
  BlockCoding coding = {};
  Shape shape = {};  // of the weight
  std::int64_t block_rows = 1;
  std::int64_t block_columns = 0;
  DType codes_dtype = DType::uint8;
  Shape codes_shape = {};
  ResultVector<std::byte> codes = {};
  DType scales_dtype = DType::undefined;  // float8_e8m0fnu, float8_e4m3fn or float32; undefined: inside of the codes
  Shape scales_shape = {};
  std::vector<std::byte> scales = {};
  std::optional<float> global_scale = {};     // as the tool stores it; coding.global tells a factor from a divisor
  std::vector<std::int8_t> zero_points = {};  // one for each scale; empty: none

  // Borrows the parts, for dequantize().
  [[nodiscard]] TENSORCAST_API BlockTensor tensor() const& TENSORCAST_LIFETIMEBOUND;
  BlockTensor tensor() const&& = delete;
};

// Quantizes float32, bfloat16 or float16 weights of one or more dimensions, in blocks along the last one, as the
// recipe's tool does, byte for byte, unless the request clips. Each step is one operation in float32 or in the weights'
// type, in the tool's order.
//
// Blocks at the edges may be shorter, except GGUF's. The whole tensor, of all its matrices, has one tensor scale.
// Errors: invalid_argument (no such scheme or recipe, options that the scheme lacks, sizes, types), out_of_range (NaN
// or infinity, which names the element).
// Cost: O(count), one pass, or two if there is a tensor scale; allocates the result.
[[nodiscard]] TENSORCAST_API Result<QuantizedTensor> quantize(const TensorView& weight, std::string_view scheme,
                                                              const QuantizeOptions& options = {},
                                                              const Execution& execution = {});
// The same for a format of the table. Those of GGUF: its blocks, by ggml's recipe; others: as their scheme.
[[nodiscard]] TENSORCAST_API Result<QuantizedTensor> quantize(const TensorView& weight, const BlockFormat& format,
                                                              const QuantizeOptions& options = {},
                                                              const Execution& execution = {});

// The caller's memory for all rows of a weight, of the sizes of QuantizedSizes.
struct QuantizedBuffers {
  std::span<std::byte> codes = {};
  std::span<std::byte> scales = {};
  std::span<std::int8_t> zero_points = {};
};

// The bytes of a weight in blocks, for quantize_rows().
struct QuantizedSizes {
  std::int64_t rows = 0;        // the product of all dimensions but the last
  std::size_t codes = 0;        // bytes of all rows
  std::size_t row_codes = 0;    // of one row
  std::size_t scales = 0;       // bytes; 0: inside of the codes
  std::size_t zero_points = 0;  // bytes; 0: none
  std::int64_t block_rows = 1;  // rows that share scales
  DType codes_dtype = DType::uint8;
  DType scales_dtype = DType::undefined;
  std::optional<float> global_scale = {};  // for options.maximum, if the format has one; as QuantizedTensor has it
  const QuantizeRecipe* recipe = nullptr;
  // The weight as its rows are written, without its bytes and its global scale. As in QuantizedTensor, codes have their
  // low bits first and scales are in rows of blocks, so layout.coding may differ from that of a format of files.
  BlockTensor layout = {};

  // Borrows the buffers and the global scale, for dequantize() and prepare_dequantize().
  [[nodiscard]] TENSORCAST_API BlockTensor tensor(const QuantizedBuffers& buffers) const& TENSORCAST_LIFETIMEBOUND;
  BlockTensor tensor(const QuantizedBuffers& buffers) const&& = delete;
};

// A format that is not GGUF's has the coding of QuantizedSizes::layout, as readers of rows take the format's.
// Errors: as quantize(); invalid_argument: a format of another coding; a maximum whose global scale depends on a
// compute_dtype that is not set.
[[nodiscard]] TENSORCAST_API Result<QuantizedSizes> quantized_sizes(const BlockFormat& format, const Shape& shape,
                                                                    const QuantizeOptions& options = {});
[[nodiscard]] TENSORCAST_API Result<QuantizedSizes> quantized_sizes(std::string_view scheme, const Shape& shape,
                                                                    const QuantizeOptions& options = {});

// Quantizes the rows of `src` to rows [first_row, first_row + src's rows) of a weight in the caller's memory, on the
// calling thread, as rows of a key-value cache are. The bytes are those of quantize() of the whole weight; but only a
// call that has all rows tells that a weight is zero, whose default scales are 1.
//
// Sizes    src.shape is [..., columns]; the buffers hold all rows of the weight, of one matrix.
// Overlap  the buffers share no memory with each other, nor with src.
// Rows     that share scales come in one call: multiples of QuantizedSizes::block_rows, or up to the last row.
// Maximum  a format with a scale for the whole weight needs options.maximum, as rows do not tell it: the largest
//          magnitude of all rows, from calibration.
// Errors   as quantize(), and invalid_argument: buffers of other sizes, rows beyond them, no maximum. An element counts
//          from the first of `src`.
// Cost     O(count). The first call of a thread with a format, options and columns allocates, later ones do not, except
//          with Clip::mse or importance.
[[nodiscard]] TENSORCAST_API Result<void> quantize_rows(const BlockFormat& format, const TensorView& src,
                                                        std::int64_t first_row, const QuantizedBuffers& out,
                                                        const QuantizeOptions& options = {});
[[nodiscard]] TENSORCAST_API Result<void> quantize_rows(std::string_view scheme, const TensorView& src,
                                                        std::int64_t first_row, const QuantizedBuffers& out,
                                                        const QuantizeOptions& options = {});

// The codes one a byte, in the low bits: floating-point codes, integers in two's complement. Not of GGUF.
[[nodiscard]] TENSORCAST_API Result<std::vector<std::byte>> element_codes(const QuantizedTensor& tensor);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
