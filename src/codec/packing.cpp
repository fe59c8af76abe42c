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
  const std::size_t per_byte = 8 / bits;
  const auto shift = index % per_byte * bits;
  return std::to_integer<std::uint64_t>(data[index / per_byte]) >> shift & ((std::uint64_t{1} << bits) - 1);
}

void store_code(DType dtype, std::byte* data, std::size_t index, std::uint64_t code) noexcept {
  const auto bits = static_cast<std::size_t>(bit_width(dtype));
  if (bits >= 8) {
    std::memcpy(data + index * (bits / 8), &code, bits / 8);
    return;
  }
  const std::size_t per_byte = 8 / bits;
  const auto shift = index % per_byte * bits;
  const auto mask = static_cast<unsigned>(((1u << bits) - 1) << shift);
  std::byte& byte = data[index / per_byte];
  byte = (byte & static_cast<std::byte>(~mask)) | static_cast<std::byte>(code << shift & mask);
}

void clear_tail(DType dtype, std::byte* data, std::size_t count) noexcept {
  const auto used_bits = count % 8 * static_cast<std::size_t>(bit_width(dtype)) % 8;
  if (used_bits != 0) data[storage_bytes(dtype, count) - 1] &= static_cast<std::byte>((1u << used_bits) - 1);
}

}  // namespace tensorcast::codec
