// 256 codes: each byte of the outputs is a lookup in four registers of table.
#include <utility>

#include "kernels/narrow/loops.hpp"
#include "kernels/narrow/planes_avx512.hpp"
#include "kernels/simd/byte_table.hpp"

namespace tensorcast::kernels::narrow {
namespace {

template <Layout layout>
[[gnu::noinline]] void convert(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  [&]<std::size_t... plane>(std::index_sequence<plane...>) {
    const avx512vbmi::ByteTable<> planes[] = {avx512vbmi::ByteTable<>(table + plane * 256)...};
    const auto look_up = [&](int number, __m512i index) { return planes[number](index); };
    const auto bytes_are_indices = [](__m512i bytes) { return bytes; };
    for_each_block<layout>(src, dst, count, bytes_are_indices, [&](__m512i indices) {
      Registers<Unpack> out = look_up_planes<layout>(indices, look_up);
      multiply_outputs<layout>(out, table);
      if constexpr (layout.output_bits() < 8) out.v[0] = pack<layout.output_bits()>(out.v[0]);
      return out;
    });
  }(std::make_index_sequence<layout.table_units>());
}

template <Layout layout>
constexpr Loop loop = entry<layout, convert<layout>>();

template <std::size_t... i>
constexpr Loops make_loops(std::index_sequence<i...>) {
  return {loop<layout_list<Engine::avx512vbmi>.layouts[i]>...};
}

}  // namespace

extern const Loops avx512vbmi_loops = make_loops(std::make_index_sequence<layout_list<Engine::avx512vbmi>.size>());

}  // namespace tensorcast::kernels::narrow
