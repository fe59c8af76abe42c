// SPDX-License-Identifier: Apache-2.0
// Buffers without a spare byte, so that a step behind them is an error of ASan; and what targets demand.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "dtype/choices_testing.hpp"

namespace tensorcast::fuzzing {

inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  __builtin_trap();
}

// Keeps all buffers until it ends.
class Memory {
 public:
  std::span<std::byte> take(testing::Choices& choices, std::size_t bytes) {
    const std::span<std::byte> taken = zeros(bytes);
    choices.fill(taken);
    return taken;
  }
  std::span<std::byte> zeros(std::size_t bytes) {
    kept_.emplace_back(new std::byte[bytes]());
    return {kept_.back().get(), bytes};
  }
  // A copy, such as one of a struct at a size of its own; what is behind `bytes` of it is zero.
  std::byte* copy(const void* from, std::size_t bytes, std::size_t room) {
    const std::span<std::byte> taken = zeros(room);
    if (bytes != 0) std::memcpy(taken.data(), from, bytes);
    return taken.data();
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> kept_;
};

}  // namespace tensorcast::fuzzing
