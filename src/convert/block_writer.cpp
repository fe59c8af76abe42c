#include "convert/block_writer.hpp"
// SPDX-License-Identifier: Apache-2.0
#include "dtype/guarded.hpp"

namespace tensorcast::file_conversion {

BlockWriter::BlockWriter(formats::Writer& writer, std::size_t blocks, std::size_t block_bytes) : writer_(writer) {
  blocks_.reserve(blocks);
  for (std::size_t i = 0; i < blocks; ++i) blocks_.push_back(Block{.buffer = AlignedBuffer(block_bytes)});
  thread_ = std::thread([this] { run(); });
}

BlockWriter::~BlockWriter() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<std::span<std::byte>> BlockWriter::acquire() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !outcome_ || pushed_ - written_ < blocks_.size(); });
  if (!outcome_) return outcome_.error();
  return blocks_[pushed_ % blocks_.size()].buffer.span();
}

void BlockWriter::push(std::size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    blocks_[pushed_ % blocks_.size()].bytes = bytes;
    ++pushed_;
  }
  changed_.notify_all();
}

Result<void> BlockWriter::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !outcome_ || pushed_ == written_; });
  return outcome_;
}

void BlockWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || pushed_ != written_; });
    if (stopping_) return;
    const Block& block = blocks_[written_ % blocks_.size()];
    const std::span<const std::byte> bytes = block.buffer.span().first(block.bytes);
    lock.unlock();
    Result<void> appended = guarded([&] { return writer_.append(bytes); });
    lock.lock();
    if (!appended) {
      outcome_ = std::move(appended);
      changed_.notify_all();
      return;
    }
    ++written_;
    changed_.notify_all();
  }
}

}  // namespace tensorcast::file_conversion
