// SPDX-License-Identifier: Apache-2.0
// Lookups in byte tables, a register of indices at a time.
#include <type_traits>
#include <utility>

#include "kernels/byte_table/split_table.hpp"
#include "kernels/for_each_block.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/powers.hpp"
#include "kernels/simd/store_line.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

using byte_table::Loop;
using byte_table::SplitTable;

#if TENSORCAST_HAS_BYTE_LOOKUP

// The bytes of one register of indices' outputs.
struct Registers {
  U8 v[8];
};

// Merges planes two by two until each register holds whole outputs, in order within each 128-bit lane. `rows` registers
// of each plane exist so far; the first `zeros` planes are zero.
template <int planes, int unit_bytes, int zeros, int rows = 1>
SIMD_INLINE Registers interleave(const Registers& in) {
  if constexpr (planes == 1) {
    return in;
  } else {
    Registers out;
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 8
      for (int pair = 0; pair < planes / 2; ++pair) {
        const U8 low = in.v[row * planes + 2 * pair];
        const U8 high = in.v[row * planes + 2 * pair + 1];
        const bool is_zero = 2 * pair + 1 < zeros;
        U8* const merged = &out.v[row * planes + pair];
        merged[0] = is_zero ? U8{} : interleave_low<unit_bytes>(low, high);
        merged[planes / 2] = is_zero ? U8{} : interleave_high<unit_bytes>(low, high);
      }
    }
    return interleave<planes / 2, unit_bytes * 2, zeros / 2, rows * 2>(out);
  }
}

// `mask`: all ones or all zeros in a byte.
SIMD_INLINE U8 choose(U8 mask, U8 yes, U8 no) { return as<I8>(mask) < 0 ? yes : no; }

// Unpacks indices to one a byte, in order.
template <int index_bits>
SIMD_INLINE U8 load_indices(const std::byte* src) {
  if constexpr (index_bits == 8) {
    return load<U8>(src);
  } else if constexpr (index_bits == 1) {
    return min(load<U8>(src), splat(std::uint8_t{1}));
  } else if constexpr (index_bits == 4) {
    const U16 words = load_bytes_as_u16(src);
    return as<U8>((words | (words << 4)) & 0x0f0f);
  } else {
    static_assert(index_bits == 2);
    const U32 bytes = as<U32>(load_uint8(src));
    const U32 nibbles = bytes | (bytes << 12);  // the low one in byte 0, the high one in byte 2
    return as<U8>((nibbles | (nibbles << 6)) & 0x03030303);
  }
}

template <int output_bits>
SIMD_INLINE void store_outputs(std::byte* dst, const Registers& out) {
  if constexpr (output_bits == 4) {
    store(dst, pack_u4(out.v[0]));
  } else if constexpr (output_bits == 2) {
    store(dst, pack_u2(out.v[0]));
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < output_bits / 8; ++i) store(dst + i * kRegisterBytes, out.v[i]);
  }
}

template <int index_bits, int output_bits, int zero_bytes, int table_bytes>
[[gnu::noinline]] static void look_up(const std::byte* src, std::byte* dst, std::size_t count, int index_elements,
                                      const std::byte* table) {
  using Table = std::conditional_t < index_bits != 8, Table16,
        std::conditional_t<output_bits<8, NibbleTable256, Table256>>;
  constexpr std::size_t table_size = index_bits == 8 ? 256 : 16;
  constexpr int bytes = output_bits < 8 ? 1 : output_bits / 8;
  const auto elements = static_cast<std::size_t>(index_elements);
  const std::size_t indices = (count + elements - 1) / elements;
  [&]<int... plane>(std::integer_sequence<int, plane...>) {
    const Table planes[] = {Table(table + plane * table_size)...};
    for_each_block<kRegisterBytes, index_bits == 1 ? 8 : index_bits, output_bits, true>(
        src, dst, indices, [&](const std::byte* from, std::byte* to) SIMD_INLINE_LAMBDA {
          const U8 index = order_for_interleaving<bytes>(load_indices<index_bits>(from));
          Registers out = {};
          ((out.v[zero_bytes + plane] = planes[plane](index)), ...);
#pragma GCC unroll 8
          for (int i = zero_bytes + table_bytes; i < bytes; ++i) out.v[i] = out.v[i - 1];
          store_outputs<output_bits>(to, interleave<bytes, 1, zero_bytes>(out));
        });
  }(std::make_integer_sequence<int, table_bytes>());
}

