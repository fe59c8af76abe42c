// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace tensorcast::formats::gguf {
namespace {

// Numbers, and blocks that are not decoded here.
constexpr auto other_types = std::to_array<TensorType>({
    {0, "F32", DType::float32, 1, 4, {0, 0}},
    {1, "F16", DType::float16, 1, 2, {1, 1}},
    {4, "Q4_2", DType::undefined, 16, 2 + 8},       // removed from ggml
    {5, "Q4_3", DType::undefined, 16, 2 + 2 + 8},   // removed
    {9, "Q8_1", DType::undefined, 32, 4 + 4 + 32},  // as the package gguf writes it; ggml keeps it in memory only
    {15, "Q8_K", DType::undefined, 256, 4 + 32 + 256},
    {24, "I8", DType::int8, 1, 1},
    {25, "I16", DType::int16, 1, 2},
    {26, "I32", DType::int32, 1, 4},
    {27, "I64", DType::int64, 1, 8},
    {28, "F64", DType::float64, 1, 8},
    {30, "BF16", DType::bfloat16, 1, 2, {32, 32}},
    {31, "Q4_0_4_4", DType::undefined, 32, 2 + 16},  // removed, like the next two: Q4_0 with interleaved rows
    {32, "Q4_0_4_8", DType::undefined, 32, 2 + 16},
    {33, "Q4_0_8_8", DType::undefined, 32, 2 + 16},
    {36, "IQ4_NL_4_4", DType::undefined, 32, 2 + 16},  // removed, like the next two: IQ4_NL with interleaved rows
    {37, "IQ4_NL_4_8", DType::undefined, 32, 2 + 16},
    {38, "IQ4_NL_8_8", DType::undefined, 32, 2 + 16},
    {41, "Q1_0", DType::undefined, 128, 2 + 16},
});

// The names of block formats in capitals.
constexpr auto block_names = [] {
  std::array<std::array<char, 8>, std::size(block::gguf_rows)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::ranges::transform(block::gguf_rows[i].scheme, names[i].begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  }
  return names;
}();

constexpr auto types = [] {
  std::array<TensorType, other_types.size() + block_names.size()> all{};
  auto* next = std::ranges::copy(other_types, all.begin()).out;
  for (std::size_t i = 0; i < block_names.size(); ++i) {
    const block::GgufRow& row = block::gguf_rows[i];
    *next++ = {.number = row.type,
               .name = {block_names[i].data(), row.scheme.size()},
               .block_elements = row.size.elements,
               .block_bytes = row.size.bytes,
               .files = row.files};
  }
  return all;
}();

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
