// SPDX-License-Identifier: Apache-2.0
#include "convert/run/block_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tensorcast::file_conversion {
namespace {

constexpr std::size_t ring_blocks = 3, ring_block_bytes = 1000;

// Keeps what is appended, one byte after another, and fails after `limit` blocks.
class KeptBytes final : public formats::Writer {
 public:
  explicit KeptBytes(std::size_t limit = SIZE_MAX) : limit_(limit) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    if (limit_-- == 0) return Error{.code = ErrorCode::io, .message = "full"};
    for (const std::byte byte : bytes) text += static_cast<char>(byte);
    return {};
  }
  Result<void> finish() override { return {}; }

  std::string text;

 private:
  std::size_t limit_;
};

// Pushes blocks of all sizes, more than the ring has. Returns their bytes.
Result<std::string> push_blocks(BlockWriter& writer) {
  std::string all;
  for (std::size_t i = 0; i < 200; ++i) {
    Result<std::span<std::byte>> block = writer.acquire();
    if (!block) return std::move(block).error();
    EXPECT_EQ(block->size(), ring_block_bytes);
    const std::size_t bytes = i * 37 % (ring_block_bytes + 1);
    const std::string text(bytes, static_cast<char>('a' + i % 26));
    std::ranges::copy(std::as_bytes(std::span(text)), block->begin());
    writer.push(bytes);
    all += text;
  }
  Result<void> drained = writer.drain();
  if (!drained) return std::move(drained).error();
  return all;
}

TEST(BlockWriter, AppendsAndHashesTheBlocksInOrder) {
  KeptBytes kept;
  io::Sha256 hash;
  hash.update("header");
  BlockWriter writer(kept, &hash, ring_blocks, ring_block_bytes);
  const Result<std::string> all = push_blocks(writer);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(kept.text, *all);
  EXPECT_EQ(hash.digest(), io::sha256_of("header" + *all));
}

TEST(BlockWriter, NeedsNoHash) {
  KeptBytes kept;
  BlockWriter writer(kept, nullptr, ring_blocks, ring_block_bytes);
  const Result<std::string> all = push_blocks(writer);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(kept.text, *all);
}

TEST(BlockWriter, EveryCallFailsAfterAnError) {
  KeptBytes kept(5);
  io::Sha256 hash;
  BlockWriter writer(kept, &hash, ring_blocks, ring_block_bytes);
  const Result<std::string> all = push_blocks(writer);
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().message, "full");
  EXPECT_FALSE(writer.acquire().ok());
  EXPECT_FALSE(writer.drain().ok());
}

TEST(BlockWriter, MayEndWithBlocksThatAreNotWritten) {
  KeptBytes kept;
  io::Sha256 hash;
  BlockWriter writer(kept, &hash, ring_blocks, ring_block_bytes);
  ASSERT_TRUE(writer.acquire().ok());
  writer.push(ring_block_bytes);
}

}  // namespace
}  // namespace tensorcast::file_conversion
