// SPDX-License-Identifier: Apache-2.0
// Component files. The bytes of a file that is read: those of memory, or whatever the caller reads from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// Bytes at offsets from 0 to size(). A file that is opened from a source calls it from one thread at a time, though not
// always the same one; a source of several files may be called from several threads at once. The names of such files
// are for messages, and their extensions tell formats without a signature: nothing is looked up beside them.
class TENSORCAST_API ByteSource {
 public:
  virtual ~ByteSource();
  // Stays the same. If it becomes less, reads fail with `parse`.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  // Reads exactly out.size() bytes from `offset`, all of which are inside size(). Errors: any; they get the name of the
  // file.
  [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) = 0;
};

// Reads `bytes`, which outlive the source. Cost: none; reads copy.
[[nodiscard]] TENSORCAST_API std::shared_ptr<ByteSource> memory_source(std::span<const std::byte> bytes);

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
