#include "kernels/tally/byte_planes.hpp"

#include <algorithm>

namespace tensorcast::kernels {

#if defined(__x86_64__)
namespace avx512vbmi {
std::uint64_t sum_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes);
std::uint8_t greatest_in_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes);
}  // namespace avx512vbmi
#endif

void BytePlane::set_facts() noexcept {
  is_symmetric = std::equal(value.begin(), value.begin() + 128, value.begin() + 128);
  greatest = *std::max_element(value.begin(), value.end());
}

bool has_byte_planes(Target target) noexcept { return target == Target::avx512vbmi; }

std::uint64_t sum_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  return avx512vbmi::sum_plane(plane, data, bytes);
#else
  static_cast<void>(plane), static_cast<void>(data), static_cast<void>(bytes);
  return 0;
#endif
}

std::uint8_t greatest_in_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  return avx512vbmi::greatest_in_plane(plane, data, bytes);
#else
  static_cast<void>(plane), static_cast<void>(data), static_cast<void>(bytes);
  return 0;
#endif
}

}  // namespace tensorcast::kernels
