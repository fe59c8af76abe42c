// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/packed_products.hpp"

#include <algorithm>
#include <cstring>

namespace tensorcast::models::onnx {
namespace {

constexpr unsigned middle_of_codes = 8;

unsigned nibble_at(std::span<const std::byte> bytes, std::uint64_t place) noexcept {
  return std::to_integer<unsigned>(bytes[place / 2] >> (place % 2 * 4)) & 15;
}

// Precondition: it is 0.
void put_nibble(std::span<std::byte> bytes, std::uint64_t place, unsigned code) noexcept {
  bytes[place / 2] |= static_cast<std::byte>((code & 15) << (place % 2 * 4));
}

std::uint64_t nibbles(std::uint64_t count) noexcept { return (count + 1) / 2; }

// Scales [rows, columns] as [columns, rows].
std::vector<std::byte> transposed_scales(std::span<const std::byte> scales, std::uint64_t rows, std::uint64_t columns,
                                         std::uint64_t item) {
  std::vector<std::byte> turned(scales.size());
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      std::memcpy(turned.data() + (column * rows + row) * item, scales.data() + (row * columns + column) * item, item);
    }
  }
  return turned;
}

}  // namespace

std::optional<ConvertedProduct> pack_product(const PackedProduct& from, const ProductSize& size) {
  const std::uint64_t blocks = size.blocks(), outputs = size.outputs, scales = blocks * outputs;
  if (from.codes.size() != nibbles(size.inputs * outputs) || from.scales.size() != scales * from.scale_bytes ||
      (!from.zeros.empty() && from.zeros.size() != nibbles(scales))) {
    return std::nullopt;
  }
  const unsigned added = from.is_signed ? middle_of_codes : 0;
  ConvertedProduct to;
  to.codes.resize(outputs * blocks * (size.block / 2));
  for (std::uint64_t input = 0; input < size.inputs; ++input) {
    for (std::uint64_t output = 0; output < outputs; ++output) {
      put_nibble(to.codes, output * blocks * size.block + input,
                 nibble_at(from.codes, input * outputs + output) + added);
    }
  }
  to.scales = transposed_scales(from.scales, blocks, outputs, from.scale_bytes);
  const auto zero_at = [&](std::uint64_t block, std::uint64_t output) {
    return ((from.zeros.empty() ? 0 : nibble_at(from.zeros, block * outputs + output)) + added) & 15;
  };
  bool is_middle = true;
  to.zeros.resize(outputs * nibbles(blocks));
  for (std::uint64_t block = 0; block < blocks; ++block) {
    for (std::uint64_t output = 0; output < outputs; ++output) {
      const unsigned zero = zero_at(block, output);
      is_middle = is_middle && zero == middle_of_codes;
      put_nibble(to.zeros, output * nibbles(blocks) * 2 + block, zero);
    }
  }
  if (is_middle) to.zeros.clear();
  return to;
}

std::optional<ConvertedProduct> unpack_product(const PackedProduct& from, const ProductSize& size) {
  const std::uint64_t blocks = size.blocks(), outputs = size.outputs, scales = blocks * outputs;
  if (from.codes.size() != outputs * blocks * (size.block / 2) || from.scales.size() != scales * from.scale_bytes ||
      (!from.zeros.empty() && from.zeros.size() != outputs * nibbles(blocks))) {
    return std::nullopt;
  }
  ConvertedProduct to;
  to.codes.resize(nibbles(size.inputs * outputs));
  for (std::uint64_t input = 0; input < size.inputs; ++input) {
    for (std::uint64_t output = 0; output < outputs; ++output) {
      const unsigned code = nibble_at(from.codes, output * blocks * size.block + input);
      put_nibble(to.codes, input * outputs + output, code - middle_of_codes);
    }
  }
  to.scales = transposed_scales(from.scales, outputs, blocks, from.scale_bytes);
  if (from.zeros.empty()) return to;
  bool is_zero = true;
  to.zeros.resize(nibbles(scales));
  for (std::uint64_t block = 0; block < blocks; ++block) {
    for (std::uint64_t output = 0; output < outputs; ++output) {
      const unsigned zero = nibble_at(from.zeros, output * nibbles(blocks) * 2 + block) - middle_of_codes;
      is_zero = is_zero && (zero & 15) == 0;
      put_nibble(to.zeros, block * outputs + output, zero);
    }
  }
  if (is_zero) to.zeros.clear();
  return to;
}

}  // namespace tensorcast::models::onnx
