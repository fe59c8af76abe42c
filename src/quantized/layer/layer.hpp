// SPDX-License-Identifier: Apache-2.0
// A layer of a quantized checkpoint: the tensors that are one weight together, and how they become its numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensorcast/block.hpp"

namespace tensorcast::quantized {

enum class PartRole : std::uint8_t {
  codes,
  scales,
  global_scale,   // one for the tensor, or for each expert
  zero_points,    //
  biases,         // MLX: added after the product
  group_index,    // GPTQ: the group of each input
  table,          // bitsandbytes: the numbers that codes stand for
  nested_scales,  // bitsandbytes: of scales that are codes
  nested_table,   //
  state,          // JSON or a marker that says how to decode, or a shape; not needed for the elements themselves
  activations,    // of use to the activations of a quantized layer alone
};

struct Part {
  PartRole role = PartRole::state;
  std::size_t tensor = 0;  // its index in the list of tensors
};

// Where codes lie. In words and in six bits, codes are a dense stream of bits, lowest first.
enum class Packing : std::uint8_t {
  bytes,             // one code a byte; of integers under 8 bits the byte is the integer, too
  low_nibble_first,  // two codes a byte, along the last axis
  high_nibble_first,
  stream,      // dense along the last axis, each row in whole words or bytes
  words,       // 32 / bits whole codes in each word of 32 bits, the other bits unused
  words_down,  // GPTQ: dense down the first axis, which is that of the inputs: the transpose is the weight
  awq,         // AWQ: eight columns a word, in the order 0 2 4 6 1 3 5 7; the transpose is the weight
  gguf,        // ggml's blocks, with their scales inside; the scheme names the kind
  flat,        // bitsandbytes: two codes a byte, high first, blocks over the whole tensor
  numbers,     // no codes: a weight as it is, which is to be quantized
};

// How the numbers come from codes: element * scale, each step one float32 operation. docs/checkpoints.md.
struct Coding {
  // As BlockCoding::element: int8 is two's complement in the low bits; undefined: an index into a table.
  DType element = DType::float8_e4m3fn;
  int bits = 8;
  Packing packing = Packing::bytes;
  int offset = 0;                   // integers without zero points: what stands for 0
  int zero_added = 0;               // added to stored zero points: GPTQ v1 stores one less
  DType scales = DType::undefined;  // float8_e8m0fnu or float8_e4m3fn, also as uint8; undefined: wider numbers
  GlobalScale global = GlobalScale::none;
  bool positive_zero = false;      // ModelOpt's NVFP4: the code of -0 means +0
  bool swizzled = false;           // scales in tiles of 128 x 4
  bool scales_down = false;        // scales and biases are [..., inputs / group, outputs]: the grid's transpose
  bool times_inverse_127 = false;  // bitsandbytes: of scales that are the largest magnitudes
  bool transposed = false;         // the weight is the transpose of [..., N, K] codes
  // ComfyUI's ConvRot: groups of so many inputs were rotated by a Hadamard matrix, which is undone; a power of 4.
  std::int64_t rotation = 0;

  friend bool operator==(const Coding&, const Coding&) = default;
};

// Of Coding::element.
[[nodiscard]] constexpr bool is_integer(DType element) noexcept {
  return element == DType::int8 || element == DType::uint8;
}

struct Layer {
  std::string name;                 // of the weight, such as "model.layers.0.mlp.up_proj.weight"
  std::string_view spelling;        // who writes tensors so: a row of the table in spelling.cpp
  std::string scheme;               // "fp8-block", "nvfp4", "int4-group", "nf4"
  std::vector<std::int64_t> shape;  // of the weight
  std::int64_t block_rows = 0;      // 0: one scale for all
  std::int64_t block_columns = 0;   // along the inputs
  Coding coding;
  std::int64_t nested_block = 0;  // bitsandbytes: scales that share a scale
  float nested_offset = 0.0F;     // added to such scales
  std::vector<Part> parts;        // the codes are first
  std::string problem;            // why it cannot be decoded: a contradiction, or a known method that is not exact
  std::string problem_tensor;     // the tensor that the problem is in
  // The problem is a tensor beside the codes, such as a change of the basis, that other spellings have, too.
  bool other_basis = false;
  bool symmetric = false;            // of a layer to write: zero points that it has are the middle of the codes
  bool dynamic_activations = false;  // of a layer to write: loaders quantize its inputs while the model runs

  [[nodiscard]] bool is_quantized() const noexcept { return coding.packing != Packing::numbers; }
  [[nodiscard]] std::size_t codes() const noexcept { return parts.front().tensor; }
  // Returns the place of a role in `parts`, if there is one.
  [[nodiscard]] std::optional<std::size_t> place_of(PartRole role) const noexcept {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].role == role) return i;
    }
    return std::nullopt;
  }
  // The same of its tensor.
  [[nodiscard]] std::optional<std::size_t> find(PartRole role) const noexcept {
    const std::optional<std::size_t> place = place_of(role);
    if (!place) return std::nullopt;
    return parts[*place].tensor;
  }
};

}  // namespace tensorcast::quantized
