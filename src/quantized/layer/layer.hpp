// SPDX-License-Identifier: Apache-2.0
// A layer of a quantized checkpoint: the tensors that are one weight together, and how they become its numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "block/format/codings.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {

using block::inverse_127;
using block::is_integer;
using block::is_plain_float;

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

// What tools do to codes beside what a BlockCoding says.
struct Deviations {
  bool is_plain = false;            // no codes: a weight as it is, which is to be quantized
  bool has_whole_codes = false;     // each word of 32 bits has 32 / bits whole codes, its other bits are unused
  int integer_bits = 0;             // integers of so few bits, one a byte; 0: as coding.bits says
  bool is_grid_transposed = false;  // scales and biases are [..., inputs / group, outputs]
  // ComfyUI's ConvRot: groups of so many inputs were rotated by a Hadamard matrix, which is undone; a power of 4.
  std::int64_t rotation = 0;

  friend bool operator==(const Deviations&, const Deviations&) = default;
};

// Whether the codes, and the words of zero points, are those of a weight's columns: GPTQ and AWQ.
[[nodiscard]] constexpr bool is_in_columns(const BlockCoding& coding) noexcept {
  return coding.packing == BlockPacking::words_down || coding.packing == BlockPacking::awq;
}

// The element of integers to which nothing was added, as a layer has them.
[[nodiscard]] constexpr DType signed_element(DType element) noexcept {
  return element == DType::uint8 ? DType::int8 : element;
}

// What a scale of the whole tensor is, where there is one.
[[nodiscard]] constexpr GlobalScale global_kind(const BlockCoding& coding) noexcept {
  return coding.global == GlobalScale::divisor ? GlobalScale::divisor : GlobalScale::factor;
}

// A weight in blocks, wherever its parts lie.
struct BlockWeight {
  std::string name;                 // such as "model.layers.0.mlp.up_proj.weight"
  std::string scheme;               // "fp8-block", "nvfp4", "int4-group", "nf4"
  std::vector<std::int64_t> shape;  // as a rule [..., outputs, inputs]
  std::int64_t block_rows = 0;      // 0: one scale for all
  std::int64_t block_columns = 0;   // along the inputs
  BlockCoding coding = {.element = DType::float8_e4m3fn};
  Deviations deviations;
  bool dynamic_activations = false;  // of a layer to write: loaders quantize its inputs while the model runs

  [[nodiscard]] std::uint64_t columns() const noexcept;
  // All rows of all matrices.
  [[nodiscard]] std::uint64_t rows() const noexcept;
  [[nodiscard]] std::uint64_t matrices() const noexcept;
  // Scales of a row of blocks, and rows of blocks of all matrices; 1 and 1 if there is one scale.
  [[nodiscard]] std::uint64_t grid_columns() const noexcept;
  [[nodiscard]] std::uint64_t grid_rows() const noexcept;

  friend bool operator==(const BlockWeight&, const BlockWeight&) = default;
};

struct Layer : BlockWeight {
  std::string_view spelling;      // who writes tensors so: a row of the table in spelling.cpp
  std::int64_t nested_block = 0;  // bitsandbytes: scales that share a scale
  float nested_offset = 0.0F;     // added to such scales
  std::vector<Part> parts;        // the codes are first
  std::string problem;            // why it cannot be decoded: a contradiction, or a known method that is not exact
  std::string problem_tensor;     // the tensor that the problem is in
  // The problem is a tensor beside the codes, such as a change of the basis, that other spellings have, too.
  bool other_basis = false;
  bool symmetric = false;  // of a layer to write: zero points that it has are the middle of the codes

  [[nodiscard]] bool is_quantized() const noexcept { return !deviations.is_plain; }
  // Experts that are stored as [experts, inputs, outputs], as transformers has gpt-oss: blocks run along the middle
  // axis.
  [[nodiscard]] bool is_transposed() const noexcept { return coding.transposed && shape.size() > 1; }
  // Bits of an element, which may lie in a whole byte.
  [[nodiscard]] int bits() const noexcept {
    return deviations.integer_bits == 0 ? coding.bits : deviations.integer_bits;
  }
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
