// SPDX-License-Identifier: Apache-2.0
// Single elements of C++ types.
#include "tensorcast/element.hpp"

#include <bit>
#include <cstring>

#include "codec/reference_cast.hpp"
#include "kernels/kernel.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

double detail::decode_element(DType from, std::uint32_t code) noexcept {
  double value = 0.0;
  kernels::find_kernel(active_target(), from, DType::float64)
      ->run(reinterpret_cast<const std::byte*>(&code), reinterpret_cast<std::byte*>(&value), 1, {});
  return value;
}

std::uint32_t detail::encode_element(double value, DType to) noexcept {
  std::uint32_t code = 0;
  kernels::find_kernel(active_target(), DType::float64, to)
      ->run(reinterpret_cast<const std::byte*>(&value), reinterpret_cast<std::byte*>(&code), 1, {});
  return code;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
