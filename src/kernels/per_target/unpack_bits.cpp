// SPDX-License-Identifier: Apache-2.0
// Codes of one to seven bits, one after the other, to one a byte.
#include <cstring>
#include <utility>

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

constexpr std::size_t lanes = kRegisterBytes / 8;

template <std::size_t... i>
SIMD_INLINE U64 load_lanes(const std::byte* src, std::size_t step, std::index_sequence<i...>) {
  const auto lane = [&](std::size_t at) SIMD_INLINE_LAMBDA {
    std::uint64_t bits = 0;
    std::memcpy(&bits, src + at * step, sizeof(bits));
    return bits;
  };
  return U64{lane(i)...};
}

constexpr std::uint64_t low_bits(std::size_t n) { return (std::uint64_t{1} << n) - 1; }

// The first `size` bits of lanes of 2 * `lane` bits stay, and the next ones move to the middle.
struct Apart {
  U64 low, high;
  int shift;

  Apart(std::size_t size, std::size_t lane) : shift(static_cast<int>(lane - size)) {
    std::uint64_t all = 0;
    for (std::size_t at = 0; at < 64; at += 2 * lane) all |= low_bits(size) << at;
    low = all - U64{};
    high = (all << size) - U64{};
  }
  SIMD_INLINE U64 operator()(U64 bits) const { return (bits & low) | (bits & high) << shift; }
};

}  // namespace

void unpack_bits(int bits, const std::byte* src, std::byte* dst, std::size_t count) noexcept {
  // Eight codes take as many bytes as a code has bits.
  const auto width = static_cast<std::size_t>(bits);
  const Apart fours(4 * width, 32), pairs(2 * width, 16), singles(width, 8);
  const auto unpacked = [&](const std::byte* codes) SIMD_INLINE_LAMBDA {
    return singles(pairs(fours(load_lanes(codes, width, std::make_index_sequence<lanes>{}))));
  };
  const std::size_t read = (lanes - 1) * width + sizeof(std::uint64_t);
  std::size_t bytes = (count * width + 7) / 8;
  for (; count >= kRegisterBytes && bytes >= read; count -= kRegisterBytes) {
    store(dst, unpacked(src));
    src += lanes * width;
    bytes -= lanes * width;
    dst += kRegisterBytes;
  }
  while (count != 0) {
    std::byte rest[kRegisterBytes] = {}, codes[kRegisterBytes];
    const std::size_t n = count < kRegisterBytes ? count : kRegisterBytes, rest_bytes = (n * width + 7) / 8;
    std::memcpy(rest, src, rest_bytes);
    store(codes, unpacked(rest));
    std::memcpy(dst, codes, n);
    src += rest_bytes;
    dst += n;
    count -= n;
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
