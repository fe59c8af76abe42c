// Hashes bytes on a thread of its own, while the caller writes them.
#pragma once
// SPDX-License-Identifier: Apache-2.0
#include <condition_variable>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "io/sha256.hpp"

namespace tensorcast::checkpoint {

// begin(), write the same bytes, wait(); repeat; digest(). On a CPU without SHA instructions hashing takes 3 ns a byte,
// as long as many disks take to write one.
class HashThread {
 public:
  HashThread() : thread_([this] { run(); }) {}
  ~HashThread();
  HashThread(const HashThread&) = delete;
  HashThread& operator=(const HashThread&) = delete;

  // Starts to hash `bytes`, which stay until wait() returns.
  void begin(std::span<const std::byte> bytes);
  void wait();
  // Call after the last wait(), once.
  [[nodiscard]] std::string digest() { return hash_.digest(); }

 private:
  void run();

  io::Sha256 hash_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const std::byte> bytes_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;  // last, as it uses all members above
};

}  // namespace tensorcast::checkpoint
