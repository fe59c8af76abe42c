// 256 codes: each byte of the outputs is a lookup in four registers of table.
#include <utility>

#include "kernels/narrow/loops.hpp"
#include "kernels/narrow/planes_avx512.hpp"

namespace tensorcast::kernels::narrow {
namespace {

template <Layout layout>
void convert(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  constexpr int planes = layout.table_units;
  __m512i quarters[planes][4];
#pragma GCC unroll 8
  for (int plane = 0; plane < planes; ++plane) {
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) quarters[plane][i] = load(table + plane * 256 + i * 64);
  }
  const auto look_up = [&](int plane, __m512i index) {
    const __m512i(&quarter)[4] = quarters[plane];
    const __m512i lower = _mm512_permutex2var_epi8(quarter[0], index, quarter[1]);
    const __m512i upper = _mm512_permutex2var_epi8(quarter[2], index, quarter[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), lower, upper);
  };
  const auto bytes_are_indices = [](__m512i bytes) { return bytes; };
  for_each_block<layout>(src, dst, count, bytes_are_indices, [&](__m512i indices) {
    Registers<Unpack> out = look_up_planes<layout>(indices, look_up);
    if constexpr (layout.output_bits() < 8) out.v[0] = pack<layout.output_bits()>(out.v[0]);
    return out;
  });
}

template <std::size_t... i>
constexpr Loops make_loops(std::index_sequence<i...>) {
  return {convert<layout_list<Engine::avx512vbmi>.layouts[i]>...};
}

}  // namespace

extern const Loops avx512vbmi_loops = make_loops(std::make_index_sequence<layout_list<Engine::avx512vbmi>.size>());

}  // namespace tensorcast::kernels::narrow
