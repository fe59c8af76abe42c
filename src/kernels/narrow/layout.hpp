// How the table of one pair of types lies in memory, and which code reads it. Decided at compile time.
//
// A source of 8 bits or fewer has at most 256 codes, so its conversion under any policy is a table, and the reference
// fills it: exact by construction. What is left to the kernels is to look up fast and to put bytes in order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dtype/dtype_table.hpp"
#include "kernels/narrow/six_bits.hpp"
#include "tensorcast/target.hpp"

namespace tensorcast::kernels::narrow {

enum class Engine : std::uint8_t { scalar, avx2, avx512, avx512vbmi };

enum class Form : std::uint8_t {
  elements,   // an entry is all output of one index, as it is stored; codes below a byte lie in a byte each
  bytes,      // planes: the lowest byte of every index's output, then the next byte ...
  words,      // the same in units of 16 bits
  chains,     // one byte or less of output by 16 rows of indices; see chain_rows
  rows,       // planes again, of 16 rows that share few shapes; see RowPlane
  powers,     // 2^(index - 127) by a shift; see PowerTable
  truncated,  // float8 to wider integers by way of float32; see TruncationTable
  none,       // the CPU's own conversion is exact
};

// Of chains: an entry is the exclusive or of a row's output and that of the row before, so that the entries up to the
// index's row make its output. Outputs below a byte share one: it has those of rows 8 or 4 apart.
constexpr std::size_t chain_rows(int element_bits) { return element_bits == 8 ? 16 : element_bits == 4 ? 8 : 4; }
inline constexpr std::size_t chain_length = 8;  // at most; a byte shuffle gives 0 where the index has bit 7

// Of one plane in rows, a row being the 16 indices with the same high four bits: a byte is its row's first byte and
// what the row's shape adds to it. Codes grow by the same steps in all rows but those of subnormals, infinity and NaN,
// so that rows share shapes. Here follow those shapes, 16 bytes each.
struct RowPlane {
  std::uint8_t first[16];
  std::uint8_t shape[16];  // of a row: its number, in the highest bits that all numbers need
  std::int8_t sign[16];    // 1 or -1 times the shape; see Layout::has_signs
};

// Of powers of two as integers.
struct PowerTable {
  std::uint64_t last;   // the greatest index of which a shift is right
  std::uint64_t above;  // the output of greater ones, but for NaN's, which is 0
};

// Of integers from float8: the CPU's conversion of the number as float32 is right for most codes. Here follow the
// outputs of all codes, for the rest.
struct TruncationTable {
  // Codes, as signed bytes, are raised to this first: to 0 where negative numbers become 0. All bytes are the same.
  std::int8_t lowest[16];
  // The greatest code without its sign up to which the conversion is right. All bytes are the same.
  std::int8_t greatest_plain[16];
  std::uint8_t rounds;  // 1: to nearest even instead of toward zero
};

inline constexpr std::size_t most_planes = 8;
using ShapeCounts = std::array<std::uint8_t, most_planes>;  // of each plane; at most 16

struct Layout {
  Engine engine = Engine::scalar;
  Form form = Form::elements;
  int index_bits = 8;      // 8: a source byte; 4, 2: a packed element; 1: a bool, whose byte is zero or not
  int index_elements = 1;  // elements of one index: more than 1 where a source byte of packed elements is the index
  int element_bits = 8;    // of the target
  // Planes: an output is `zero_units` of 0, then `table_units` looked up, then the last of them repeated (a sign).
  int zero_units = 0;
  int table_units = 0;
  int finite_units = 0;    // that suffice instead where no index is infinity, if not 0
  bool is_scaled = false;  // times the float64 that follows the table; outputs are one float64
  int first_row = 0;       // Form::chains: the first whose entries count; all rows before it are one byte
  // Form::rows.
  ShapeCounts shapes = {};
  bool has_signs = false;  // in the first plane
  int index_offset = 0;    // of a row's first index, so that rows share more shapes
  // Form::none: which conversion; to integers where `to` is undefined. Form::truncated: `from` alone.
  DType from = DType::undefined;
  DType to = DType::undefined;

