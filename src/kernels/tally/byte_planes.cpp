#include "kernels/tally/byte_planes.hpp"

#include <algorithm>

namespace tensorcast::kernels {

#if defined(__x86_64__)
namespace avx512vbmi {
std::uint64_t sum_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes);
ByteRange range_of(const std::byte* data, std::size_t bytes);
std::uint8_t greatest_in_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes);
}  // namespace avx512vbmi
#endif

void BytePlane::set_facts() noexcept {
  is_symmetric = std::equal(value.begin(), value.begin() + 128, value.begin() + 128);
  greatest = *std::max_element(value.begin(), value.end());
  const auto is_zero = [&](std::size_t low) { return value[low] == 0 && value[low + 128] == 0; };
  first = 0, last = 127;
  while (first < 127 && is_zero(first)) ++first;
  while (last > first && is_zero(last)) --last;
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

ByteRange range_of(const std::byte* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  return avx512vbmi::range_of(data, bytes);
#else
  static_cast<void>(data), static_cast<void>(bytes);
  return {};
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
