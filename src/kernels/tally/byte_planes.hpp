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

  void set_facts() noexcept;  // the two above, from the values
};

// Whether the following two may be called.
[[nodiscard]] bool has_byte_planes(Target target) noexcept;

[[nodiscard]] std::uint64_t sum_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) noexcept;
[[nodiscard]] std::uint8_t greatest_in_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) noexcept;

}  // namespace tensorcast::kernels
