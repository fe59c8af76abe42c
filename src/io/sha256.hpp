// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/sha256_blocks.hpp"

namespace tensorcast::io {

// Uses the CPU's instructions for SHA-256 if it has them: an eighth of the time.
class Sha256 {
 public:
  explicit Sha256(HashBlocks hash_blocks = sha256_ways().front().hash_blocks) noexcept : hash_blocks_(hash_blocks) {}
  void update(std::span<const std::byte> bytes) noexcept;
  void update(std::string_view text) noexcept { update(std::as_bytes(std::span(text))); }
  // Returns 64 hexadecimal digits. Call once.
  [[nodiscard]] std::string digest();

 private:
  HashBlocks hash_blocks_;
  // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
  Sha256State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t total_bytes_ = 0;
  std::array<std::byte, sha256_block_bytes> pending_{};  // total_bytes_ % 64 bytes that do not fill a block yet
};

[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace tensorcast::io
