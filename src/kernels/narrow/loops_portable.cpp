#include <cstring>
#include <utility>

#include "kernels/narrow/loops.hpp"

namespace tensorcast::kernels::narrow {
namespace {

// Two or four outputs fill a byte. Ascending order makes src == dst safe.
template <Layout layout>
void look_up_and_pack(const std::byte* src, std::byte* dst, std::size_t indices, const std::byte* table) {
  constexpr std::size_t per_byte = 8 / layout.output_bits();
  const std::size_t whole_bytes = indices / per_byte;
  for (std::size_t i = 0; i < whole_bytes; ++i) {
    std::byte packed{};
    for (std::size_t j = 0; j < per_byte; ++j) {
      packed |= table[std::to_integer<std::size_t>(src[i * per_byte + j])] << (j * layout.output_bits());
    }
    dst[i] = packed;
  }
  if (indices % per_byte == 0) return;
  std::byte packed{};
  for (std::size_t j = 0; j < indices % per_byte; ++j) {
    packed |= table[std::to_integer<std::size_t>(src[whole_bytes * per_byte + j])] << (j * layout.output_bits());
  }
  dst[whole_bytes] = packed;
}

template <Layout layout>
void convert(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  constexpr std::size_t elements = layout.index_elements;
  if constexpr (layout.output_bits() < 8) {
    look_up_and_pack<layout>(src, dst, (count + elements - 1) / elements, table);
  } else {
    constexpr std::size_t output_bytes = layout.output_bytes();
    const std::size_t whole_indices = count / elements;
    for (std::size_t i = 0; i < whole_indices; ++i) {
      std::memcpy(dst + i * output_bytes, table + std::to_integer<std::size_t>(src[i]) * output_bytes, output_bytes);
    }
    if (const std::size_t rest = count % elements; rest != 0) {
      const std::size_t rest_bytes = (rest * layout.element_bits + 7) / 8;
      std::memcpy(dst + whole_indices * output_bytes,
                  table + std::to_integer<std::size_t>(src[whole_indices]) * output_bytes, rest_bytes);
    }
  }
}

template <std::size_t... i>
constexpr Loops make_loops(std::index_sequence<i...>) {
  return {convert<layout_list<Engine::scalar>.layouts[i]>...};
}

}  // namespace

extern const Loops scalar_loops = make_loops(std::make_index_sequence<layout_list<Engine::scalar>.size>());

}  // namespace tensorcast::kernels::narrow
