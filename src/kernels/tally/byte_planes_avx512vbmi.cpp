#include "kernels/tally/byte_planes.hpp"

#include "kernels/simd/byte_table.hpp"

namespace tensorcast::kernels::avx512vbmi {
namespace {

constexpr std::size_t vector_bytes = 64;

// Calls `add` with the values of each 64 bytes; those past the end are 0.
template <bool symmetric, class Add>
inline void for_each_vector(const BytePlane& plane, const std::byte* data, std::size_t bytes, Add add) {
  const ByteTable<symmetric> table(plane.value.data());
  for (; bytes >= 4 * vector_bytes; bytes -= 4 * vector_bytes, data += 4 * vector_bytes) {
    add(table(_mm512_loadu_si512(data)));
    add(table(_mm512_loadu_si512(data + vector_bytes)));
    add(table(_mm512_loadu_si512(data + 2 * vector_bytes)));
    add(table(_mm512_loadu_si512(data + 3 * vector_bytes)));
  }
  for (; bytes >= vector_bytes; bytes -= vector_bytes, data += vector_bytes) add(table(_mm512_loadu_si512(data)));
  if (bytes == 0) return;
  const __mmask64 rest = (__mmask64{1} << bytes) - 1;
  add(_mm512_maskz_mov_epi8(rest, table(_mm512_maskz_loadu_epi8(rest, data))));
}

inline __m512i sum_eights(__m512i values) { return _mm512_sad_epu8(values, _mm512_setzero_si512()); }

template <bool symmetric>
std::uint64_t sum(const BytePlane& plane, const std::byte* data, std::size_t bytes) {
  __m512i total = _mm512_setzero_si512();
  if (plane.greatest >= 16) {
    for_each_vector<symmetric>(plane, data, bytes,
                               [&](__m512i values) { total = _mm512_add_epi64(total, sum_eights(values)); });
  } else {  // small values add up as bytes for a while
    const std::size_t run = 255 / (plane.greatest == 0 ? 1U : plane.greatest) * vector_bytes;
    for (std::size_t first = 0; first < bytes; first += run) {
      __m512i part = _mm512_setzero_si512();
      for_each_vector<symmetric>(plane, data + first, bytes - first < run ? bytes - first : run,
                                 [&](__m512i values) { part = _mm512_add_epi8(part, values); });
      total = _mm512_add_epi64(total, sum_eights(part));
    }
  }
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(total));
}

std::uint8_t greatest_lane(__m512i x) {
  const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i quarter = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  const __m128i words = _mm_max_epu8(quarter, _mm_srli_epi16(quarter, 8));
  const __m128i inverted = _mm_xor_si128(_mm_and_si128(words, _mm_set1_epi16(0xff)), _mm_set1_epi16(0xff));
  return static_cast<std::uint8_t>(0xff ^ _mm_extract_epi16(_mm_minpos_epu16(inverted), 0));
}

template <bool symmetric>
std::uint8_t greatest(const BytePlane& plane, const std::byte* data, std::size_t bytes) {
  __m512i most = _mm512_setzero_si512();
  for_each_vector<symmetric>(plane, data, bytes, [&](__m512i values) { most = _mm512_max_epu8(most, values); });
  return greatest_lane(most);
}

}  // namespace

std::uint64_t sum_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) {
  return plane.is_symmetric ? sum<true>(plane, data, bytes) : sum<false>(plane, data, bytes);
}

std::uint8_t greatest_in_plane(const BytePlane& plane, const std::byte* data, std::size_t bytes) {
  return plane.is_symmetric ? greatest<true>(plane, data, bytes) : greatest<false>(plane, data, bytes);
}

// 127 - x is greatest where x is least; of 0 it is taken for 0, as past the end.
ByteRange range_of(const std::byte* data, std::size_t bytes) {
  const __m512i low_bits = _mm512_set1_epi8(0x7f);
  __m512i most = _mm512_setzero_si512(), most_inverted = most;
  __mmask64 zeros = 0;
  const auto add = [&](__m512i x) {
    const __m512i low = _mm512_and_si512(x, low_bits);
    const __mmask64 is_not_zero = _mm512_test_epi8_mask(x, low_bits);
    zeros |= ~is_not_zero;
    most = _mm512_max_epu8(most, low);
    most_inverted = _mm512_mask_max_epu8(most_inverted, is_not_zero, most_inverted, _mm512_xor_si512(low, low_bits));
  };
  for (; bytes >= vector_bytes; bytes -= vector_bytes, data += vector_bytes) add(_mm512_loadu_si512(data));
  if (bytes != 0) add(_mm512_maskz_loadu_epi8((__mmask64{1} << bytes) - 1, data));
  return {.least = static_cast<std::uint8_t>(0x7f - greatest_lane(most_inverted)),
          .greatest = greatest_lane(most),
          .has_zero = zeros != 0};
}

}  // namespace tensorcast::kernels::avx512vbmi
