// SPDX-License-Identifier: Apache-2.0
// Tables of 256 outputs of two bytes that are sums of tables of 16, one for each half of the index. Those of float8 to
// wider floats are: a sign, exponent and significand that are moved and biased, apart from subnormal numbers,
// infinities and NaN, which are among the first and last eight magnitudes. Where a byte is looked up in 16 entries with
// one instruction and in 256 with about 40, as by AVX2, this takes 22 instructions for 32 codes instead of 80.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace tensorcast::kernels::byte_table {

// The output of a code c with halves h and l, both bytes modulo 256:
//   rare, c % 128 below 8 or from 120 on    low = rare_low[l], high = rare_high[l] | (c & 128)
//   others                                  low = low_of_low[l], high = high_of_high[h] + high_of_low[l]
// The odd code, 128, XORs its two bytes to what these rules give.
struct SplitTable {
  std::uint8_t low_of_low[16], high_of_high[16], high_of_low[16], rare_low[16], rare_high[16];
  std::uint8_t odd_low = 0, odd_high = 0;

  static constexpr std::uint8_t odd_code = 128;
  static constexpr bool is_rare(unsigned code) { return ((code + 8) & 0x70) == 0; }

  [[nodiscard]] constexpr std::uint16_t operator()(unsigned code) const {
    const unsigned l = code & 15, odd = code == odd_code ? 1 : 0;
    const unsigned low = is_rare(code) ? rare_low[l] : low_of_low[l];
    const unsigned high = is_rare(code) ? rare_high[l] | (code & 128) : high_of_high[code >> 4] + high_of_low[l];
    return static_cast<std::uint16_t>((low ^ odd * odd_low) | ((high ^ odd * odd_high) & 255) << 8);
  }
};

// Returns the table of these outputs, if they have one.
[[nodiscard]] constexpr std::optional<SplitTable> split(const std::array<std::uint16_t, 256>& outputs) {
  SplitTable table = {};
  const auto low = [&](unsigned code) { return static_cast<std::uint8_t>(outputs[code]); };
  const auto high = [&](unsigned code) { return static_cast<std::uint8_t>(outputs[code] >> 8); };
  for (unsigned half = 0; half < 16; ++half) {
    const unsigned regular = half + 16;  // has this lower half
    const unsigned rare = half < 8 ? half : half + 112;
    table.low_of_low[half] = low(regular);
    table.high_of_low[half] = static_cast<std::uint8_t>(high(regular) - high(16));
    table.rare_low[half] = low(rare);
    table.rare_high[half] = high(rare);
  }
  for (unsigned half = 0; half < 16; ++half) {
    const unsigned l = SplitTable::is_rare(half * 16) ? 8 : 0;
    table.high_of_high[half] = static_cast<std::uint8_t>(high(half * 16 + l) - table.high_of_low[l]);
  }
  const auto odd = static_cast<std::uint16_t>(table(SplitTable::odd_code) ^ outputs[SplitTable::odd_code]);
  table.odd_low = static_cast<std::uint8_t>(odd);
  table.odd_high = static_cast<std::uint8_t>(odd >> 8);
  for (unsigned code = 0; code < 256; ++code) {
    if (table(code) != outputs[code]) return std::nullopt;
  }
  return table;
}

}  // namespace tensorcast::kernels::byte_table
