// SPDX-License-Identifier: Apache-2.0
// Appends blocks on its own thread, and hashes them on another, while the caller fills the next ones.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "convert/run/aligned_buffer.hpp"
#include "formats/format.hpp"
#include "io/sha256.hpp"

namespace tensorcast::file_conversion {

// For one producer: acquire(), fill, push(), repeat; drain() before using the writer or the hash directly.
class BlockWriter {
 public:
  // `writer` and `hash` outlive this; null: nothing is hashed. Memory: blocks * block_bytes.
  BlockWriter(formats::Writer& writer, io::Sha256* hash, std::size_t blocks, std::size_t block_bytes);
  ~BlockWriter();  // drops unwritten blocks

  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // Returns the next block to fill, block_bytes long; waits until one is free.
  // Errors: those of the writer; after the first error every call fails.
  [[nodiscard]] Result<std::span<std::byte>> acquire();
  // Queues the first `bytes` of the block that acquire() returned.
  void push(std::size_t bytes);
  // Waits until everything is written and hashed. Errors: those of the writer.
  [[nodiscard]] Result<void> drain();

 private:
  struct Block {
    AlignedBuffer buffer;
    std::size_t bytes = 0;
  };

  // Takes each block in its order, counts it, and returns at the first error or when stopping.
  template <class Take>
  void take_blocks(std::size_t& taken, const Take& take);
  // The blocks that nobody needs any more. Call with the lock.
  [[nodiscard]] std::size_t done() const noexcept;

  formats::Writer& writer_;
  io::Sha256* hash_;
  std::vector<Block> blocks_;  // a ring
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t pushed_ = 0;
  std::size_t written_ = 0;
  std::size_t hashed_ = 0;
  bool stopping_ = false;
  Result<void> outcome_;
  std::thread writing_, hashing_;  // last, as they use all members above
};

}  // namespace tensorcast::file_conversion
