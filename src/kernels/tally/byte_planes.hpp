// Sums over the bytes of a block of functions of the byte, each given as a table: a plane. Several planes a pass, by
// the table lookup of AVX-512 VBMI, over blocks that are in the first-level cache. And maxima of such functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorcast/target.hpp"

namespace tensorcast::kernels {

// A bit for each byte.
struct ByteSet {
  alignas(32) std::array<std::uint64_t, 4> bits = {};
};

// How values depend on bit 7, the sign of float8: not at all, zero with it or without it, or in any way.
enum class PlaneBytes : std::uint8_t { same, without_bit_7, with_bit_7, different };
inline constexpr std::size_t plane_kinds = 4;

struct BytePlane {
  alignas(64) std::array<std::int8_t, 256> value = {};
  ByteSet nonzero;
  PlaneBytes bytes = PlaneBytes::same;
  // Two planes of zeros and ones in one: the value is the first one less 128 times the second.
  bool is_pair = false;
  // The squares of the values are summed, which are not negative.
  bool is_squared = false;

  void set_nonzero() noexcept;  // from the values
  [[nodiscard]] bool is_zero() const noexcept { return nonzero.bits == ByteSet().bits; }
};

// In parts that add up, as the lanes of a register: adding them up for each block would take as long as a plane.
struct PlaneSum {
  using Lanes = std::array<std::int64_t, 8>;
  alignas(64) Lanes first = {};
  alignas(64) Lanes second = {};  // of a pair only

  void add(const PlaneSum& other) noexcept {
    for (std::size_t i = 0; i < first.size(); ++i) first[i] += other.first[i];
    for (std::size_t i = 0; i < second.size(); ++i) second[i] += other.second[i];
  }
  [[nodiscard]] static std::int64_t total(const Lanes& lanes) noexcept {
    std::int64_t sum = 0;
    for (const std::int64_t lane : lanes) sum += lane;
    return sum;
  }
};

// Planes of one kind that one pass over the bytes sums up.
inline constexpr std::size_t planes_per_pass = 4;

// At most 32 planes, for sums of all of them.
class PlaneSet {
 public:
  static constexpr std::size_t max_planes = 32;

  PlaneSet() = default;
  explicit PlaneSet(std::vector<BytePlane> planes);

  std::vector<BytePlane> planes;
  // A bit for each plane.
  std::array<std::uint32_t, plane_kinds> of_kind = {};
  std::uint32_t pairs = 0, squared = 0;
};

// A function of which the greatest value is asked for.
struct ByteRanks {
  alignas(64) std::array<std::uint8_t, 256> value = {};
  std::uint8_t greatest = 0;
};

// Whether the following may be called.
[[nodiscard]] bool has_byte_planes(Target target) noexcept;

// What bytes may be in a block, by their ends, as integers with a sign. Fetches as many bytes that follow the block,
// which may be no one's.
[[nodiscard]] ByteSet possible_bytes(const std::byte* data, std::size_t bytes) noexcept;

// The same by magnitudes: bytes with bit 7 may have any that are there.
[[nodiscard]] ByteSet possible_magnitudes(const std::byte* data, std::size_t bytes) noexcept;

// Adds to the sum of each plane. No other bytes are in the block than are possible.
void sum_planes(const PlaneSet& set, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                PlaneSum* sums) noexcept;

// Makes `greatest` the greatest rank in the block, if that is greater.
void raise_rank(const ByteRanks& ranks, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                std::uint8_t& greatest) noexcept;

}  // namespace tensorcast::kernels
