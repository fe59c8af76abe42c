// SPDX-License-Identifier: Apache-2.0
#include "convert/run/block_writer.hpp"

#include <algorithm>

#include "dtype/guarded.hpp"

namespace tensorcast::file_conversion {

BlockWriter::BlockWriter(formats::Writer& writer, io::Sha256* hash, std::size_t blocks, std::size_t block_bytes)
    : writer_(writer), hash_(hash) {
  blocks_.reserve(blocks);
  for (std::size_t i = 0; i < blocks; ++i) blocks_.push_back(Block{.buffer = AlignedBuffer(block_bytes)});
  writing_ = std::thread([this] {
    take_blocks(written_,
                [&](std::span<const std::byte> bytes) { return guarded([&] { return writer_.append(bytes); }); });
  });
  if (hash_ == nullptr) return;
  hashing_ = std::thread([this] {
    take_blocks(hashed_, [&](std::span<const std::byte> bytes) {
      hash_->update(bytes);
      return Result<void>();
    });
  });
}

BlockWriter::~BlockWriter() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  writing_.join();
  if (hash_ != nullptr) hashing_.join();
}

std::size_t BlockWriter::done() const noexcept { return hash_ == nullptr ? written_ : std::min(written_, hashed_); }

Result<std::span<std::byte>> BlockWriter::acquire() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !outcome_ || pushed_ - done() < blocks_.size(); });
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
  changed_.wait(lock, [&] { return !outcome_ || pushed_ == done(); });
  return outcome_;
}

template <class Take>
void BlockWriter::take_blocks(std::size_t& taken, const Take& take) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || pushed_ != taken; });
    if (stopping_) return;
    const Block& block = blocks_[taken % blocks_.size()];
    const std::span<const std::byte> bytes = block.buffer.span().first(block.bytes);
    lock.unlock();
    Result<void> done = take(bytes);
    lock.lock();
    if (!done) {
      outcome_ = std::move(done);
      changed_.notify_all();
      return;
    }
    ++taken;
    changed_.notify_all();
  }
}

}  // namespace tensorcast::file_conversion
