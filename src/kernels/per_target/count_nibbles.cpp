// SPDX-License-Identifier: Apache-2.0
// Counts of each kind of half a byte, in registers: counters in memory would wait for each other's stores.
#include <algorithm>
#include <array>

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/simd.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_HAS_BYTE_LOOKUP

namespace {

constexpr std::size_t kinds = 16;
constexpr std::size_t table_count = kinds / 2;

// A table counts two kinds: it has 1 for one of them and 16 for the other, so that a byte sums both up to 15 times.
struct TwoKinds {
  alignas(16) std::byte entries[kinds] = {};
};
constexpr auto two_kinds = [] {
  std::array<TwoKinds, table_count> tables;
  for (std::size_t i = 0; i < table_count; ++i) {
    tables[i].entries[2 * i] = std::byte{1};
    tables[i].entries[2 * i + 1] = std::byte{16};
  }
  return tables;
}();

// Sums of neighbours, in 16-bit lanes.
SIMD_INLINE U16 add_neighbours(U8 bytes) { return (as<U16>(bytes) & 0xff) + (as<U16>(bytes) >> 8); }

// `bytes` is a multiple of a register, and the sums of all lanes fit 16 bits.
[[gnu::noinline]] void count_registers(const std::byte* data, std::size_t bytes, std::uint64_t* counts) {
  constexpr std::size_t registers_at_once = 7;  // of two half bytes each
  const Table16 tables[] = {Table16(two_kinds[0].entries), Table16(two_kinds[1].entries), Table16(two_kinds[2].entries),
                            Table16(two_kinds[3].entries), Table16(two_kinds[4].entries), Table16(two_kinds[5].entries),
                            Table16(two_kinds[6].entries), Table16(two_kinds[7].entries)};
  U16 sums[kinds] = {};
  for (const std::byte* const end = data + bytes; data != end;) {
    const std::size_t left = static_cast<std::size_t>(end - data) / kRegisterBytes;
    U8 pairs[table_count] = {};
    for (std::size_t i = std::min(left, registers_at_once); i != 0; --i, data += kRegisterBytes) {
      const U8 x = load<U8>(data);
      const U8 low = x & 0xf, high = as<U8>(as<U16>(x) >> 4) & 0xf;
#pragma GCC unroll 8
      for (std::size_t k = 0; k < table_count; ++k) pairs[k] += tables[k](low) + tables[k](high);
    }
#pragma GCC unroll 8
    for (std::size_t k = 0; k < table_count; ++k) {
      sums[2 * k] += add_neighbours(pairs[k] & 0xf);
      sums[2 * k + 1] += add_neighbours(as<U8>(as<U16>(pairs[k]) >> 4) & 0xf);
    }
  }
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    counts[kind] +=
        reduce(sums[kind], [](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(a + b); });
  }
}

}  // namespace

void count_nibbles(const std::byte* data, std::size_t bytes, std::uint64_t* counts) noexcept {
  constexpr std::size_t most_bytes = std::size_t{1} << 14;
  while (bytes >= kRegisterBytes) {
    const std::size_t step = std::min(bytes, most_bytes) / kRegisterBytes * kRegisterBytes;
    count_registers(data, step, counts);
    data += step;
    bytes -= step;
  }
  for (; bytes != 0; --bytes, ++data) {
    ++counts[std::to_integer<std::size_t>(*data & std::byte{0xf})];
    ++counts[std::to_integer<std::size_t>(*data >> 4)];
  }
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
