// SPDX-License-Identifier: Apache-2.0
// The loops that look up in a table. Each instruction set has some (Ops::table_loops); scalar loops do the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tensorcast::kernels::byte_table {

// A table holds the output of every index: of one source element, or of several that are packed together. It lies in
// planes: all lowest bytes that are looked up, then all next bytes, and so on. Scalar loops have whole outputs instead.
struct Loop {
  int index_bits = 8;   // 8: a byte. 4, 2: of a packed source. 1: a bool, whose byte is zero or not
  int output_bits = 8;  // of one index: 2 to 64; of scalar loops up to 256
  int zero_bytes = 0;   // the lowest bytes of an output are zero,
  int table_bytes = 1;  // these are looked up, and those above repeat the last of them, as a sign does
  bool is_scalar = false;
  bool is_split = false;      // looks up each half of a byte: split_table.hpp; table_bytes is 2
  bool has_odd_code = false;  // of a split table: one code that no rule has

  // Converts `count` elements, `index_elements` to an index. Source and target are disjoint or, if the target is not
  // wider, equal. Unused bits of the last byte written are unspecified.
  using Run = void (*)(const std::byte* src, std::byte* dst, std::size_t count, int index_elements,
                       const std::byte* table);
  Run run = nullptr;

  [[nodiscard]] constexpr int output_bytes() const { return output_bits < 8 ? 1 : output_bits / 8; }
  [[nodiscard]] constexpr std::size_t entries() const { return index_bits == 8 ? 256 : 16; }
};

// Cheaper ones first.
using Loops = std::span<const Loop>;

// From bytes to outputs of all sizes.
[[nodiscard]] Loops scalar_loops() noexcept;

}  // namespace tensorcast::kernels::byte_table
