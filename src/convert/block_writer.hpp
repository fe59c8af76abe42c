// Appends blocks on a thread of its own while the next ones are made.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "convert/aligned_buffer.hpp"
#include "formats/format.hpp"

namespace tensorcast::convert {

// For one producer: acquire(), fill, push(), again and again; drain() before the writer is used directly.
class BlockWriter {
 public:
  // `writer` outlives this. Memory: blocks * block_bytes.
  BlockWriter(formats::Writer& writer, std::size_t blocks, std::size_t block_bytes);
  ~BlockWriter();  // blocks that are not yet written are dropped

  BlockWriter(const BlockWriter&) = delete;
  BlockWriter& operator=(const BlockWriter&) = delete;

  // The next block to fill, block_bytes long; waits until one is free.
  // Errors: those of the writer, from then on always.
  [[nodiscard]] Result<std::span<std::byte>> acquire();
  // Hands over the first `bytes` of the block that acquire() gave.
  void push(std::size_t bytes);
  // Waits until everything is written. Errors: those of the writer.
  [[nodiscard]] Result<void> drain();

 private:
  struct Block {
    AlignedBuffer buffer;
    std::size_t bytes = 0;
  };

  void run();

  formats::Writer& writer_;
  std::vector<Block> blocks_;  // a ring
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t pushed_ = 0;
  std::size_t written_ = 0;
  bool stopping_ = false;
  Result<void> outcome_;
  std::thread thread_;  // last: uses everything above
};

}  // namespace tensorcast::convert
