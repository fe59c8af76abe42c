// SPDX-License-Identifier: Apache-2.0
// Blocks that ggml-quants.c writes, and numbers that the gguf package decodes, by their FNV-1a digests: of llama.cpp in
// llama-cpp-python 0.3.36, compiled without fused multiply-add, and of gguf 0.19.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "block/format/gguf_block.hpp"
#include "block/gguf/gguf_encode.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t reference_blocks = 64, reference_numbers = reference_blocks * 256;

std::uint64_t fnv_1a(const void* data, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}

std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t state) {
  std::vector<std::uint32_t> words(count);
  for (std::uint32_t& word : words) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    word = static_cast<std::uint32_t>(state >> 32);
  }
  return words;
}

// Runs of many sizes: of all digits, and of so few that largest numbers and ties are frequent.
std::vector<float> reference_weights() {
  const std::vector<std::uint32_t> words = random_words(reference_numbers, 1);
  std::vector<float> numbers(reference_numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float few = static_cast<float>(static_cast<int>(words[i] % 33) - 16);
    const float many = static_cast<float>(static_cast<std::int32_t>(words[i])) * 0x1p-31f;
    numbers[i] = std::ldexp(i / 1024 % 2 == 1 ? few : many, static_cast<int>(i / 32 % 40) - 30);
  }
  return numbers;
}

TEST(GgufReference, BlocksAreThoseOfGgml) {
  struct Digests {
    GgufBlock block;
    std::uint64_t own, weighed;
  };
  constexpr Digests expected[] = {
      {GgufBlock::q2_k, 0xc5962dd9b7988c32, 0xb6be9f7d177e35a2},
      {GgufBlock::q3_k, 0xf65093349de13cce, 0x5b79d1df8cd6ecd9},
      {GgufBlock::q4_k, 0x6cf09e4988cfb0f1, 0xe6b192de53b47fd1},
      {GgufBlock::q5_k, 0x76785fdeb988c77c, 0x3cc23692bcda78fe},
      {GgufBlock::q6_k, 0xa931551f229749e4, 0x3c281fcf029f58ef},
      {GgufBlock::iq4_nl, 0xa725aac879b568e5, 0x62b4d1db7863c135},
      {GgufBlock::iq4_xs, 0x48a3a734f75f50f8, 0x6a27d3a2a73f3cc5},
  };
  const std::vector<float> numbers = reference_weights();
  std::vector<float> importance;
  for (const std::uint32_t word : random_words(reference_numbers, 2)) {
    importance.push_back(static_cast<float>(word >> 8) * 0x1p-20f);
  }
  for (const Digests& digests : expected) {
    const GgufBlockSize size = block_size(digests.block);
    const std::size_t blocks = reference_numbers / size.elements;
    EXPECT_TRUE(weighs_importance(digests.block));
    std::vector<std::uint8_t> bytes(blocks * size.bytes);
    const auto digest = [&](const float* by) {
      gguf_encoder(digests.block)(numbers.data(), by, blocks, bytes.data());
      return fnv_1a(bytes.data(), bytes.size());
    };
    EXPECT_EQ(digest(nullptr), digests.own) << "format " << static_cast<int>(digests.block);
    EXPECT_EQ(digest(importance.data()), digests.weighed) << "format " << static_cast<int>(digests.block);
  }
}

TEST(GgufReference, LowBitBlocksAreReadAsTheGgufPackageReadsThem) {
  struct Digest {
    GgufBlock block;
    std::uint64_t numbers;
  };
  constexpr Digest expected[] = {
      {GgufBlock::iq1_s, 0x96c4f7dae7541a83},   {GgufBlock::iq1_m, 0x1bdabac90ada6b67},
      {GgufBlock::iq2_xxs, 0xb2be6f10e1496114}, {GgufBlock::iq2_xs, 0x855efb47279f286d},
      {GgufBlock::iq2_s, 0x270b35f977e5f2dd},   {GgufBlock::iq3_xxs, 0x64296cc91373e771},
      {GgufBlock::iq3_s, 0x1fa14dbf68cea691},   {GgufBlock::tq1_0, 0x9cff7fb8e43a5c94},
      {GgufBlock::tq2_0, 0x529a6f5cd24e7294},
  };
  for (const Digest& digest : expected) {
    const GgufRow& format = row(digest.block);
    std::vector<std::byte> bytes;
    for (const std::uint32_t word : random_words(reference_blocks * format.size.bytes, 3)) {
      bytes.push_back(static_cast<std::byte>(word >> 24));
    }
    for (const Target target : supported_targets()) {
      const auto unpack = kernels::ops_of(target).find_unpack_gguf(digest.block, kernels::GgufElements::numbers);
      std::vector<float> numbers(reference_numbers);
      for (std::size_t block = 0; block < reference_blocks; ++block) {
        kernels::GgufRuns runs = {};
        unpack(bytes.data() + block * format.size.bytes, 1, runs);
        bool is_finite = true;
        float* const to = numbers.data() + block * 256;
        for (std::size_t i = 0; i < 256; ++i) {
          to[i] = static_cast<float>(runs.q[i]) * runs.scales[i / format.run];
          is_finite = is_finite && std::isfinite(to[i]);
        }
        if (!is_finite) std::fill_n(to, 256, 0.0f);
      }
      EXPECT_EQ(fnv_1a(numbers.data(), numbers.size() * sizeof(float)), digest.numbers)
          << name(target) << " format " << static_cast<int>(digest.block);
    }
  }
}

}  // namespace
}  // namespace tensorcast::block
