#include "kernels/narrow/table.hpp"

#include <array>

#include "codec/reference_cast.hpp"

namespace tensorcast::kernels::narrow {
namespace {

// `bytes` holds the plane's byte of all 256 indices.
SumPlane sum_plane(const std::array<std::uint8_t, 256>& bytes) {
  constexpr std::size_t plain_row = 16;  // row 1
  SumPlane plane = {};
  for (std::size_t i = 0; i < 16; ++i) {
    plane.low[i] = bytes[plain_row + i];
    plane.high[i] = static_cast<std::uint8_t>(bytes[i * 16] - bytes[plain_row]);
    for (std::size_t j = 0; j < odd_rows.size(); ++j) plane.odd_rows[j][i] = bytes[odd_rows[j] * 16 + i];
  }
  return plane;
}

void fill_chains(const Outputs& outputs, int element_bits, std::byte* table) {
  const std::size_t rows = chain_rows(element_bits);
  std::array<std::byte, 256> bytes = {};
  for (std::size_t index = 0; index < 256; ++index) {
    const std::size_t part = index / (rows * 16);
    bytes[index % (rows * 16)] |= outputs[index][0] << (part * static_cast<std::size_t>(element_bits));
  }
  for (std::size_t i = 0; i < rows * 16; ++i) {
    const bool first = i / 16 % chain_length == 0;
    table[i] = first ? bytes[i] : bytes[i] ^ bytes[i - 16];
  }
}

}  // namespace

void lay_out(const Layout& layout, const Outputs& outputs, std::byte* table) noexcept {
  const auto unit_bytes = static_cast<std::size_t>(layout.unit_bytes());
  const auto units = static_cast<std::size_t>(layout.table_units);
  const auto zero_bytes = static_cast<std::size_t>(layout.zero_units) * unit_bytes;
  const auto output_bytes = static_cast<std::size_t>(layout.output_bytes());
  const std::size_t indices = std::size_t{1} << layout.index_bits;
  switch (layout.form) {
    case Form::elements:
      for (std::size_t index = 0; index < indices; ++index) {
        std::memcpy(table + index * output_bytes, outputs[index].data(), output_bytes);
      }
      break;
    case Form::bytes:
    case Form::words:
      for (std::size_t plane = 0; plane < units; ++plane) {
        for (std::size_t index = 0; index < indices; ++index) {
          std::memcpy(table + (plane * layout.entries() + index) * unit_bytes,
                      outputs[index].data() + zero_bytes + plane * unit_bytes, unit_bytes);
        }
      }
      break;
    case Form::chains:
      fill_chains(outputs, layout.element_bits, table);
      break;
    case Form::sums:
      for (std::size_t plane = 0; plane < units; ++plane) {
        std::array<std::uint8_t, 256> bytes = {};
        for (std::size_t index = 0; index < indices; ++index) {
          bytes[index] = std::to_integer<std::uint8_t>(outputs[index][zero_bytes + plane]);
        }
        const SumPlane sums = sum_plane(bytes);
        std::memcpy(table + plane * sizeof sums, &sums, sizeof sums);
      }
      break;
    case Form::none:
      break;
  }
}

void fill_table(const Layout& layout, DType from, DType to, const codec::Policy& policy, std::byte* table) noexcept {
  const auto elements = static_cast<std::size_t>(layout.index_elements);
  const std::size_t indices = std::size_t{1} << layout.index_bits;

  std::array<std::uint64_t, 256> results = {};
  const std::size_t codes = std::size_t{1} << (static_cast<std::size_t>(layout.index_bits) / elements);
  for (std::size_t code = 0; code < codes; ++code) results[code] = codec::cast_code(from, code, to, policy).bits;

  Outputs outputs = {};
  for (std::size_t index = 0; index < indices; ++index) {
    const std::byte source{static_cast<unsigned char>(index)};
    for (std::size_t i = 0; i < elements; ++i) {
      const std::uint64_t code = elements == 1 ? index : codec::load_code(from, &source, i);
      codec::store_code(to, outputs[index].data(), i, results[code]);
    }
  }
  lay_out(layout, outputs, table);
}

}  // namespace tensorcast::kernels::narrow
