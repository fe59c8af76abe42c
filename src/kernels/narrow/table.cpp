#include "kernels/narrow/table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>

#include "codec/reference_cast.hpp"

namespace tensorcast::kernels::narrow {
namespace {

// `bytes` holds the plane's byte of all 256 indices, whose rows have at most `shape_count` shapes. Bits of a byte that
// `mask` lacks do not matter.
void fill_row_plane(const std::array<std::uint8_t, 256>& bytes, int mask, std::size_t shape_count, bool has_signs,
                    std::byte* table) {
  using Shape = std::array<std::uint8_t, 16>;
  RowPlane plane = {};
  std::array<Shape, 16> shapes = {};
  std::size_t known = 0;
  const auto number_of = [&](const Shape& shape) {
    const auto end = shapes.begin() + static_cast<std::ptrdiff_t>(known);
    return static_cast<std::size_t>(std::find(shapes.begin(), end, shape) - shapes.begin());
  };
  const int unused_bits = 8 - std::bit_width(shape_count - 1);
  for (std::size_t row = 0; row < 16; ++row) {
    Shape shape = {};
    Shape negated = {};
    for (std::size_t i = 0; i < 16; ++i) {
      shape[i] = static_cast<std::uint8_t>((bytes[row * 16 + i] - bytes[row * 16]) & mask);
      negated[i] = static_cast<std::uint8_t>(-shape[i] & mask);
    }
    std::size_t number = number_of(shape);
    const bool is_negated = has_signs && number == known && number_of(negated) != known;
    if (is_negated) number = number_of(negated);
    assert(number < shape_count);
    if (number == known) shapes[known++] = shape;
    plane.first[row] = bytes[row * 16];
    plane.shape[row] = static_cast<std::uint8_t>(number << unused_bits);
    plane.sign[row] = is_negated ? -1 : 1;
  }
  std::memcpy(table, &plane, sizeof plane);
  std::memcpy(table + sizeof plane, shapes.data(), shape_count * sizeof(Shape));
}

PowerTable power_table(const Outputs& outputs) {
  const auto of = [&outputs](std::size_t index) {
    std::uint64_t output = 0;
    std::memcpy(&output, outputs[index].data(), sizeof output);  // those of fewer bytes are followed by 0
    return output;
  };
  PowerTable table = {.last = 255, .above = of(254)};
  if (table.above == 0) return table;  // wrapped: a shift says so too
  do --table.last;
  while (of(table.last) == table.above);
  return table;
}

// Of a code without its sign.
double magnitude_of(const FloatFormat& format, unsigned code) {
  const auto exponent = static_cast<int>(code >> format.mantissa_bits);
  const unsigned leading = exponent == 0 ? 0U : 1U << format.mantissa_bits;
  const unsigned mantissa = code & ((1U << format.mantissa_bits) - 1);
  return std::ldexp(leading | mantissa, std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

void fill_truncation(const Layout& layout, const Outputs& outputs, std::byte* table) {
  const FloatFormat& format = row(layout.from).format;
  constexpr unsigned sign = 0x80;
  const unsigned mask = layout.element_bits == 16 ? 0xffff : ~0U;  // larger integers show what they are in 32 bits
  const auto of = [&](unsigned code) {
    std::uint64_t output = 0;
    std::memcpy(&output, outputs[code].data(), sizeof output);  // those of fewer bytes are followed by 0
    return output;
  };
  const auto one = static_cast<unsigned>(format.bias) << format.mantissa_bits;
  const unsigned one_and_a_half = one | 1U << (format.mantissa_bits - 1);
  const bool has_negative = of(one | sign) != 0;
  const bool rounds = of(one_and_a_half) == 2;
  const auto is_plain = [&](unsigned code) {
    const double magnitude = magnitude_of(format, code);
    const double whole = std::floor(magnitude);
    const double above = magnitude - whole;
    const bool up = rounds && (above > 0.5 || (above == 0.5 && std::fmod(whole, 2.0) != 0.0));
    const auto positive = static_cast<std::int64_t>(whole) + (up ? 1 : 0);
    const std::int64_t negative = has_negative ? -positive : 0;
    const auto keeps = [&](std::int64_t number, unsigned from) {
      const auto bits = static_cast<std::uint64_t>(number);
      return of(from) == (layout.element_bits == 64 ? bits : bits & mask);
    };
    return keeps(positive, code) && keeps(negative, code | sign);
  };
  unsigned first = 0;
  while (first < sign && is_plain(first)) ++first;
  TruncationTable facts = {};
  std::fill(std::begin(facts.lowest), std::end(facts.lowest), static_cast<std::int8_t>(has_negative ? -128 : 0));
  std::fill(std::begin(facts.greatest_plain), std::end(facts.greatest_plain), static_cast<std::int8_t>(first - 1));
  facts.rounds = rounds ? 1 : 0;
  std::memcpy(table, &facts, sizeof facts);
  const auto output_bytes = static_cast<std::size_t>(layout.output_bytes());
  for (std::size_t code = 0; code < outputs.size(); ++code) {
    std::memcpy(table + sizeof facts + code * output_bytes, outputs[code].data(), output_bytes);
  }
}

void fill_chains(const Outputs& outputs, int element_bits, std::size_t first_row, std::byte* table) {
  const std::size_t rows = chain_rows(element_bits);
  std::array<std::byte, 256> bytes = {};
  for (std::size_t index = 0; index < 256; ++index) {
    const std::size_t part = index / (rows * 16);
    bytes[index % (rows * 16)] |= outputs[index][0] << (part * static_cast<std::size_t>(element_bits));
  }
  for (std::size_t i = 0; i < rows * 16; ++i) {
    const bool first = i / 16 % chain_length == 0 || i / 16 < first_row;
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
      fill_chains(outputs, layout.element_bits, static_cast<std::size_t>(layout.first_row), table);
      break;
    case Form::rows:
      for (std::size_t plane = 0; plane < units; ++plane) {
        std::array<std::uint8_t, 256> bytes = {};
        for (std::size_t index = 0; index < indices; ++index) {
          const std::size_t place = (index + static_cast<std::size_t>(layout.index_offset)) % 256;
          bytes[place] = std::to_integer<std::uint8_t>(outputs[index][zero_bytes + plane]);
        }
        const int mask = (1 << std::min(layout.element_bits, 8)) - 1;
        fill_row_plane(bytes, mask, layout.shapes[plane], layout.has_signs && plane == 0,
                       table + layout.row_plane_offset(plane));
      }
      break;
    case Form::powers: {
      const PowerTable powers = power_table(outputs);
      std::memcpy(table, &powers, sizeof powers);
      break;
    }
    case Form::truncated:
      fill_truncation(layout, outputs, table);
      break;
    case Form::none:
      break;
  }
}

Outputs outputs_of(const Layout& layout, DType from, DType to, const codec::Policy& policy) noexcept {
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
      if (has_six_bits(row(to))) {
        outputs[index][i] = static_cast<std::byte>(results[code]);
      } else {
        codec::store_code(to, outputs[index].data(), i, results[code]);
      }
    }
  }
  return outputs;
}

void fill_table(const Layout& layout, DType from, DType to, const codec::Policy& policy, std::byte* table) noexcept {
  lay_out(layout, outputs_of(layout, from, to, policy), table);
}

bool fits_planes(const Layout& layout, const Outputs& outputs) noexcept {
  const auto unit_bytes = static_cast<std::size_t>(layout.unit_bytes());
  const auto is_unit = [unit_bytes](const std::byte* unit, const std::byte* other) {
    return std::memcmp(unit, other, unit_bytes) == 0;
  };
  constexpr std::byte zero[2] = {};
  const auto first_repeated = [&layout](std::size_t index) {
    constexpr std::size_t infinity = 0x7c;  // of float8_e5m2, the source that has finite units
    const bool is_finite = layout.finite_units != 0 && (index & 0x7f) != infinity;
    return layout.zero_units + (is_finite ? layout.finite_units : layout.table_units);
  };
  for (std::size_t index = 0; index < std::size_t{1} << layout.index_bits; ++index) {
    const std::byte* unit = outputs[index].data();
    for (int i = 0; i < layout.output_units(); ++i, unit += unit_bytes) {
      if (i < layout.zero_units && !is_unit(unit, zero)) return false;
      if (i >= first_repeated(index) && !is_unit(unit, unit - unit_bytes)) return false;
    }
  }
  return true;
}

}  // namespace tensorcast::kernels::narrow