  [[nodiscard]] constexpr int output_bits() const { return index_elements * element_bits; }
  [[nodiscard]] constexpr int output_bytes() const { return output_bits() < 8 ? 1 : output_bits() / 8; }
  [[nodiscard]] constexpr int unit_bytes() const { return form == Form::words ? 2 : 1; }
  [[nodiscard]] constexpr int output_units() const { return (output_bytes() + unit_bytes() - 1) / unit_bytes(); }
  // Memory of one index; a bool has a byte of it.
  [[nodiscard]] constexpr int source_bits() const { return index_bits == 1 ? 8 : index_bits; }
  // Planes of fewer than 8 index bits fill the register that a byte shuffle looks up in.
  [[nodiscard]] constexpr std::size_t entries() const { return index_bits == 8 ? 256 : 16; }
  [[nodiscard]] constexpr std::size_t row_plane_offset(std::size_t plane) const {
    std::size_t offset = 0;
    for (std::size_t i = 0; i < plane; ++i) offset += sizeof(RowPlane) + shapes[i] * std::size_t{16};
    return offset;
  }
  [[nodiscard]] constexpr std::size_t planes_bytes() const {
    return entries() * static_cast<std::size_t>(table_units * unit_bytes());
  }
  [[nodiscard]] constexpr std::size_t table_bytes() const {
    const auto units = static_cast<std::size_t>(table_units);
    switch (form) {
      case Form::elements:
        return entries() * static_cast<std::size_t>(output_bytes());
      case Form::bytes:
      case Form::words:
        return planes_bytes() + (is_scaled ? sizeof(double) : 0);
      case Form::chains:
        return chain_rows(element_bits) * 16;
      case Form::rows:
        return row_plane_offset(units);
      case Form::powers:
        return sizeof(PowerTable);
      case Form::truncated:
        return sizeof(TruncationTable) + entries() * static_cast<std::size_t>(output_bytes());
      case Form::none:
        break;
    }
    return 0;
  }

