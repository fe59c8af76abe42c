// SPDX-License-Identifier: Apache-2.0
#include "kernels/byte_table/byte_table.hpp"

#include <algorithm>

#include "codec/reference_cast.hpp"
#include "kernels/byte_table/split_table.hpp"

namespace tensorcast::kernels::byte_table {
namespace {

// The stored output of each index.
using Outputs = std::array<std::array<std::byte, 32>, 256>;  // of at most four float64

// The sizes of one lookup.
struct Lookup {
  int index_bits = 8;
  int index_elements = 1;
  int output_bits = 8;
};

int index_bits_of(DType from) { return from == DType::boolean ? 1 : row(from).bits; }

// One element at a time, or four bits where both types are packed.
Lookup vector_lookup(DType from, DType to) {
  const int index_bits = is_packed(from) && is_packed(to) ? 4 : index_bits_of(from);
  const int elements = from == DType::boolean ? 1 : index_bits / row(from).bits;
  return {index_bits, elements, elements * table_bits(to)};
}

// A source byte at a time.
Lookup scalar_lookup(DType from, DType to) {
  const int elements = 8 / row(from).bits;
  return {8, elements, elements * table_bits(to)};
}

Outputs outputs_of(const Lookup& lookup, DType from, DType to, const codec::Policy& policy) {
  const auto elements = static_cast<std::size_t>(lookup.index_elements);
  const std::size_t indices = std::size_t{1} << lookup.index_bits;
  std::array<std::uint64_t, 256> results = {};
  const std::size_t codes = std::size_t{1} << (static_cast<std::size_t>(lookup.index_bits) / elements);
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

// The two bytes above the loop's zero bytes.
std::optional<SplitTable> split_above_zeros(const Loop& loop, const Outputs& outputs) {
  std::array<std::uint16_t, 256> pairs = {};
  const auto zeros = static_cast<std::size_t>(loop.zero_bytes);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const unsigned low = std::to_integer<unsigned>(outputs[i][zeros]),
                   high = std::to_integer<unsigned>(outputs[i][zeros + 1]);
    pairs[i] = static_cast<std::uint16_t>(low | high << 8);
  }
  return split(pairs);
}

// Reports whether these outputs have the loop's zero and repeated bytes, and its halves.
bool gives(const Loop& loop, const Outputs& outputs) {
  const int first_repeated = loop.zero_bytes + loop.table_bytes;
  for (std::size_t index = 0; index < std::size_t{1} << loop.index_bits; ++index) {
    const std::byte* const output = outputs[index].data();
    for (int i = 0; i < loop.zero_bytes; ++i) {
      if (output[i] != std::byte{}) return false;
    }
    for (int i = first_repeated; i < loop.output_bytes(); ++i) {
      if (output[i] != output[i - 1]) return false;
    }
  }
  if (!loop.is_split) return true;
  const std::optional<SplitTable> table = split_above_zeros(loop, outputs);
  return table && (loop.has_odd_code || (table->odd_low | table->odd_high) == 0);
}

bool has_sizes(const Loop& loop, const Lookup& lookup) {
  return loop.index_bits == lookup.index_bits && loop.output_bits == lookup.output_bits;
}

const Loop* find_loop(Loops loops, const Lookup& lookup, const Outputs& outputs) {
  const auto found = std::find_if(loops.begin(), loops.end(),
                                  [&](const Loop& loop) { return has_sizes(loop, lookup) && gives(loop, outputs); });
  return found == loops.end() ? nullptr : &*found;
}

void lay_out(const Loop& loop, const Outputs& outputs, std::byte* table) {
  if (loop.is_split) {
    const SplitTable halves = *split_above_zeros(loop, outputs);
    std::memcpy(table, &halves, sizeof halves);
    return;
  }
  const auto table_bytes = static_cast<std::size_t>(loop.table_bytes);
  for (std::size_t index = 0; index < loop.entries(); ++index) {
    const std::byte* const looked_up = outputs[index].data() + loop.zero_bytes;
    for (std::size_t i = 0; i < table_bytes; ++i) {
      table[loop.is_scalar ? index * table_bytes + i : i * loop.entries() + index] = looked_up[i];
    }
  }
}

}  // namespace

Reader fill_table(Loops loops, DType from, DType to, const codec::Policy& policy, std::byte* table) noexcept {
  Lookup lookup = vector_lookup(from, to);
  Outputs outputs = outputs_of(lookup, from, to, policy);
  const Loop* loop = find_loop(loops, lookup, outputs);
  if (loop == nullptr) {
    lookup = scalar_lookup(from, to);
    outputs = outputs_of(lookup, from, to, policy);
    loop = find_loop(scalar_loops(), lookup, outputs);
  }
  lay_out(*loop, outputs, table);
  return {loop, lookup.index_elements};
}

Reader fill_byte_table(Loops loops, const std::array<std::uint8_t, 256>& bytes, std::byte* table) noexcept {
  Outputs outputs = {};
  for (std::size_t i = 0; i < bytes.size(); ++i) outputs[i][0] = std::byte{bytes[i]};
  const Loop* loop = find_loop(loops, Lookup{}, outputs);
  if (loop == nullptr) loop = find_loop(scalar_loops(), Lookup{}, outputs);
  lay_out(*loop, outputs, table);
  return {loop, 1};
}

}  // namespace tensorcast::kernels::byte_table
