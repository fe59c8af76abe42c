#include "block/code_packing.hpp"
// SPDX-License-Identifier: Apache-2.0
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
  } else {
    kernels::ops_of(active_target()).pack_six_bits(reinterpret_cast<const std::byte*>(codes.data()), packed, count);
  }
}

void unpack_stream(int bits, const std::byte* packed, std::span<std::uint8_t> codes) noexcept {
  if (bits == 8) {
    std::memcpy(codes.data(), packed, codes.size());
    return;
  }
  if (bits == 4) {
    for (std::size_t i = 0; i < codes.size() / 2; ++i) {
      const unsigned pair = std::to_integer<unsigned>(packed[i]);
      codes[2 * i] = static_cast<std::uint8_t>(pair & 15u);
      codes[2 * i + 1] = static_cast<std::uint8_t>(pair >> 4);
    }
    if (codes.size() % 2 != 0) codes.back() = std::to_integer<std::uint8_t>(packed[codes.size() / 2] & std::byte{15});
    return;
  }
  const auto width = static_cast<std::size_t>(bits);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t byte = i * width / 8;
    const std::size_t shift = i * width % 8;
    unsigned code = std::to_integer<unsigned>(packed[byte]) >> shift;
    if (shift + width > 8) code |= std::to_integer<unsigned>(packed[byte + 1]) << (8 - shift);
    codes[i] = static_cast<std::uint8_t>(code & ((1u << width) - 1));
  }
}

}  // namespace tensorcast::block