  friend constexpr bool operator==(const Layout&, const Layout&) = default;
};

// Which bytes of a target element need a table: `zero` bytes below them are 0, those above repeat the last one.
struct SignificantBytes {
  int zero = 0;
  int looked_up = 0;
};

constexpr SignificantBytes significant_bytes(DType from, DType to) {
  const DTypeRow& source = row(from);
  const DTypeRow& target = row(to);
  if (target.bits <= 16) return {0, target.bits <= 8 ? 1 : 2};
  const int bytes = target.bits / 8;
  if (target.family == Family::floating) {
    // Significands of 8 bits at most: float32 is bfloat16 and zeros. Beside float64's longer exponent 4 bits fit too.
    const bool eight_bit_integer = source.family == Family::integer && source.bits == 8;
    const int looked_up = to == DType::float64 && eight_bit_integer ? 3 : 2;
    return {bytes - looked_up, looked_up};
  }
  if (source.family != Family::floating || source.bits == 4) return {0, 2};  // a byte and its sign
  // Magnitudes below 2^16 and a sign; but powers of two reach every byte, and infinity saturates to another highest
  // one.
  const bool is_large = source.format.max_exponent() >= 16;
  const bool every_byte = is_large || (source.format.has_infinity() && target.is_signed);
  return {0, every_byte ? bytes : 3};
}

// A code of six bits has a byte of its own in tables and what they give: six_bits.hpp.
constexpr int table_bits(DType to) { return has_six_bits(row(to)) ? 8 : row(to).bits; }

constexpr int index_bits_of_element(DType from) { return from == DType::boolean ? 1 : row(from).bits; }

constexpr Layout scalar_layout(DType from, DType to) {
  return {.index_elements = 8 / row(from).bits, .element_bits = table_bits(to)};
}

constexpr Layout byte_planes(Engine engine, DType from, DType to, int index_bits) {
  const SignificantBytes bytes = significant_bytes(from, to);
  return {.engine = engine,
          .form = Form::bytes,
          .index_bits = index_bits,
          .element_bits = table_bits(to),
          .zero_units = bytes.zero,
          .table_units = bytes.looked_up};
}

constexpr Layout word_planes(DType from, DType to) {
  const SignificantBytes bytes = significant_bytes(from, to);
  const int output_words = row(to).bits <= 16 ? 1 : row(to).bits / 16;
  const int zero_words = bytes.zero / 2;
  const int first_repeated = (bytes.zero + bytes.looked_up) / 2;  // a word that is nothing but the last byte
  const int last_word = first_repeated < output_words ? first_repeated : output_words - 1;
  return {.engine = Engine::avx512,
          .form = Form::words,
          .element_bits = table_bits(to),
          .zero_units = zero_words,
          .table_units = last_word - zero_words + 1};
}

// Numbers of float8_e5m2 are 16 bits and a sign as integers; only infinity saturates to more where there is a sign.
constexpr Layout with_finite_units(Layout layout, DType from, DType to) {
  const bool has_finite_units = from == DType::float8_e5m2 && row(to).family == Family::integer && row(to).bits >= 32;
  if (has_finite_units && layout.table_units > 3) layout.finite_units = 3;
  return layout;
}

// Whether bytes fall for negative numbers as they grow for positive ones: rows then share shapes but for the sign.
constexpr bool rows_have_signs(DType from, DType to) {
  const DTypeRow& source = row(from);
  const DTypeRow& target = row(to);
  if (source.family == Family::floating) return source.format.has_sign && target.family == Family::integer;
  return from == DType::int8 && target.family == Family::floating && target.bits == 8 && target.format.has_sign;
}

// How many shapes the rows of a source have in each plane, under the policy under which they have most, for the pairs
// that are worth a count; a test checks them. In the order of DType: to float8_e4m3fn, e4m3fnuz, e5m2, e5m2fnuz.
struct ShapesOfSource {
  DType from = DType::undefined;
  std::uint8_t to_float8[4] = {};
  std::uint8_t to_e8m0 = 0;
  std::uint8_t to_float4 = 0;
  std::uint8_t to_integer[3] = {};  // of 8, 4 and 2 bits
  ShapeCounts to_int16 = {};        // and uint16; of float8_e8m0fnu
  ShapeCounts to_float16 = {};
  ShapeCounts to_float32 = {};  // and bfloat16
  ShapeCounts to_float64 = {};
};
inline constexpr auto shapes_of_sources = std::to_array<ShapesOfSource>({
    {DType::float8_e4m3fn, {0, 5, 3, 5}, 5, 6, {7, 6, 5}, {}, {3, 3}, {3, 3}, {3, 3}},
    {DType::float8_e4m3fnuz, {3, 0, 3, 2}, 4, 5, {7, 6, 5}, {}, {2, 3}, {3, 3}, {3, 4}},
    {DType::float8_e5m2, {5, 7, 0, 5}, 5, 5, {7, 6, 5}, {}, {1, 2}, {3, 3}, {3, 3}},
    {DType::float8_e5m2fnuz, {6, 6, 3, 0}, 4, 4, {5, 4, 3}, {}, {2, 3}, {3, 3}, {3, 4}},
    {DType::float8_e8m0fnu, {4, 4, 4, 5}, 0, 4, {2, 2, 2}, {3, 3}, {2, 4}, {2, 2}, {2, 2}},
    {DType::int8, {5, 5, 6, 6}, 3, 3},
    {DType::uint8, {6, 7, 7, 7}, 3, 2},
});

// Zeros where nobody has counted.
constexpr ShapeCounts shapes_of_rows(DType from, DType to) {
  ShapesOfSource source;
  for (const ShapesOfSource& counted : shapes_of_sources) {
    if (counted.from == from) source = counted;
  }
  const int bits = row(to).bits;
  if (row(to).family == Family::boolean) return {2};
  if (row(to).family == Family::integer) {
    return bits > 8 ? source.to_int16 : ShapeCounts{source.to_integer[bits == 8 ? 0 : bits == 4 ? 1 : 2]};
  }
  if (to == DType::float64) return source.to_float64;
  if (to == DType::float16) return source.to_float16;
  if (bits > 8) return source.to_float32;
  if (to == DType::float8_e8m0fnu) return {source.to_e8m0};
  if (to == DType::float4_e2m1fn) return {source.to_float4};
  const bool is_counted = to >= DType::float8_e4m3fn && to <= DType::float8_e5m2fnuz;
  if (!is_counted) return {};
  return {source.to_float8[static_cast<std::size_t>(to) - static_cast<std::size_t>(DType::float8_e4m3fn)]};
}

// Packed elements to packed elements: all of four bits at once.
constexpr Layout nibbles(DType from, DType to) {
  return {.engine = Engine::avx2,
          .form = Form::bytes,
          .index_bits = 4,
          .index_elements = 4 / row(from).bits,
          .element_bits = table_bits(to),
          .table_units = 1};
}

constexpr bool is_packed(DType type) { return row(type).bits < 8 && !has_six_bits(row(type)); }

// Numbers of magnitude a quarter and less are 0, or -0 for the types that have it: the first rows of both signs.
constexpr int first_row_of_chain(DType from, DType to) {
  if (row(to).bits != 4 || !row(from).format.has_sign) return 0;
  const bool to_float = row(to).family == Family::floating;
  const bool is_fnuz = row(from).format.nonfinite == NonFinite::nan_negative_zero;
  if (to_float && is_fnuz) return 0;  // NaN is in row 8
  return to_float && from == DType::float8_e4m3fn ? 2 : 3;
}

// Of sources of 8 bits.
constexpr bool cpu_converts(DType from, DType to) {
  if (row(from).family != Family::integer) return false;
  return row(to).family == Family::integer || (row(to).family == Family::floating && row(to).bits >= 16);
}

constexpr Layout avx2_layout(DType from, DType to) {
  if (is_packed(from) && is_packed(to)) return nibbles(from, to);
  Layout layout = byte_planes(Engine::avx2, from, to, index_bits_of_element(from));
  if (layout.index_bits < 8) return layout;
  if (cpu_converts(from, to)) {
    // Targets of one width hold the same bits; only wider ones care for the source's sign.
    const bool to_integer = row(to).family == Family::integer;
    return {.engine = Engine::avx2,
            .form = Form::none,
            .element_bits = table_bits(to),
            .from = to_integer && row(to).bits <= 8 ? DType::int8 : from,
            .to = to_integer ? DType::undefined : to};
  }
  if (from == DType::float8_e8m0fnu && row(to).family == Family::integer && row(to).bits >= 32) {
    return {.engine = Engine::avx2, .form = Form::powers, .element_bits = table_bits(to)};
  }
  const bool from_float8 = row(from).family == Family::floating && row(from).format.has_sign;
  if (from_float8 && row(to).family == Family::integer && row(to).bits >= 16) {
    return {.engine = Engine::avx2, .form = Form::truncated, .element_bits = table_bits(to), .from = from};
  }
  const ShapeCounts shapes = shapes_of_rows(from, to);
  if (shapes[0] == 0) {
    if (row(to).bits > 8) return scalar_layout(from, to);
    layout.form = Form::chains;
    return layout;
  }
  if (row(to).bits < 8) {  // a row of a chain costs as much as a shape; below 8 bits, chains have 8 rows or 4
    const int first_row = first_row_of_chain(from, to);
    const int shapes_as_fast = first_row != 0 || row(to).bits == 2 ? 3 : 4;
    if (shapes[0] > shapes_as_fast) {
      layout.form = Form::chains;
      layout.first_row = first_row;
      return layout;
    }
  }
  layout.form = Form::rows;
  layout.shapes = shapes;
  layout.has_signs = rows_have_signs(from, to);
  layout.index_offset = from == DType::float8_e8m0fnu ? 1 : 0;  // 1 is the lowest bit of a byte: its code is 127
  for (std::size_t plane = static_cast<std::size_t>(layout.table_units); plane < most_planes; ++plane) {
    layout.shapes[plane] = 0;  // so that pairs share layouts
  }
  return layout;
}

// Where half as wide registers are faster than word permutes, as measured.
constexpr bool avx2_beats_words(DType from, DType to) {
  if (is_packed(to)) return true;
  const Layout layout = avx2_layout(from, to);
  if (layout.form == Form::powers) return true;
  if (layout.form == Form::truncated) return row(to).bits >= 32;
  if (layout.form == Form::none) return to != DType::float16 && to != DType::bfloat16;
  return row(to).bits == 8 && layout.shapes[0] + (layout.has_signs ? 1 : 0) <= 6;
}

constexpr Layout layout_of(Target target, DType from, DType to) {
  const int index_bits = index_bits_of_element(from);
  switch (target) {
    case Target::portable:
      break;
    case Target::avx2:
      return avx2_layout(from, to);
    case Target::avx512:
      if (index_bits == 8 && avx2_beats_words(from, to)) return avx2_layout(from, to);
      if (is_packed(from) && is_packed(to)) return avx2_layout(from, to);
      return index_bits < 8 ? byte_planes(Engine::avx512, from, to, index_bits) : word_planes(from, to);
    case Target::avx512vbmi:
      if (is_packed(from) && is_packed(to)) {  // all elements of a source byte at once
        const int elements = 8 / row(from).bits;
        return {.engine = Engine::avx512vbmi,
                .form = Form::bytes,
                .index_elements = elements,
                .element_bits = table_bits(to),
                .table_units = elements * row(to).bits > 8 ? 2 : 1};
      }
      if (index_bits < 8) return byte_planes(Engine::avx512, from, to, index_bits);
      return with_finite_units(byte_planes(Engine::avx512vbmi, from, to, index_bits), from, to);
  }
  return scalar_layout(from, to);
}

constexpr Layout all_bytes(Layout layout) {
  layout.zero_units = 0;
  layout.table_units = layout.output_units();
  return layout;
}

// Products with a scale have all of float64's bytes. Most of them are zero before, so they are made in the last step.
constexpr bool multiplies(Target target, DType to) {
  return to == DType::float64 && (target == Target::avx512 || target == Target::avx512vbmi);
}

// The layout for a table of any contents, of which only the widths of the types are known; to float64 of AVX-512, for
// the pair's own results and a scale. What is lost by looking up one element at a time is little where outputs are so
// wide that memory is the limit.
constexpr Layout general_layout(Target target, DType from, DType to) {
  const int index_bits = index_bits_of_element(from);
  if (target == Target::portable) return scalar_layout(from, to);
  if (is_packed(from) && is_packed(to)) return layout_of(target, from, to);
  if (multiplies(target, to)) {
    Layout layout = index_bits < 8                 ? byte_planes(Engine::avx512, from, to, index_bits)
                    : target == Target::avx512vbmi ? byte_planes(Engine::avx512vbmi, from, to, index_bits)
                                                   : word_planes(from, to);
    layout.is_scaled = true;
    return layout;
  }
  if (index_bits < 8) {
    return all_bytes(byte_planes(target == Target::avx2 ? Engine::avx2 : Engine::avx512, from, to, index_bits));
  }
  if (target == Target::avx512vbmi) return all_bytes(byte_planes(Engine::avx512vbmi, from, to, index_bits));
  if (row(to).bits <= 8) {
    Layout chains = byte_planes(Engine::avx2, from, to, index_bits);
    chains.form = Form::chains;
    return chains;
  }
  if (target == Target::avx512 && row(to).bits <= 32) return all_bytes(word_planes(from, to));
  return scalar_layout(from, to);
}

constexpr bool is_narrow(const DTypeRow& type) { return type.family != Family::text && type.bits <= 8; }
// Whether conversions from the type look up in a table of its own.
constexpr bool has_tables(const DTypeRow& type) { return is_narrow(type) && !has_six_bits(type); }

inline constexpr std::array<Target, 4> all_targets = {Target::portable, Target::avx2, Target::avx512,
                                                      Target::avx512vbmi};

inline constexpr std::size_t max_layouts = 128;

struct LayoutList {
  std::array<Layout, max_layouts> layouts = {};
  std::size_t size = 0;

