#include "kernels/tally/byte_planes.hpp"

#include <utility>

namespace tensorcast::kernels {

#if defined(__x86_64__)
namespace avx512vbmi {
ByteSet possible_bytes(const std::byte* data, std::size_t bytes);
ByteSet possible_magnitudes(const std::byte* data, std::size_t bytes);
void sum_planes(const PlaneSet& set, const ByteSet& possible, const std::byte* data, std::size_t bytes, PlaneSum* sums);
void raise_rank(const ByteRanks& ranks, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                std::uint8_t& greatest);
}  // namespace avx512vbmi
#endif

void BytePlane::set_nonzero() noexcept {
  nonzero = {};
  for (std::size_t byte = 0; byte < value.size(); ++byte) {
    nonzero.bits[byte / 64] |= std::uint64_t{value[byte] != 0} << (byte % 64);
  }
}

PlaneSet::PlaneSet(std::vector<BytePlane> from) : planes(std::move(from)) {
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::uint32_t bit = std::uint32_t{1} << i;
    of_kind[static_cast<std::size_t>(planes[i].bytes)] |= bit;
    if (planes[i].is_pair) pairs |= bit;
    if (planes[i].is_squared) squared |= bit;
  }
}

bool has_byte_planes(Target target) noexcept { return target == Target::avx512vbmi; }

ByteSet possible_bytes(const std::byte* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  return avx512vbmi::possible_bytes(data, bytes);
#else
  static_cast<void>(data), static_cast<void>(bytes);
  return {};
#endif
}

ByteSet possible_magnitudes(const std::byte* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  return avx512vbmi::possible_magnitudes(data, bytes);
#else
  static_cast<void>(data), static_cast<void>(bytes);
  return {};
#endif
}

void sum_planes(const PlaneSet& set, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                PlaneSum* sums) noexcept {
#if defined(__x86_64__)
  avx512vbmi::sum_planes(set, possible, data, bytes, sums);
#else
  static_cast<void>(set), static_cast<void>(possible), static_cast<void>(data), static_cast<void>(bytes);
  static_cast<void>(sums);
#endif
}

void raise_rank(const ByteRanks& ranks, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                std::uint8_t& greatest) noexcept {
#if defined(__x86_64__)
  avx512vbmi::raise_rank(ranks, possible, data, bytes, greatest);
#else
  static_cast<void>(ranks), static_cast<void>(possible), static_cast<void>(data), static_cast<void>(bytes);
  static_cast<void>(greatest);
#endif
}

}  // namespace tensorcast::kernels
