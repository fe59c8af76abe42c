// SPDX-License-Identifier: Apache-2.0
#include "io/sha256.hpp"

#include <algorithm>

namespace tensorcast::io {

void Sha256::update(std::span<const std::byte> bytes) noexcept {
  const std::size_t pending = total_bytes_ % sha256_block_bytes;
  total_bytes_ += bytes.size();
  if (pending != 0) {
    const std::span<const std::byte> head = bytes.first(std::min(bytes.size(), sha256_block_bytes - pending));
    std::ranges::copy(head, pending_.begin() + static_cast<std::ptrdiff_t>(pending));
    if (pending + head.size() < sha256_block_bytes) return;
    hash_blocks_(state_, pending_.data(), 1);
    bytes = bytes.subspan(head.size());
  }
  const std::size_t blocks = bytes.size() / sha256_block_bytes;
  hash_blocks_(state_, bytes.data(), blocks);
  std::ranges::copy(bytes.subspan(blocks * sha256_block_bytes), pending_.begin());
}

std::string Sha256::digest() {
  // One bit, zeros up to 8 bytes before the end of a block, and the number of bits in big-endian order.
  const std::uint64_t bits = total_bytes_ * 8;
  const std::size_t pending = total_bytes_ % sha256_block_bytes;
  std::array<std::byte, 2 * sha256_block_bytes> end{std::byte{0x80}};
  const std::size_t zeros_end = (pending + 1 + 8 <= sha256_block_bytes ? 1 : 2) * sha256_block_bytes - 8 - pending;
  for (std::size_t i = 0; i < 8; ++i) end[zeros_end + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(std::span(end).first(zeros_end + 8));

  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += digits[word >> shift & 0xF];
  }
  return text;
}

std::string sha256_of(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.digest();
}

}  // namespace tensorcast::io
