// SPDX-License-Identifier: Apache-2.0
#include "codec/packing.hpp"

#include <bit>
#include <cstring>

namespace tensorcast::codec {

static_assert(std::endian::native == std::endian::little, "codes are read from memory as the CPU orders their bytes");

std::uint64_t load_code(DType dtype, const std::byte* data, std::size_t index) noexcept {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  std::uint64_t code = 0;
  if (bits >= 8) {
    std::memcpy(&code, data + index * (bits / 8), bits / 8);
    return code;
  }
  const std::size_t first_bit = index * bits;
  const std::size_t shift = first_bit % 8;
  const std::byte* const byte = data + first_bit / 8;
  code = std::to_integer<std::uint64_t>(*byte) >> shift;
  if (shift + bits > 8) code |= std::to_integer<std::uint64_t>(byte[1]) << (8 - shift);
  return code & ((std::uint64_t{1} << bits) - 1);
}

void store_code(DType dtype, std::byte* data, std::size_t index, std::uint64_t code) noexcept {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  if (bits >= 8) {
    std::memcpy(data + index * (bits / 8), &code, bits / 8);
    return;
  }
  const std::size_t first_bit = index * bits;
  const std::size_t shift = first_bit % 8;
  const unsigned mask = ((1u << bits) - 1) << shift;
  const auto shifted = static_cast<unsigned>(code << shift) & mask;
  std::byte* const byte = data + first_bit / 8;
  byte[0] = (byte[0] & static_cast<std::byte>(~mask)) | static_cast<std::byte>(shifted);
  if (mask > 0xff) byte[1] = (byte[1] & static_cast<std::byte>(~mask >> 8)) | static_cast<std::byte>(shifted >> 8);
}

void clear_tail(DType dtype, std::byte* data, std::size_t count) noexcept {
  const auto used_bits = count % 8 * static_cast<std::size_t>(bit_width(dtype)) % 8;
  if (used_bits != 0) data[storage_bytes(dtype, count) - 1] &= static_cast<std::byte>((1u << used_bits) - 1);
}

}  // namespace tensorcast::codec
