// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/byte_table/loop.hpp"

namespace tensorcast::kernels::byte_table {
namespace {

std::size_t index_at(const std::byte* src, std::size_t i) { return std::to_integer<std::size_t>(src[i]); }

// Several outputs fill a byte.
template <int output_bits>
void look_up_and_pack(const std::byte* src, std::byte* dst, std::size_t indices, const std::byte* table) {
  constexpr std::size_t per_byte = 8 / output_bits;
  for (std::size_t first = 0; first < indices; first += per_byte) {
    std::byte packed{};
    for (std::size_t i = 0; i < per_byte && first + i < indices; ++i) {
      packed |= table[index_at(src, first + i)] << (i * output_bits);
    }
    *dst++ = packed;
  }
}

template <int output_bits>
void run(const std::byte* src, std::byte* dst, std::size_t count, int index_elements, const std::byte* table) {
  const auto elements = static_cast<std::size_t>(index_elements);
  if constexpr (output_bits < 8) {
    look_up_and_pack<output_bits>(src, dst, (count + elements - 1) / elements, table);
  } else {
    constexpr std::size_t output_bytes = output_bits / 8;
    const std::size_t whole = count / elements;
    for (std::size_t i = 0; i < whole; ++i) {
      std::memcpy(dst + i * output_bytes, table + index_at(src, i) * output_bytes, output_bytes);
    }
    const std::size_t rest_bits = count % elements * (output_bits / elements);
    if (rest_bits != 0) {
      std::memcpy(dst + whole * output_bytes, table + index_at(src, whole) * output_bytes, (rest_bits + 7) / 8);
    }
  }
}

template <int output_bits>
constexpr Loop loop() {
  Loop loop = {.output_bits = output_bits, .is_scalar = true, .run = run<output_bits>};
  loop.table_bytes = loop.output_bytes();
  return loop;
}

constexpr Loop loops[] = {loop<2>(),  loop<4>(),  loop<8>(),   loop<16>(),
                          loop<32>(), loop<64>(), loop<128>(), loop<256>()};

}  // namespace

Loops scalar_loops() noexcept { return loops; }

}  // namespace tensorcast::kernels::byte_table
