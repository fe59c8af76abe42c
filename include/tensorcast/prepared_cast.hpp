// SPDX-License-Identifier: Apache-2.0
// Component core. Casts of a few elements at a time: types and options are checked once, for any number of calls.
#pragma once

#include <cstddef>

#include "tensorcast/cast_options.hpp"
#include "tensorcast/dtype.hpp"
#include "tensorcast/error.hpp"
#include "tensorcast/export.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

// A conversion between two types that is ready to run: a value of 64 bytes, which is copied as any, needs no freeing,
// and may be used by several threads at once. Made by prepare_cast(); another one's calls are errors.
class PreparedCast {
 public:
  PreparedCast() noexcept = default;

  // Converts `count` elements on the calling thread, as cast() does with the same options and threads = 1.
  //
  // Sizes    `src` holds storage_bytes(from, count), `dst` storage_bytes(to, count); any alignment. Types under 8 bits
  //          are packed, low bits first, and the tail bits of `dst` are written as zero.
  // Overlap  the buffers are disjoint, or have the same address with a target that is not wider.
  // Errors   invalid_argument (a null buffer, an overlap, a cast that was not prepared), out_of_range (only if the
  //          options demand it; names the element; `dst` is then unspecified).
  // Cost     about 4 ns for up to 16 elements, allocates only errors. Options that demand errors, and a scale, prepare
  //          their work in each call: 0.1 to 0.5 us.
  [[nodiscard]] Result<void> operator()(const void* src, void* dst, std::size_t count) const noexcept {
    if (run_small(src, dst, count)) [[likely]]
      return {};
    return run(src, dst, count);
  }

 private:
  // Returns false, and does nothing, if there is more to do than one kernel does, or something is wrong.
  [[nodiscard]] TENSORCAST_API bool run_small(const void* src, void* dst, std::size_t count) const noexcept;
  [[nodiscard]] TENSORCAST_API Result<void> run(const void* src, void* dst, std::size_t count) const noexcept;

  friend struct PreparedAccess;
  alignas(8) std::byte state_[64] = {};
};

// Checks types and options. Errors: as cast(), of types and options.
[[nodiscard]] TENSORCAST_API Result<PreparedCast> prepare_cast(DType from, DType to, const CastOptions& options = {});

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
