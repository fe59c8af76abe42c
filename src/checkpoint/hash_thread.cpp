#include "checkpoint/hash_thread.hpp"
// SPDX-License-Identifier: Apache-2.0
namespace tensorcast::checkpoint {

HashThread::~HashThread() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HashThread::begin(std::span<const std::byte> bytes) {
  {
    const std::scoped_lock lock(mutex_);
    bytes_ = bytes;
    busy_ = true;
  }
  changed_.notify_all();
}

void HashThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_; });
}

void HashThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return busy_ || stopping_; });
    if (stopping_) return;
    const std::span<const std::byte> bytes = bytes_;
    lock.unlock();
    hash_.update(bytes);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace tensorcast::checkpoint
