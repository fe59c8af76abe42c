// SPDX-License-Identifier: Apache-2.0
#include "block/convert_numbers.hpp"

#include <cstring>

#include "kernels/kernel.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::block {

void convert_numbers(DType from, const std::byte* src, DType to, std::byte* dst, std::size_t count) noexcept {
  if (from == to) {
    std::memcpy(dst, src, storage_bytes(from, count));
    return;
  }
  static const codec::Policy policy{};
  kernels::find_kernel(active_target(), from, to)->run(src, dst, count, policy);
}

}  // namespace tensorcast::block