// Looks up halves of codes (split_table.hpp), and puts `zero_bytes` below the two bytes of each.
template <int output_bits, int zero_bytes, bool has_odd_code>
class HalfTables {
 public:
  explicit HalfTables(const SplitTable& table)
      : low_of_low_(entries(table.low_of_low)),
        high_of_high_(entries(table.high_of_high)),
        high_of_low_(entries(table.high_of_low)),
        rare_low_(entries(table.rare_low)),
        rare_high_(entries(table.rare_high)),
        odd_low_(splat(table.odd_low)),
        odd_high_(splat(table.odd_high)) {}

  // Of the codes of a register.
  SIMD_INLINE Registers operator()(const std::byte* from) const {
    const U8 code = order_for_interleaving<output_bits / 8>(load<U8>(from));
    const U8 low_half = code & 0x0f, high_half = as<U8>(as<U16>(code) >> 4) & 0x0f;
    const U8 is_rare = as<U8>(((code + 8) & 0x70) == 0);
    U8 low = choose(is_rare, rare_low_(low_half), low_of_low_(low_half));
    U8 high = choose(is_rare, rare_high_(low_half) | (code & 0x80), high_of_high_(high_half) + high_of_low_(low_half));
    if constexpr (has_odd_code) {
      const U8 is_odd = as<U8>(code == SplitTable::odd_code);
      low ^= is_odd & odd_low_;
      high ^= is_odd & odd_high_;
    }
    Registers out = {};
    out.v[zero_bytes] = low;
    out.v[zero_bytes + 1] = high;
    return interleave<output_bits / 8, 1, zero_bytes>(out);
  }

 private:
  static Table16 entries(const std::uint8_t* bytes) { return Table16(reinterpret_cast<const std::byte*>(bytes)); }

  Table16 low_of_low_, high_of_high_, high_of_low_, rare_low_, rare_high_;
  U8 odd_low_, odd_high_;
};

template <int output_bits, int zero_bytes, bool has_odd_code>
SIMD_INLINE void look_up_in_halves(const std::byte* src, std::byte* dst, std::size_t count, const SplitTable& table) {
  const HalfTables<output_bits, zero_bytes, has_odd_code> look_up_register(table);
  for_each_block<kRegisterBytes, 8, output_bits, true>(src, dst, count,
                                                       [&](const std::byte* from, std::byte* to) SIMD_INLINE_LAMBDA {
                                                         store_outputs<output_bits>(to, look_up_register(from));
                                                       });
}

template <int output_bits, int zero_bytes, bool has_odd_code>
[[gnu::noinline]] static void look_up_halves(const std::byte* src, std::byte* dst, std::size_t count, int,
                                             const std::byte* table) {
  SplitTable halves;
  __builtin_memcpy(&halves, table, sizeof halves);
  look_up_in_halves<output_bits, zero_bytes, has_odd_code>(src, dst, count, halves);
}

template <int output_bits, int zero_bytes, bool has_odd_code>
static constexpr Loop split_loop = {.index_bits = 8,
                                    .output_bits = output_bits,
                                    .zero_bytes = zero_bytes,
                                    .table_bytes = 2,
                                    .is_split = true,
                                    .has_odd_code = has_odd_code,
                                    .run = look_up_halves<output_bits, zero_bytes, has_odd_code>};

template <int index_bits, int output_bits, int zero_bytes = 0,
          int table_bytes = (output_bits < 8 ? 1 : output_bits / 8)>
static constexpr Loop loop = {.index_bits = index_bits,
                              .output_bits = output_bits,
                              .zero_bytes = zero_bytes,
                              .table_bytes = table_bytes,
                              .run = look_up<index_bits, output_bits, zero_bytes, table_bytes>};

