// SPDX-License-Identifier: Apache-2.0
// Conversions of types of six bits, through codes of one byte each, in pieces that stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dtype/dtype_table.hpp"
#include "kernels/byte_table/byte_table.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels::byte_table {

// Has all values of both types of six bits, so its kernels do the rest.
inline constexpr DType six_bit_hub = DType::float8_e4m3fn;

// The hub's codes of a type of six bits, in a static table of 64.
[[nodiscard]] const std::uint8_t* hub_codes(DType from) noexcept;

inline constexpr std::size_t six_bit_piece = 2048;  // elements; whole bytes of any type

// Calls convert(hub codes, dst, count) for each piece of a source of six bits.
template <class Convert>
void unpack_pieces(const Ops& ops, DType from, const std::byte* src, std::byte* dst, DType to, std::size_t count,
                   const Convert& convert) {
  const std::uint8_t* const table = hub_codes(from);
  const auto to_bits = static_cast<std::size_t>(row(to).bits);
  alignas(64) std::byte codes[six_bit_piece];
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(six_bit_piece, count);
    ops.look_up_six_bits(src, codes, step, table);
    convert(codes, dst, step);
    src += step * 6 / 8;
    dst += step * to_bits / 8;
  }
}

// Calls convert(src, codes, count) for each piece, which writes codes of six bits, one a byte, and packs them.
template <class Convert>
void pack_pieces(const Ops& ops, const std::byte* src, DType from, std::byte* dst, std::size_t count,
                 const Convert& convert) {
  const auto from_bits = static_cast<std::size_t>(row(from).bits);
  alignas(64) std::byte codes[six_bit_piece];
  for (std::size_t step = 0; count != 0; count -= step) {
    step = std::min(six_bit_piece, count);
    convert(src, codes, step);
    ops.pack_six_bits(codes, dst, step);
    src += step * from_bits / 8;
    dst += step * 6 / 8;
  }
}

}  // namespace tensorcast::kernels::byte_table
