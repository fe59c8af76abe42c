// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 of Random123: random words by position, so that the order of work does not matter.
#pragma once

#include <array>
#include <cstdint>

namespace tensorcast::codec {

namespace philox {
inline constexpr std::uint32_t multiplier_0 = 0xd2511f53, multiplier_1 = 0xcd9e8d57;
inline constexpr std::uint32_t step_0 = 0x9e3779b9, step_1 = 0xbb67ae85;
inline constexpr int rounds = 10;
}  // namespace philox

using PhiloxBlock = std::array<std::uint32_t, 4>;

constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::uint64_t key) noexcept {
  auto key_0 = static_cast<std::uint32_t>(key), key_1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < philox::rounds; ++round) {
    const std::uint64_t product_0 = std::uint64_t{philox::multiplier_0} * counter[0];
    const std::uint64_t product_1 = std::uint64_t{philox::multiplier_1} * counter[2];
    counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key_0, static_cast<std::uint32_t>(product_1),
               static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key_1, static_cast<std::uint32_t>(product_0)};
    key_0 += philox::step_0;
    key_1 += philox::step_1;
  }
  return counter;
}

// The four words of elements 4 block to 4 block + 3 (D16).
constexpr PhiloxBlock random_block(std::uint64_t seed, std::uint64_t block) noexcept {
  return philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}, seed);
}

// The word of one element.
constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t index) noexcept {
  return random_block(seed, index / 4)[index % 4];
}

}  // namespace tensorcast::codec
