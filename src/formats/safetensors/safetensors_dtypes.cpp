// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/safetensors_dtypes.hpp"

#include <array>

#include "dtype/lookup.hpp"

namespace tensorcast::formats::safetensors {
namespace {

// The order of the format's own list.
constexpr auto dtypes = std::to_array<DTypeEntry>({
    {"BOOL", DType::boolean, 8},
    {"F4", DType::float4_e2m1fn, 4},
    {"F6_E2M3", DType::float6_e2m3fn, 6},
    {"F6_E3M2", DType::float6_e3m2fn, 6},
    {"U8", DType::uint8, 8},
    {"I8", DType::int8, 8},
    {"F8_E5M2", DType::float8_e5m2, 8},
    {"F8_E4M3", DType::float8_e4m3fn, 8},
    {"F8_E8M0", DType::float8_e8m0fnu, 8},
    {"F8_E4M3FNUZ", DType::float8_e4m3fnuz, 8},
    {"F8_E5M2FNUZ", DType::float8_e5m2fnuz, 8},
    {"I16", DType::int16, 16},
    {"U16", DType::uint16, 16},
    {"F16", DType::float16, 16},
    {"BF16", DType::bfloat16, 16},
    {"I32", DType::int32, 32},
    {"U32", DType::uint32, 32},
    {"F32", DType::float32, 32},
    {"C64", DType::undefined, 64},
    {"F64", DType::float64, 64},
    {"I64", DType::int64, 64},
    {"U64", DType::uint64, 64},
});

}  // namespace

const DTypeEntry* find_dtype(std::string_view spelling) noexcept {
  return find_row(dtypes, &DTypeEntry::spelling, spelling);
}

const DTypeEntry* find_dtype(DType dtype) noexcept {
  return dtype == DType::undefined ? nullptr : find_row(dtypes, &DTypeEntry::dtype, dtype);
}

}  // namespace tensorcast::formats::safetensors
