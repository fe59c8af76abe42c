// SPDX-License-Identifier: Apache-2.0
// Asks for memory before it is read.
#pragma once

#include <cstddef>

namespace tensorcast {

// Into the second-level cache. Does nothing where the memory is not there, and in WebAssembly.
inline void prefetch([[maybe_unused]] const std::byte* data, [[maybe_unused]] std::size_t bytes) {
#if !defined(__wasm__)
  constexpr std::size_t line_bytes = 64;
  for (std::size_t at = 0; at < bytes; at += line_bytes) __builtin_prefetch(data + at, 0, 2);
#endif
}

}  // namespace tensorcast
