// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace tensorcast::formats::gguf {
namespace {

// A size is written as the sum of its fields: scales and minima, high bits, codes.
constexpr auto types = std::to_array<TensorType>({
    {0, "F32", DType::float32, 1, 4},
    {1, "F16", DType::float16, 1, 2},
    {2, "Q4_0", DType::undefined, 32, 2 + 16},
    {3, "Q4_1", DType::undefined, 32, 2 + 2 + 16},
    {4, "Q4_2", DType::undefined, 16, 2 + 8},      // removed from ggml
    {5, "Q4_3", DType::undefined, 16, 2 + 2 + 8},  // removed
    {6, "Q5_0", DType::undefined, 32, 2 + 4 + 16},
    {7, "Q5_1", DType::undefined, 32, 2 + 2 + 4 + 16},
    {8, "Q8_0", DType::undefined, 32, 2 + 32},
    {9, "Q8_1", DType::undefined, 32, 4 + 4 + 32},  // as the package gguf writes it; ggml keeps it in memory only
    {10, "Q2_K", DType::undefined, 256, 2 + 2 + 16 + 64},
    {11, "Q3_K", DType::undefined, 256, 2 + 12 + 32 + 64},
    {12, "Q4_K", DType::undefined, 256, 2 + 2 + 12 + 128},
    {13, "Q5_K", DType::undefined, 256, 2 + 2 + 12 + 32 + 128},
    {14, "Q6_K", DType::undefined, 256, 2 + 16 + 64 + 128},
    {15, "Q8_K", DType::undefined, 256, 4 + 32 + 256},
    {16, "IQ2_XXS", DType::undefined, 256, 2 + 64},
    {17, "IQ2_XS", DType::undefined, 256, 2 + 8 + 64},
    {18, "IQ3_XXS", DType::undefined, 256, 2 + 32 + 64},
    {19, "IQ1_S", DType::undefined, 256, 2 + 16 + 32},
    {20, "IQ4_NL", DType::undefined, 32, 2 + 16},
    {21, "IQ3_S", DType::undefined, 256, 2 + 4 + 8 + 32 + 64},
    {22, "IQ2_S", DType::undefined, 256, 2 + 16 + 64},
    {23, "IQ4_XS", DType::undefined, 256, 2 + 2 + 4 + 128},
    {24, "I8", DType::int8, 1, 1},
    {25, "I16", DType::int16, 1, 2},
    {26, "I32", DType::int32, 1, 4},
    {27, "I64", DType::int64, 1, 8},
    {28, "F64", DType::float64, 1, 8},
    {29, "IQ1_M", DType::undefined, 256, 8 + 16 + 32},
    {30, "BF16", DType::bfloat16, 1, 2},
    {31, "Q4_0_4_4", DType::undefined, 32, 2 + 16},  // removed, like the next two: Q4_0 with interleaved rows
    {32, "Q4_0_4_8", DType::undefined, 32, 2 + 16},
    {33, "Q4_0_8_8", DType::undefined, 32, 2 + 16},
    {34, "TQ1_0", DType::undefined, 256, 2 + 4 + 48},
    {35, "TQ2_0", DType::undefined, 256, 2 + 64},
    {36, "IQ4_NL_4_4", DType::undefined, 32, 2 + 16},  // removed, like the next two: IQ4_NL with interleaved rows
    {37, "IQ4_NL_4_8", DType::undefined, 32, 2 + 16},
    {38, "IQ4_NL_8_8", DType::undefined, 32, 2 + 16},
    {39, "MXFP4", DType::undefined, 32, 1 + 16},
    {40, "NVFP4", DType::undefined, 64, 4 + 32},
    {41, "Q1_0", DType::undefined, 128, 2 + 16},
});

constexpr std::string_view unknown_prefix = "type ";

template <class Condition>
const TensorType* find(Condition condition) noexcept {
  const auto* found = std::ranges::find_if(types, condition);
  return found == types.end() ? nullptr : found;
}

}  // namespace

const TensorType* find_type(std::uint32_t number) noexcept {
  return find([&](const TensorType& type) { return type.number == number; });
}

const TensorType* find_type(DType dtype) noexcept {
  if (dtype == DType::undefined) return nullptr;
  return find([&](const TensorType& type) { return type.dtype == dtype; });
}

const TensorType* find_type(std::string_view name) noexcept {
  return find([&](const TensorType& type) { return type.name == name; });
}

const TensorType* find_type(DType dtype, std::string_view foreign_dtype) noexcept {
  return foreign_dtype.empty() ? find_type(dtype) : find_type(foreign_dtype);
}

std::string unknown_type_name(std::uint32_t number) { return fmt::format("{}{}", unknown_prefix, number); }

std::optional<std::uint32_t> type_number(DType dtype, std::string_view foreign_dtype) noexcept {
  const TensorType* type = find_type(dtype, foreign_dtype);
  if (type != nullptr) return type->number;
  if (!foreign_dtype.starts_with(unknown_prefix)) return std::nullopt;
  foreign_dtype.remove_prefix(unknown_prefix.size());
  std::uint32_t number = 0;
  const char* const end = foreign_dtype.data() + foreign_dtype.size();
  const auto [last, error] = std::from_chars(foreign_dtype.data(), end, number);
  return error == std::errc() && last == end ? std::optional(number) : std::nullopt;
}

}  // namespace tensorcast::formats::gguf