  [[nodiscard]] constexpr bool has(const Layout& layout) const {
    for (std::size_t i = 0; i < size; ++i) {
      if (layouts[i] == layout) return true;
    }
    return false;
  }
  // Precondition: the list has `layout`.
  [[nodiscard]] constexpr std::size_t index_of(const Layout& layout) const {
    std::size_t i = 0;
    while (layouts[i] != layout) ++i;
    return i;
  }
};

// The layouts of all pairs and targets that `engine` serves, each once.
constexpr LayoutList layouts_of(Engine engine) {
  LayoutList list;
  for (const Target target : all_targets) {
    for (const DTypeRow& from : dtype_table) {
      if (!has_tables(from)) continue;
      for (const DTypeRow& to : dtype_table) {
        if (to.family == Family::text) continue;
        const Layout any_table = general_layout(target, from.id, to.id);
        const Layout own_table = from.id == to.id ? any_table : layout_of(target, from.id, to.id);
        for (const Layout& layout : {own_table, any_table}) {
          if (layout.engine == engine && !list.has(layout)) list.layouts[list.size++] = layout;
        }
      }
    }
  }
  return list;
}

template <Engine engine>
inline constexpr LayoutList layout_list = layouts_of(engine);

}  // namespace tensorcast::kernels::narrow
