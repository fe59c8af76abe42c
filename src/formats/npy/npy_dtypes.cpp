// SPDX-License-Identifier: Apache-2.0
#include "formats/npy/npy_dtypes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/text_parts.hpp"

namespace tensorcast::formats::npy {
namespace {

// Longer elements fail, so that one element always fits into memory.
constexpr std::uint64_t max_text_item_bytes = std::uint64_t{16} << 20;

struct Spelling {
  std::string_view code;  // without its byte order mark
  DType dtype;
};
constexpr auto native_spellings = std::to_array<Spelling>({
    {"b1", DType::boolean},
    {"?", DType::boolean},
    {"f8", DType::float64},
    {"f4", DType::float32},
    {"f2", DType::float16},
    {"i8", DType::int64},
    {"i4", DType::int32},
    {"i2", DType::int16},
    {"i1", DType::int8},
    {"u8", DType::uint64},
    {"u4", DType::uint32},
    {"u2", DType::uint16},
    {"u1", DType::uint8},
    // Written by ml_dtypes 0.6, and rejected by NumPy itself; so it is read, but never written.
    {"f1", DType::float8_e5m2},
    // Characters of types, which NumPy reads and never writes; `l` and `L` have another width on each platform.
    {"d", DType::float64},
    {"f", DType::float32},
    {"e", DType::float16},
    {"q", DType::int64},
    {"i", DType::int32},
    {"h", DType::int16},
    {"b", DType::int8},
    {"Q", DType::uint64},
    {"I", DType::uint32},
    {"H", DType::uint16},
    {"B", DType::uint8},
});

// Returns the types of this width that NumPy cannot name.
std::vector<std::string_view> candidates(std::uint64_t width) {
  std::vector<std::string_view> names;
  for (const DType dtype : all_dtypes()) {
    if (is_opaque(dtype) && item_bytes(dtype) == width) names.push_back(name(dtype));
  }
  return names;
}

Result<ElementLayout> parse_opaque(std::string_view descr, std::uint64_t width, bool big_endian, DType from) {
  if (from == DType::undefined) {
    const std::vector<std::string_view> names = candidates(width);
    if (names.empty()) {
      return unsupported(fmt::format("opaque elements of {} bytes (\"{}\") are not numbers", width, descr));
    }
    return invalid(fmt::format("\"{}\" does not say which type its elements of {} bytes have", descr, width),
                   fmt::format("`from` says it: {}", fmt::join(names, ", ")));
  }
  if (family(from) == Family::text || item_bytes(from) != width) {
    return invalid(fmt::format("elements of {} bytes (\"{}\") cannot be {}", width, descr, name(from)),
                   fmt::format("`from` must name a type of that width: {}", fmt::join(candidates(width), ", ")));
  }
  return ElementLayout{.dtype = from, .item_bytes = width, .big_endian = big_endian && width > 1};
}

Result<ElementLayout> parse_text(std::string_view descr, std::uint64_t length, bool big_endian, bool utf32) {
  if (length == 0) return unsupported(fmt::format("strings of no width (\"{}\")", descr));
  const std::uint64_t width = utf32 ? 4 : 1;
  if (length > max_text_item_bytes / width) {
    return unsupported(fmt::format("strings of {} bytes each are too long", fmt::group_digits(length)));
  }
  return ElementLayout{.dtype = DType::string,
                       .item_bytes = length * width,
                       .big_endian = big_endian,
                       .text = utf32 ? Text::utf32 : Text::bytes};
}

// Describes a type that NumPy has and casts do not.
Error refuse(std::string_view descr, char kind) {
  switch (kind) {
    case '[':
    case '(':
      return unsupported("structured arrays (several fields in one element) are not supported",
                         "save each field as an array of its own");
    case 'O':
      return unsupported("Python objects in npy are not supported: they are pickles, which run code");
    case 'c':
    case 'W':  // complex32 of ml_dtypes
      return unsupported(fmt::format("complex numbers (\"{}\") are not supported", descr),
                         "save the real and the imaginary part on their own");
    case 'M':
    case 'm':
      return unsupported(fmt::format("dates and times (\"{}\") are not supported", descr), "save them as int64");
    case 'f':
    case 'i':
    case 'u':
      return unsupported(fmt::format("numbers of this width (\"{}\") are not supported", descr));
    default:
      return parse_error(fmt::format("unknown descriptor \"{}\"", descr.substr(0, 40)));
  }
}

}  // namespace

std::uint64_t item_bytes(DType dtype) noexcept { return static_cast<std::uint64_t>(std::max(bit_width(dtype) / 8, 1)); }

bool is_opaque(DType dtype) noexcept {
  if (dtype == DType::string) return false;
  return dtype == DType::float8_e5m2 || find_row(native_spellings, &Spelling::dtype, dtype) == nullptr;
}

Result<ElementLayout> parse_descr(std::string_view descr, DType from) {
  // NumPy also loads a descriptor that is the name of a registered type.
  for (const DType dtype : all_dtypes()) {
    if (family(dtype) != Family::text && name(dtype) == descr) {
      return ElementLayout{.dtype = dtype, .item_bytes = item_bytes(dtype)};
    }
  }
  std::string_view code = descr;
  bool big_endian = false;
  if (!code.empty() && std::string_view("<>|=").find(code.front()) != std::string_view::npos) {
    big_endian = code.front() == '>';
    code.remove_prefix(1);
  }
  if (code.empty()) return refuse(descr, '\0');
  if (const Spelling* spelling = find_row(native_spellings, &Spelling::code, code)) {
    const std::uint64_t width = item_bytes(spelling->dtype);
    return ElementLayout{.dtype = spelling->dtype, .item_bytes = width, .big_endian = big_endian && width > 1};
  }
  const char kind = code.front();
  if (kind != 'V' && kind != 'U' && kind != 'S' && kind != 'a') return refuse(descr, kind);
  const std::optional<std::uint64_t> length = parse_whole<std::uint64_t>(code.substr(1));
  if (!length) return refuse(descr, '\0');
  if (kind == 'V') return parse_opaque(descr, *length, big_endian, from);
  return parse_text(descr, *length, big_endian, kind == 'U');
}

std::string format_descr(DType dtype, std::uint64_t characters) {
  if (dtype == DType::string) return fmt::format("<U{}", std::max<std::uint64_t>(characters, 1));
  if (is_opaque(dtype)) return fmt::format("<V{}", item_bytes(dtype));
  const Spelling* spelling = find_row(native_spellings, &Spelling::dtype, dtype);
  return fmt::format("{}{}", item_bytes(dtype) == 1 ? '|' : '<', spelling->code);
}

}  // namespace tensorcast::formats::npy
