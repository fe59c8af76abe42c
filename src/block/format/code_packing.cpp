// SPDX-License-Identifier: Apache-2.0
#include "block/format/code_packing.hpp"

#include <cstring>

#include "kernels/ops.hpp"

namespace tensorcast::block {

void pack_stream(int bits, std::span<const std::uint8_t> codes, std::byte* packed) noexcept {
  const std::size_t count = codes.size();
  if (bits == 8) {
    std::memcpy(packed, codes.data(), count);
  } else if (bits == 4) {
    for (std::size_t i = 0; i < count / 2; ++i) {
      packed[i] = static_cast<std::byte>(codes[2 * i] | codes[2 * i + 1] << 4);
    }
    if (count % 2 != 0) packed[count / 2] = static_cast<std::byte>(codes[count - 1]);
  } else if (bits == 6) {
    kernels::ops_of(active_target()).pack_six_bits(reinterpret_cast<const std::byte*>(codes.data()), packed, count);
  } else {
    std::uint32_t held = 0;
    int held_bits = 0;
    for (const std::uint8_t code : codes) {
      held |= std::uint32_t{code} << held_bits;
      for (held_bits += bits; held_bits >= 8; held_bits -= 8, held >>= 8) *packed++ = static_cast<std::byte>(held);
    }
    if (held_bits > 0) *packed = static_cast<std::byte>(held);
  }
}

void unpack_stream(int bits, const std::byte* packed, std::span<std::uint8_t> codes) noexcept {
  if (bits == 8) {
    std::memcpy(codes.data(), packed, codes.size());
    return;
  }
  kernels::ops_of(active_target()).unpack_bits(bits, packed, reinterpret_cast<std::byte*>(codes.data()), codes.size());
}

void unpack_codes(const BlockCoding& coding, const std::byte* packed, std::span<std::uint8_t> codes) noexcept {
  unpack_stream(coding.bits, packed, codes);
  if (coding.element != DType::uint8) return;
  const auto half = static_cast<std::uint8_t>(1u << (coding.bits - 1));
  for (std::uint8_t& code : codes) code ^= half;
}

}  // namespace tensorcast::block
