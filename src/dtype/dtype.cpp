// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/dtype.hpp"

#include <array>
#include <string>

#include "dtype/dtype_table.hpp"
#include "dtype/errors.hpp"
#include "dtype/formatted.hpp"
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
  return {number_facts(row.id), row.id, row.name, row.family, row.since_opset, special_codes, spellings(row.id)};
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
  static constexpr DTypeFacts no_type{{}, DType::undefined, "undefined"};
  static const DTypeFacts uint1{number_facts(DType::uint1), DType::uint1, "uint1", Family::integer, 0, {},
                                spellings(DType::uint1)};
  if (dtype == DType::uint1) return uint1;
  return is_castable(dtype) ? table.rows[row_number(dtype)] : no_type;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
