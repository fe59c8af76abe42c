// Planes of bytes or words to outputs in memory, 512 bits at a time. Everything has internal linkage, because each
// source that includes this is compiled for an instruction set of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/narrow/interleave.hpp"
#include "kernels/narrow/loops.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/intrinsics.hpp"

namespace tensorcast::kernels::narrow {
namespace {

constexpr std::size_t block_indices = 64;  // one byte register of indices

inline __m512i load(const void* p) { return _mm512_loadu_si512(p); }

inline std::uint64_t first_bits(std::size_t count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Interleaving works within 128-bit lanes. This order of the indices makes `registers` interleaved planes come out
// consecutive: chunk k of lane l becomes lane l of register k.
template <int registers>
inline __m512i order_for_interleaving(__m512i x) {
  if constexpr (registers == 2) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7), x);
  } else if constexpr (registers == 4) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x);
  } else if constexpr (registers == 8) {
    const __m512i words = _mm512_set_epi16(31, 27, 23, 19, 15, 11, 7, 3, 30, 26, 22, 18, 14, 10, 6, 2, 29, 25, 21, 17,
                                           13, 9, 5, 1, 28, 24, 20, 16, 12, 8, 4, 0);
    return _mm512_permutexvar_epi16(words, x);
  } else {
    static_assert(registers == 1);
    return x;
  }
}

struct Unpack {
  using Vector = __m512i;

  template <int unit_bytes>
  static __m512i low(__m512i a, __m512i b) {
    if constexpr (unit_bytes == 1) return _mm512_unpacklo_epi8(a, b);
    if constexpr (unit_bytes == 2) return _mm512_unpacklo_epi16(a, b);
    if constexpr (unit_bytes == 4) return _mm512_unpacklo_epi32(a, b);
  }
  template <int unit_bytes>
  static __m512i high(__m512i a, __m512i b) {
    if constexpr (unit_bytes == 1) return _mm512_unpackhi_epi8(a, b);
    if constexpr (unit_bytes == 2) return _mm512_unpackhi_epi16(a, b);
    if constexpr (unit_bytes == 4) return _mm512_unpackhi_epi32(a, b);
  }
};

// The planes of one lookup, interleaved: register k holds the k-th 64 bytes of output.
template <Layout layout, class LookUp>
inline Registers<Unpack> look_up_planes(__m512i indices, const LookUp& look_up) {
  const __m512i ordered = order_for_interleaving<layout.output_units()>(indices);
  const auto look_up_ordered = [&](auto plane) { return look_up(plane, ordered); };
  if constexpr (layout.finite_units != 0) {
    const __m512i magnitudes = _mm512_and_si512(indices, _mm512_set1_epi8(0x7f));
    constexpr char infinity = 0x7c;
    if (_mm512_cmpeq_epi8_mask(magnitudes, _mm512_set1_epi8(infinity)) == 0) [[likely]] {
      return interleaved_planes<finite_part(layout), Unpack>(look_up_ordered);
    }
  }
  return interleaved_planes<layout, Unpack>(look_up_ordered);
}

// The last step of layouts with a scale: the numbers are exact, so that each product is rounded once.
template <Layout layout>
inline void multiply_outputs(Registers<Unpack>& out, const std::byte* table) {
  if constexpr (layout.is_scaled) {
    static_assert(layout.output_bits() == 64);
    const __m512i scale =
        _mm512_broadcastq_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(table + layout.planes_bytes())));
#pragma GCC unroll 8
    for (__m512i& x : out.v) {
      x = _mm512_castpd_si512(_mm512_mul_pd(_mm512_castsi512_pd(x), _mm512_castsi512_pd(scale)));
    }
  }
}

// Of a function that is not inlined.
template <Loop run>
void in_default_environment(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  TENSORCAST_TARGET::in_default_environment([&] { run(src, dst, count, table); });
}

// What is called: products are the only floating-point arithmetic here.
template <Layout layout, Loop run>
constexpr Loop entry() {
  if constexpr (layout.is_scaled) return in_default_environment<run>;
  return run;
}

// 64 codes below a byte, one in each byte, to 32 or 16 bytes.
template <int bits>
inline __m512i pack(__m512i codes) {
  if constexpr (bits == 4) {
    const __m512i pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x1001));
    return _mm512_castsi256_si512(_mm512_cvtepi16_epi8(pairs));
  } else if constexpr (bits == 2) {
    const __m512i pairs = _mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x0401));
    const __m512i quads = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x00100001));
    return _mm512_castsi128_si512(_mm512_cvtepi32_epi8(quads));
  } else {
    static_assert(bits == 8);
    return codes;
  }
}

template <int bytes>
inline void store(std::byte* dst, __m512i x) {
  if constexpr (bytes == 64) _mm512_storeu_si512(dst, x);
  if constexpr (bytes == 32) _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), _mm512_castsi512_si256(x));
  if constexpr (bytes == 16) _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), _mm512_castsi512_si128(x));
}

template <int bytes>
inline __m512i load(const std::byte* src) {
  if constexpr (bytes == 64) return _mm512_loadu_si512(src);
  if constexpr (bytes == 32) {
    return _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)));
  }
  if constexpr (bytes == 16) return _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src)));
}

// `results` gives, for a register of 64 indices, the registers of their outputs.
template <Layout layout, class Spread, class Results>
inline void for_each_block(const std::byte* src, std::byte* dst, std::size_t count, const Spread& spread,
                           const Results& results) {
  constexpr std::size_t element_source_bits = layout.source_bits() / layout.index_elements;
  constexpr std::size_t src_block = block_indices * layout.source_bits() / 8;
  constexpr std::size_t dst_block = block_indices * layout.output_bits() / 8;
  constexpr std::size_t registers = dst_block > 64 ? dst_block / 64 : 1;
  constexpr std::size_t block_elements = block_indices * layout.index_elements;
  constexpr std::size_t store_bytes = dst_block / registers;

  for (; count >= block_elements; count -= block_elements, src += src_block, dst += dst_block) {
    const Registers<Unpack> out = results(spread(load<src_block>(src)));
#pragma GCC unroll 8
    for (std::size_t i = 0; i < registers; ++i) store<store_bytes>(dst + i * 64, out.v[i]);
  }
  if (count == 0) return;
  const std::size_t src_bytes = (count * element_source_bits + 7) / 8;
  std::size_t dst_bytes = (count * layout.element_bits + 7) / 8;
  const Registers<Unpack> out = results(spread(_mm512_maskz_loadu_epi8(first_bits(src_bytes), src)));
#pragma GCC unroll 8
  for (std::size_t i = 0; i < registers; ++i) {
    _mm512_mask_storeu_epi8(dst + i * 64, first_bits(dst_bytes), out.v[i]);
    if (dst_bytes <= 64) return;
    dst_bytes -= 64;
  }
}

}  // namespace
}  // namespace tensorcast::kernels::narrow
