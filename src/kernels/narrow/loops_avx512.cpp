// 16 codes: each byte of the outputs is a byte shuffle. 256 codes: each word is a lookup in eight registers of table.
#include <utility>

#include "kernels/narrow/loops.hpp"
#include "kernels/narrow/planes_avx512.hpp"

namespace tensorcast::kernels::narrow {
namespace {

// Source bytes to one index a byte, in order.
template <int index_bits>
inline __m512i spread(__m512i x) {
  if constexpr (index_bits == 1) {
    return _mm512_min_epu8(x, _mm512_set1_epi8(1));
  } else if constexpr (index_bits == 4) {
    const __m512i words = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(x));
    return _mm512_and_si512(_mm512_or_si512(words, _mm512_slli_epi16(words, 4)), _mm512_set1_epi8(0x0f));
  } else {
    static_assert(index_bits == 2);
    const __m512i dwords = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(x));
    const __m512i nibbles = _mm512_or_si512(dwords, _mm512_slli_epi32(dwords, 12));  // low one in bytes 0, high in 2
    return _mm512_and_si512(_mm512_or_si512(nibbles, _mm512_slli_epi32(nibbles, 6)), _mm512_set1_epi8(0x03));
  }
}

template <Layout layout>
void convert_few_codes(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  constexpr int planes = layout.table_units;
  __m512i entries[planes];
#pragma GCC unroll 8
  for (int plane = 0; plane < planes; ++plane) {
    entries[plane] = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table + plane * 16)));
  }
  const auto look_up = [&](int plane, __m512i index) { return _mm512_shuffle_epi8(entries[plane], index); };
  for_each_block<layout>(src, dst, count, spread<layout.index_bits>, [&](__m512i indices) {
    Registers<Unpack> out = look_up_planes<layout>(indices, look_up);
    multiply_outputs<layout>(out, table);
    if constexpr (layout.output_bits() < 8) out.v[0] = pack<layout.output_bits()>(out.v[0]);
    return out;
  });
}

template <Layout layout>
void convert_bytes(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  constexpr int planes = layout.table_units;
  __m512i eighths[planes][8];
#pragma GCC unroll 8
  for (int plane = 0; plane < planes; ++plane) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) eighths[plane][i] = load(table + plane * 512 + i * 64);
  }
  const auto look_up = [&](int plane, __m512i index) {
    const __m512i(&eighth)[8] = eighths[plane];
    const __mmask32 bit_6 = _mm512_test_epi16_mask(index, _mm512_set1_epi16(0x40));
    const __mmask32 bit_7 = _mm512_test_epi16_mask(index, _mm512_set1_epi16(0x80));
    const __m512i quarters[4] = {
        _mm512_permutex2var_epi16(eighth[0], index, eighth[1]), _mm512_permutex2var_epi16(eighth[2], index, eighth[3]),
        _mm512_permutex2var_epi16(eighth[4], index, eighth[5]), _mm512_permutex2var_epi16(eighth[6], index, eighth[7])};
    return _mm512_mask_blend_epi16(bit_7, _mm512_mask_blend_epi16(bit_6, quarters[0], quarters[1]),
                                   _mm512_mask_blend_epi16(bit_6, quarters[2], quarters[3]));
  };
  const auto bytes_are_indices = [](__m512i bytes) { return bytes; };
  for_each_block<layout>(src, dst, count, bytes_are_indices, [&](__m512i indices) {
    constexpr int words = layout.output_units();
    const __m512i halves[2] = {_mm512_cvtepu8_epi16(_mm512_castsi512_si256(indices)),
                               _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(indices, 1))};
    Registers<Unpack> out;
#pragma GCC unroll 8
    for (int half = 0; half < 2; ++half) {
      const Registers<Unpack> part = look_up_planes<layout>(halves[half], look_up);
      if constexpr (layout.output_bits() > 8) {
#pragma GCC unroll 8
        for (int i = 0; i < words; ++i) out.v[half * words + i] = part.v[i];
      } else {
        const __m256i codes = _mm512_cvtepi16_epi8(part.v[0]);
        out.v[0] = half == 0 ? _mm512_castsi256_si512(codes) : _mm512_inserti64x4(out.v[0], codes, 1);
      }
    }
    multiply_outputs<layout>(out, table);
    if constexpr (layout.output_bits() < 8) out.v[0] = pack<layout.output_bits()>(out.v[0]);
    return out;
  });
}

template <Layout layout>
[[gnu::noinline]] void convert(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  if constexpr (layout.index_bits == 8) {
    convert_bytes<layout>(src, dst, count, table);
  } else {
    convert_few_codes<layout>(src, dst, count, table);
  }
}

template <Layout layout>
constexpr Loop loop = entry<layout, convert<layout>>();

template <std::size_t... i>
constexpr Loops make_loops(std::index_sequence<i...>) {
  return {loop<layout_list<Engine::avx512>.layouts[i]>...};
}

}  // namespace

extern const Loops avx512_loops = make_loops(std::make_index_sequence<layout_list<Engine::avx512>.size>());

}  // namespace tensorcast::kernels::narrow