// Loops for outputs of 16 bits and more. A float32 that bfloat16 holds has two zero bytes; a float64 has five or six. A
// small integer has two or three bytes of its own, and the bytes above repeat its sign.
template <int index_bits, std::size_t size>
static constexpr std::size_t add_wide(Loop (&loops)[size], std::size_t at) {
  for (const Loop& wide :
       {loop<index_bits, 16>, loop<index_bits, 32, 2, 2>, loop<index_bits, 32, 0, 2>, loop<index_bits, 32, 0, 3>,
        loop<index_bits, 32>, loop<index_bits, 64, 6, 2>, loop<index_bits, 64, 5, 3>, loop<index_bits, 64, 0, 2>,
        loop<index_bits, 64, 0, 3>, loop<index_bits, 64>}) {
    loops[at++] = wide;
  }
  return at;
}

static constexpr struct LoopList {
  Loop loops[52] = {};
  std::size_t size = 0;

  constexpr LoopList() {
    for (const Loop& narrow : {loop<8, 2>, loop<8, 4>, loop<8, 8>, loop<4, 2>, loop<4, 4>, loop<4, 8>, loop<2, 8>,
                               loop<1, 2>, loop<1, 4>, loop<1, 8>}) {
      loops[size++] = narrow;
    }
    size = add_wide<4>(loops, size);
    size = add_wide<2>(loops, size);
    size = add_wide<1>(loops, size);
    if constexpr (has_byte_permutes) {
      size = add_wide<8>(loops, size);
    } else {
      for (const Loop& wide : {split_loop<16, 0, false>, split_loop<16, 0, true>, split_loop<32, 2, false>,
                               split_loop<32, 2, true>, loop<8, 16>}) {
        loops[size++] = wide;
      }
    }
  }
} list;

byte_table::Loops table_loops() noexcept { return byte_table::Loops(list.loops).first(list.size); }

// As look_up_split(), for whole lines that bypass the cache.
[[gnu::noinline]] static void look_up_lines(const std::byte* codes, std::byte* dst, std::size_t count,
                                            const SplitRuns& runs) {
  std::size_t end = runs.width - runs.skipped;
  for (std::size_t at = 0, run = 0; at < count; ++run, end += runs.width) {
    const HalfTables<16, 0, false> look_up_register(*runs.tables[run]);
    for (const std::size_t stop = end < count ? end : count; at < stop; at += kRegisterBytes) {
      const Registers numbers = look_up_register(codes + at);
      store_line(dst + 2 * at, numbers.v[0], true);
      store_line(dst + 2 * at + kRegisterBytes, numbers.v[1], true);
    }
  }
}

void look_up_split(const std::byte* codes, std::byte* dst, std::size_t count, const SplitRuns& runs) {
  if (kRegisterBytes == 64 && runs.bypasses_cache) return look_up_lines(codes, dst, count, runs);
  std::size_t end = runs.width - runs.skipped;
  for (std::size_t at = 0, run = 0; at < count; ++run, end += runs.width) {
    const std::size_t stop = end < count ? end : count;
    look_up_in_halves<16, 0, false>(codes + at, dst + 2 * at, stop - at, *runs.tables[run]);
    at = stop;
  }
}

void look_up_split_by_powers(const std::byte* codes, std::byte* dst, std::size_t count, const SplitTable& table,
                             const std::uint16_t* powers, bool bypasses_cache) {
  constexpr std::size_t run = 32, lanes = kRegisterBytes / 2;
  const HalfTables<16, 0, false> look_up_register(table);
  const auto convert = [&](const std::byte* from, std::size_t at) SIMD_INLINE_LAMBDA {
    const Registers numbers = look_up_register(from);
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i) {
      const U16 power = splat(powers[(at + i * lanes) / run]);
      store_line(dst + 2 * (at + i * lanes), with_power(as<U16>(numbers.v[i]), power), bypasses_cache);
    }
  };
  std::size_t at = 0;
  for (; at + kRegisterBytes <= count; at += kRegisterBytes) convert(codes + at, at);
  if (at == count) return;
  alignas(64) std::byte padded[kRegisterBytes];
  copy_and_pad<kRegisterBytes>(padded, codes + at, count - at);
  convert(padded, at);
}

#else

byte_table::Loops table_loops() noexcept { return {}; }

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
