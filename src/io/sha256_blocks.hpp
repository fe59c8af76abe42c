// SPDX-License-Identifier: Apache-2.0
// The inner step of SHA-256 (FIPS 180-4, section 6.2.2), for each instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tensorcast::io {

constexpr std::size_t sha256_block_bytes = 64;

using Sha256State = std::array<std::uint32_t, 8>;

// Replaces `state` by that after `count` blocks, which lie one after another from `blocks` on.
using HashBlocks = void (*)(Sha256State& state, const std::byte* blocks, std::size_t count);

struct Sha256Way {
  const char* name;
  HashBlocks hash_blocks;
};

// The ways that this CPU can run, the fastest first; the last is portable.
[[nodiscard]] std::span<const Sha256Way> sha256_ways() noexcept;

}  // namespace tensorcast::io
