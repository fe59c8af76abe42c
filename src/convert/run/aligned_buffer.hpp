// SPDX-License-Identifier: Apache-2.0
// Uninitialised bytes at a page boundary.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace tensorcast::file_conversion {

class AlignedBuffer {
 public:
  AlignedBuffer() noexcept = default;
  explicit AlignedBuffer(std::size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(::operator new(bytes, alignment))) {}

  [[nodiscard]] std::span<std::byte> span() const noexcept { return {data_.get(), bytes_}; }

 private:
  static constexpr std::align_val_t alignment{4096};
  struct Delete {
    void operator()(std::byte* data) const noexcept { ::operator delete(data, alignment); }
  };

  std::size_t bytes_ = 0;
  std::unique_ptr<std::byte, Delete> data_;
};

}  // namespace tensorcast::file_conversion
