// Sums and maxima over the bytes of a block of a function of the byte, given as a table: a plane. One pass a plane, by
// the table lookup of AVX-512 VBMI, over blocks that are in the first-level cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

struct BytePlane {
  alignas(64) std::array<std::uint8_t, 256> value = {};  // of each byte
  bool is_symmetric = false;                             // bytes that differ in bit 7 have the same value: cheaper
  std::uint8_t greatest = 0;
  // Without their bit 7, bytes with a value other than 0 are within these.
  std::uint8_t first = 0, last = 127;

  void set_facts() noexcept;  // all of the above, from the values
};

// Which bytes there are in a block, all without their bit 7. Of float8, that is which magnitudes.
struct ByteRange {
  std::uint8_t least = 1, greatest = 127;  // of those that are not 0
  bool has_zero = true;

  // False where all of the block have the value 0.
  [[nodiscard]] bool meets(const BytePlane& plane) const noexcept {
    return (has_zero && plane.first == 0) || (plane.last >= least && plane.first <= greatest);
  }
};

// Whether the following may be called.
[[nodiscard]] bool has_byte_planes(Target target) noexcept;

[[nodiscard]] std::uint64_t sum_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) noexcept;
[[nodiscard]] ByteRange range_of(const std::byte* data, std::size_t bytes) noexcept;
[[nodiscard]] std::uint8_t greatest_in_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) noexcept;

}  // namespace tensorcast::kernels
