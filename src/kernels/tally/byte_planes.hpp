// Sums over the bytes of a block of functions of the byte, each given as a table: a plane. Several planes a pass, by
// the table lookup of AVX-512 VBMI, over blocks that are in the first-level cache. And maxima of such functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

// A bit for each byte.
struct ByteSet {
  alignas(32) std::array<std::uint64_t, 4> bits = {};
};

// How values depend on bit 7, the sign of float8: not at all, zero with it or without it, or in any way.
enum class PlaneBytes : std::uint8_t { same, without_bit_7, with_bit_7, different };

struct BytePlane {
  alignas(64) std::array<std::int8_t, 256> value = {};
  ByteSet nonzero;
  PlaneBytes bytes = PlaneBytes::same;
  // Two planes of zeros and ones in one: the value is the first one less 128 times the second.
  bool is_pair = false;

  void set_nonzero() noexcept;  // from the values
  [[nodiscard]] bool is_zero() const noexcept { return nonzero.bits == ByteSet().bits; }
};

struct PlaneSum {
  std::int64_t first = 0, second = 0;  // the second of a pair only
};

// A function of which the greatest value is asked for.
struct ByteRanks {
  alignas(64) std::array<std::uint8_t, 256> value = {};
  std::uint8_t greatest = 0;
};

// Whether the following may be called.
[[nodiscard]] bool has_byte_planes(Target target) noexcept;

// The bytes that may be in a block, by their ends: no greater magnitudes of float8, nor of integers with a sign.
// Fetches as many bytes that follow it, which may be no one's.
[[nodiscard]] ByteSet possible_bytes(const std::byte* data, std::size_t bytes) noexcept;

// Adds to the sum of each of at most 255 planes. `possible`: no other bytes are in the block.
void sum_planes(std::span<const BytePlane> planes, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                PlaneSum* sums) noexcept;

// Makes `greatest` the greatest rank in the block, if that is greater.
void raise_rank(const ByteRanks& ranks, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                std::uint8_t& greatest) noexcept;

}  // namespace tensorcast::kernels
