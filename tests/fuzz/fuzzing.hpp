// SPDX-License-Identifier: Apache-2.0
// What targets share: buffers without a spare byte, so that a step behind them is an error of ASan; odd lengths and
// usual numbers; what must hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "dtype/choices_testing.hpp"
#include "tensorcast/c_api.h"
#include "tensorcast/error.hpp"

namespace tensorcast::fuzzing {

inline void require(bool holds, const char* what = "what must hold does not") {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  __builtin_trap();
}

// Errors of an input are not internal.
inline void expect_no_defect(tc_status status) {
  require(status != TC_INTERNAL || std::strcmp(tc_last_error_message(), "out of memory") == 0, tc_last_error());
}

template <class T>
bool succeeded(const Result<T>& result) {
  if (result) return true;
  const Error& error = result.error();
  require(!error.message.empty(), "an error without a message");
  require(error.code != ErrorCode::internal || error.message == "out of memory", error.message.c_str());
  return false;
}

// What C gives to its caller; closed or freed at the end.
template <class T, void (*end)(T*)>
struct Held {
  T* it = nullptr;
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { end(it); }
};

inline std::int64_t any_length(testing::Choices& choices) {
  return choices.one_in(3)
             ? choices.one_of({std::int64_t{-1}, std::int64_t{0}, std::numeric_limits<std::int64_t>::max(),
                               std::numeric_limits<std::int64_t>::min(), std::int64_t{1} << 40})
             : static_cast<std::int64_t>(choices.below(300));
}

// Numbers of similar size: of any bits, most arrays would have NaN. Returns false for types that hold none.
inline bool fill_with_numbers(testing::Choices& choices, std::span<std::byte> bytes, tc_dtype dtype,
                              std::size_t count) {
  std::vector<std::int16_t> numbers(count);
  choices.fill(std::as_writable_bytes(std::span(numbers)));
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.scale = 0x1p-13;
  return tc_cast(numbers.data(), TC_INT16, bytes.data(), dtype, count, &options) == TC_OK;
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
