// SPDX-License-Identifier: Apache-2.0
// Tiles of gpt-oss' codes, transposed: rows of the weight whose codes have a scale each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block/decode/row_reader.hpp"

namespace tensorcast::block {

// Scales are powers of two, which add to the exponents of results: so bytes of codes and scales are transposed, and no
// numbers, which take four times as much.
class TransposedExperts {
 public:
  static constexpr std::size_t rows = 512;     // of a weight, at most
  static constexpr std::size_t row_unit = 32;  // those that share scales

  // Reports whether codes and scales are of a kind that tiles have, and `to` a type of their results.
  [[nodiscard]] static bool can_transpose(const Checked& checked, DType to) noexcept;

  // Precondition: can_transpose(). The tensor of `checked` outlives the tile.
  TransposedExperts(const Checked& checked, DType to);

  // As TransposedTile::load(). Returns 0 if a result would be neither zero nor normal.
  std::size_t load(std::size_t matrix, std::size_t row, std::size_t count, std::size_t column);

  // As TransposedTile::read().
  void read(std::size_t row, std::byte* out) const { read(row, out, false); }
  bool write(std::size_t row, std::byte* out) const {
    read(row, out, true);
    return true;
  }

 private:
  void read(std::size_t row, std::byte* out, bool bypasses_cache) const;

  static constexpr std::size_t most_depth = 1024, blocks = rows / row_unit;
  static constexpr std::size_t stride = most_depth + 64;  // rows of a power of two would fall on the same lines

  const Checked& from_;
  const kernels::Ops& ops_ = kernels::ops_of(active_target());
  int mantissa_bits_;
  std::uint8_t least_, most_;  // scales under which all results are normal
  std::array<std::uint16_t, 16> results_ = {};
  std::size_t depth_ = 0;
  std::vector<std::byte> codes_, scales_;
  std::vector<std::uint16_t> powers_;
};

}  // namespace tensorcast::block
