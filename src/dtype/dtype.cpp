// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/dtype.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
#include "dtype/number_range.hpp"
#include "dtype/spellings.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

constexpr auto castable_types = [] {
  std::array<DType, dtype_table.size()> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = dtype_table[i].id;
  return types;
}();

std::string special_codes_text(const DTypeRow& row) {
  if (row.family == Family::boolean) return "every nonzero byte reads as true";
  if (row.family != Family::floating) return "";
  const FloatFormat& format = row.format;
  const std::uint64_t sign = format.has_sign ? std::uint64_t{1} << (row.bits - 1) : 0;
  const int digits = (row.bits + 3) / 4;
  switch (format.nonfinite) {
    case NonFinite::ieee: {
      const std::uint64_t infinity = format.largest_code() + 1;
      return formatted("Inf 0x{:0{}X} 0x{:0{}X}, NaN above them", infinity, digits, infinity | sign, digits);
    }
    case NonFinite::nan_all_ones: {
      const std::uint64_t nan = format.largest_code() + 1;
      if (sign == 0) return formatted("NaN 0x{:0{}X}, no {}", nan, digits, format.has_zero ? "Inf" : "zero");
      return formatted("NaN 0x{:0{}X} 0x{:0{}X}, no Inf", nan, digits, nan | sign, digits);
    }
    case NonFinite::nan_negative_zero:
      return formatted("NaN 0x{:0{}X}, no Inf, no -0", sign, digits);
    case NonFinite::nan_and_infinity: {
      const std::uint64_t infinity = format.largest_code() + 1;
      return formatted("NaN 0x{:0{}X}, Inf 0x{:0{}X} 0x{:0{}X}, no -0", sign, digits, infinity, digits, infinity | sign,
                       digits);
    }
    case NonFinite::none:
      return "no NaN, no Inf";
  }
  return "";
}

DTypeFacts facts_of(const DTypeRow& row, std::string_view special_codes) {
  DTypeFacts facts{.dtype = row.id,
                   .name = row.name,
                   .family = row.family,
                   .bits = row.bits,
                   .exponent_bits = 0,
                   .mantissa_bits = 0,
                   .bias = 0,
                   .has_infinity = false,
                   .has_nan = false,
                   .lowest = 0.0,
                   .largest = 0.0,
                   .smallest_positive = 0.0,
                   .since_opset = row.since_opset,
                   .special_codes = special_codes,
                   .spellings = spellings(row.id)};
  switch (row.family) {
    case Family::floating: {
      const FloatFormat& format = row.format;
      facts.exponent_bits = format.exponent_bits;
      facts.mantissa_bits = format.mantissa_bits;
      facts.bias = format.bias;
      facts.has_infinity = format.has_infinity();
      facts.has_nan = format.has_nan();
      facts.largest = largest_of(row);
      facts.lowest = lowest_of(row);
      facts.smallest_positive = std::ldexp(1.0, format.min_exponent() - (format.has_zero ? format.mantissa_bits : 0));
      break;
    }
    case Family::integer:
      facts.largest = largest_of(row);
      facts.lowest = lowest_of(row);
      facts.smallest_positive = 1.0;
      break;
    case Family::boolean:
      facts.largest = facts.smallest_positive = 1.0;
      break;
    case Family::text:
      break;
  }
  return facts;
}

}  // namespace

std::span<const DType> all_dtypes() noexcept { return castable_types; }

bool is_castable(DType dtype) noexcept { return find_row(dtype) != nullptr; }

bool is_onnx(DType dtype) noexcept { return since_opset(dtype) != 0; }

Result<void> check_castable(DType dtype) {
  if (is_castable(dtype)) return {};
  if (dtype == DType::uint1) return unsupported("uint1 can be promoted but not cast");
  return invalid(formatted("dtype number {} does not exist", static_cast<std::int32_t>(dtype)));
}

std::string_view name(DType dtype) noexcept {
  if (dtype == DType::uint1) return "uint1";
  const DTypeRow* row = find_row(dtype);
  return row ? row->name : "undefined";
}

Family family(DType dtype) noexcept {
  if (dtype == DType::uint1) return Family::integer;
  const DTypeRow* row = find_row(dtype);
  return row ? row->family : Family::text;
}

bool is_signed(DType dtype) noexcept {
  const DTypeRow* row = find_row(dtype);
  return row && row->is_signed;
}

int since_opset(DType dtype) noexcept {
  const DTypeRow* row = find_row(dtype);
  return row ? row->since_opset : 0;
}

const DTypeFacts& facts(DType dtype) noexcept {
  struct Table {
    std::array<std::string, dtype_table.size()> special_codes;
    std::array<DTypeFacts, dtype_table.size()> rows{};
    Table() {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        special_codes[i] = special_codes_text(dtype_table[i]);
        rows[i] = facts_of(dtype_table[i], special_codes[i]);
      }
    }
  };
  static const Table table;
  static constexpr DTypeFacts no_type{.name = "undefined"};
  static const DTypeFacts uint1{.dtype = DType::uint1,
                                .name = "uint1",
                                .family = Family::integer,
                                .bits = 1,
                                .largest = 1.0,
                                .smallest_positive = 1.0,
                                .spellings = spellings(DType::uint1)};
  if (dtype == DType::uint1) return uint1;
  return is_castable(dtype) ? table.rows[row_number(dtype)] : no_type;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
