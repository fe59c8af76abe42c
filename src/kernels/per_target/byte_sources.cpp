// SPDX-License-Identifier: Apache-2.0
// The kernels of all sources of 8 bits or fewer.
#include <array>
#include <utility>

#include "kernels/byte_table/byte_table.hpp"
#include "kernels/byte_table/six_bit_table.hpp"
#include "kernels/byte_table/variants.hpp"
#include "kernels/encode/convert.hpp"
#include "kernels/per_target/functions.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using namespace byte_table;

// Used until the slot has the table of this policy: makes a table on the stack, uses it and offers it.
template <std::size_t size>
[[gnu::noinline, gnu::cold]] static void convert_first(const std::byte* src, DType from, std::byte* dst, DType to,
                                                       std::size_t count, const Policy& policy, TableSlot<size>& slot) {
  alignas(64) std::byte table[size];
  const Reader reader = fill_table(table_loops(), from, to, policy, table);
  slot.offer(reader, table);
  reader(src, dst, count, table);
}

template <DType from, DType to>
static void convert_by_table(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  constexpr PolicyDependence dependence = dependence_of(from, to);
  static constinit TableSlot<most_table_bytes(from, to)> slots[variant_count(dependence)];
  if (count == 0) return;
  auto& slot = slots[variant_of<dependence>(policy)];
  if (const std::byte* table = slot.find(); table != nullptr) [[likely]] {
    slot.reader()(src, dst, count, table);
  } else {
    convert_first(src, from, dst, to, count, policy, slot);
  }
  if constexpr (is_packed(to)) {
    const std::size_t used_bits = count * row(to).bits % 8;
    if (used_bits != 0) dst[count * row(to).bits / 8] &= static_cast<std::byte>((1u << used_bits) - 1);
  }
}

template <DType from, DType to>
static void convert_to_six_bits(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  pack_pieces(ops, src, from, dst, count, [&](const std::byte* piece, std::byte* codes, std::size_t n) {
    convert_by_table<from, to>(piece, codes, n, policy);
  });
}

// Reports whether looking up halves of codes is faster: for results that are a split table, which those of float8 with
// up to three mantissa bits are, except that float8_e5m2 is the upper half of a float16, which the CPU converts.
template <DType from, DType to>
static constexpr bool has_split_table() {
  constexpr FloatFormat format = row(from).format;
  const bool is_float8 = row(from).bits == 8 && row(from).family == Family::floating && format.has_sign;
  const bool is_half = from == DType::float8_e5m2;
  return TENSORCAST_HAS_BYTE_LOOKUP && !has_byte_permutes && is_float8 && format.mantissa_bits <= 3 &&
         (to == DType::bfloat16 || (!is_half && (to == DType::float16 || to == DType::float32)));
}

// Reports whether decoding and encoding is faster than a lookup: between integers of 8 bits; for wider targets and
// other integers, unless the CPU looks up a byte in a table of 256 with one instruction.
template <DType from, DType to>
static constexpr bool is_decoded() {
  if (row(from).bits != 8 || row(from).family == Family::boolean) return false;
  const bool are_integers = row(from).family == Family::integer && row(to).family == Family::integer;
  if (are_integers && row(to).bits == 8) return true;
  // In portable code float8 and float16 take long: a table takes twice memcpy's time, decoding 6 to 10 times.
  const bool is_slow = row(from).family == Family::floating || to == DType::float16;
  if (!TENSORCAST_HAS_BYTE_LOOKUP && is_slow) return false;
  if constexpr (has_split_table<from, to>()) return false;
  return !has_byte_permutes && (row(to).bits > 8 || are_integers);
}

struct Pair {
  DType from = DType::undefined;
  DType to = DType::undefined;
};

static constexpr std::size_t pair_count = [] {
  std::size_t count = 0;
  for (const DTypeRow& from : dtype_table) count += is_byte_source(from) ? number_type_count - 1 : 0;
  return count;
}();

static constexpr std::array<Pair, pair_count> pairs = [] {
  std::array<Pair, pair_count> all = {};
  std::size_t i = 0;
  for (const DTypeRow& from : dtype_table) {
    for (const DTypeRow& to : dtype_table) {
      if (is_byte_source(from) && to.family != Family::text && to.id != from.id) all[i++] = {from.id, to.id};
    }
  }
  return all;
}();

template <DType from, DType to>
static constexpr Kernel byte_source_row();

template <DType from, DType to>
static void convert_six_bits(const std::byte* src, std::byte* dst, std::size_t count, const Policy& policy) {
  if constexpr (to == six_bit_hub) {
    look_up_six_bits(src, dst, count, hub_codes(from));
  } else {
    constexpr KernelFn convert_hub = byte_source_row<six_bit_hub, to>().run;
    unpack_pieces(ops, from, src, dst, to, count, [&](const std::byte* codes, std::byte* piece, std::size_t n) {
      convert_hub(codes, piece, n, policy);
    });
  }
}

template <DType from, DType to>
static constexpr Kernel byte_source_row() {
  if constexpr (has_six_bits(row(from))) {
    return {from, to, convert_six_bits<from, to>, "by way of float8"};
  } else if constexpr (has_six_bits(row(to))) {
    return {from, to, convert_to_six_bits<from, to>, "byte table"};
  } else if constexpr (is_decoded<from, to>()) {
    return kernel_row<from, to>();
  } else {
    return {from, to, convert_by_table<from, to>, "byte table"};
  }
}

template <std::size_t... i>
static constexpr std::array<Kernel, pair_count> make_rows(std::index_sequence<i...>) {
  return {byte_source_row<pairs[i].from, pairs[i].to>()...};
}

static constexpr std::array<Kernel, pair_count> rows = make_rows(std::make_index_sequence<pair_count>());

KernelRows byte_source_rows() noexcept { return rows; }

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
