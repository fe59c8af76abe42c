// 16 codes: each byte of the outputs is a byte shuffle. 256 codes: what makes do with few shuffles, if possible.
#include <immintrin.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/narrow/interleave.hpp"
#include "kernels/narrow/loops.hpp"
#include "kernels/simd/environment.hpp"

namespace tensorcast::kernels::narrow {
namespace {

// One or two byte registers of indices.
template <Layout layout>
inline constexpr bool is_nibbles = layout.index_bits == 4 && layout.element_bits < 8;
template <Layout layout>
inline constexpr std::size_t block_indices =
    is_nibbles<layout> || layout.output_bits() < 8 || layout.form == Form::chains ? 64 : 32;

// Source bytes of a block to one index a byte, in order.
template <int index_bits>
inline __m256i load_indices(const std::byte* src) {
  if constexpr (index_bits == 8) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src));
  } else if constexpr (index_bits == 1) {
    return _mm256_min_epu8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(src)), _mm256_set1_epi8(1));
  } else if constexpr (index_bits == 4) {
    const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src)));
    return _mm256_and_si256(_mm256_or_si256(words, _mm256_slli_epi16(words, 4)), _mm256_set1_epi8(0x0f));
  } else {
    static_assert(index_bits == 2);
    const __m256i dwords = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(src)));
    const __m256i nibbles = _mm256_or_si256(dwords, _mm256_slli_epi32(dwords, 12));  // low one in bytes 0, high in 2
    return _mm256_and_si256(_mm256_or_si256(nibbles, _mm256_slli_epi32(nibbles, 6)), _mm256_set1_epi8(0x03));
  }
}

inline __m256i broadcast(const std::byte* sixteen_entries) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sixteen_entries)));
}

struct Pair {
  __m256i a, b;
};

template <class Function>
inline Pair map(const Pair& x, Function function) {
  return {function(x.a), function(x.b)};
}

// g++ would balance a chain of operations, and then keep all of its parts in memory.
inline __m256i in_order(__m256i x) {
  asm("" : "+x"(x));
  return x;
}

// The entries of `chains` parallel chains up to the index's row: after 16 has been taken from the index for every row
// before, rows beyond it find it negative, and a byte shuffle gives 0 there. Two registers at once share the table's
// loads. Indices are below 128.
template <std::size_t chains, std::size_t rows, std::size_t first_row>
inline std::array<Pair, chains> look_up_chains(const std::byte* table, Pair index) {
  std::array<Pair, chains> out;
  if constexpr (first_row != 0) {  // all rows before it are one byte
    static_assert(chains == 1);
    const __m256i rows_before = broadcast(table + (first_row - 1) * 16);
    out[0] = {rows_before, rows_before};
    index = map(index, [](__m256i x) { return _mm256_sub_epi8(x, _mm256_set1_epi8((first_row - 1) * 16)); });
  }
#pragma GCC unroll 8
  for (std::size_t row = first_row; row < rows; ++row) {
    if (row != 0) index = map(index, [](__m256i x) { return in_order(_mm256_sub_epi8(x, _mm256_set1_epi8(16))); });
#pragma GCC unroll 2
    for (std::size_t chain = 0; chain < chains; ++chain) {
      const __m256i entries = broadcast(table + (chain * rows + row) * 16);
      const Pair found = map(index, [entries](__m256i x) { return _mm256_shuffle_epi8(entries, x); });
      out[chain] = row == 0 ? found
                            : Pair{in_order(_mm256_xor_si256(out[chain].a, found.a)),
                                   in_order(_mm256_xor_si256(out[chain].b, found.b))};
    }
  }
  return out;
}

inline __m256i low_bits(__m256i x, int mask) { return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(mask))); }

// Two registers of indices to one output a byte each. Bits of the index that no chain saw choose between chains, or
// between the outputs that share a byte.
template <Layout layout>
inline Pair look_up_256(const std::byte* table, const Pair& index) {
  constexpr int element_bits = layout.element_bits;
  constexpr std::size_t rows = element_bits == 2 ? 4 : 8;
  constexpr std::size_t first_row = layout.first_row;
  constexpr int mask = element_bits == 2 ? 0x3f : 0x7f;
  const Pair rest = map(index, [](__m256i x) { return low_bits(x, mask); });
  if constexpr (element_bits == 8) {
    const auto halves = look_up_chains<2, rows, first_row>(table, rest);
    return {_mm256_blendv_epi8(halves[0].a, halves[1].a, index.a),
            _mm256_blendv_epi8(halves[0].b, halves[1].b, index.b)};
  } else {
    const Pair shared = look_up_chains<1, rows, first_row>(table, rest)[0];
    const auto choose = [](__m256i all, __m256i x) {
      __m256i out = _mm256_blendv_epi8(all, _mm256_srli_epi16(all, 4), x);
      if constexpr (element_bits == 2)
        out = _mm256_blendv_epi8(out, _mm256_srli_epi16(out, 2), in_order(_mm256_add_epi8(x, x)));
      return low_bits(out, (1 << element_bits) - 1);
    };
    return {choose(shared.a, index.a), choose(shared.b, index.b)};
  }
}

// An index's place in a table of rows.
struct RowIndex {
  explicit RowIndex(__m256i index) : row(low_bits(_mm256_srli_epi16(index, 4), 0x0f)), column(low_bits(index, 0x0f)) {}
  __m256i row, column;
};

// Bit b of a shape's number is the highest bit of bit[b].
struct ShapeNumber {
  __m256i bit[4];
};

// Of `count` shapes at `shapes`, the one of that number.
template <std::size_t count>
inline __m256i choose_shape(const std::byte* shapes, __m256i column, const ShapeNumber& number) {
  if constexpr (count == 1) {
    return _mm256_shuffle_epi8(broadcast(shapes), column);
  } else {
    constexpr std::size_t lower = std::bit_floor(count - 1);
    return _mm256_blendv_epi8(choose_shape<lower>(shapes, column, number),
                              choose_shape<count - lower>(shapes + lower * 16, column, number),
                              number.bit[std::countr_zero(lower)]);
  }
}

// One plane of Form::rows.
template <Layout layout, int plane_number>
inline __m256i look_up_row(const std::byte* table, const RowIndex& index) {
  constexpr std::size_t shape_count = layout.shapes[plane_number];
  constexpr int number_bits = std::bit_width(shape_count - 1);
  const std::byte* const plane = table + layout.row_plane_offset(plane_number);
  const auto of_row = [&](std::size_t offset) { return _mm256_shuffle_epi8(broadcast(plane + offset), index.row); };

  ShapeNumber number;
  if constexpr (number_bits != 0) {
    number.bit[number_bits - 1] = of_row(offsetof(RowPlane, shape));
#pragma GCC unroll 4
    for (int i = number_bits - 1; i > 0; --i) {  // in_order(): g++ would compare with zero before it blends
      number.bit[i - 1] = in_order(_mm256_add_epi8(number.bit[i], number.bit[i]));
    }
  }
  __m256i shape = choose_shape<shape_count>(plane + sizeof(RowPlane), index.column, number);
  if constexpr (layout.has_signs && plane_number == 0) {
    shape = _mm256_sign_epi8(shape, of_row(offsetof(RowPlane, sign)));
  }
  const __m256i bytes = _mm256_add_epi8(of_row(offsetof(RowPlane, first)), shape);
  if constexpr (layout.element_bits < 8) return low_bits(bytes, (1 << layout.element_bits) - 1);
  return bytes;
}

struct Unpack {
  using Vector = __m256i;

  template <int unit_bytes>
  static __m256i low(__m256i a, __m256i b) {
    if constexpr (unit_bytes == 1) return _mm256_unpacklo_epi8(a, b);
    if constexpr (unit_bytes == 2) return _mm256_unpacklo_epi16(a, b);
    if constexpr (unit_bytes == 4) return _mm256_unpacklo_epi32(a, b);
  }
  template <int unit_bytes>
  static __m256i high(__m256i a, __m256i b) {
    if constexpr (unit_bytes == 1) return _mm256_unpackhi_epi8(a, b);
    if constexpr (unit_bytes == 2) return _mm256_unpackhi_epi16(a, b);
    if constexpr (unit_bytes == 4) return _mm256_unpackhi_epi32(a, b);
  }
};

// Two registers of codes below a byte, one in each byte, to 32 or 16 bytes.
template <int bits>
inline void store_packed(std::byte* dst, const Pair& codes) {
  if constexpr (bits == 4) {
    const Pair bytes = map(codes, [](__m256i x) { return _mm256_maddubs_epi16(x, _mm256_set1_epi16(0x1001)); });
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(bytes.a, bytes.b), _MM_SHUFFLE(3, 1, 2, 0));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), packed);
  } else {
    static_assert(bits == 2);
    const Pair nibbles = map(codes, [](__m256i x) { return _mm256_maddubs_epi16(x, _mm256_set1_epi16(0x0401)); });
    const __m256i both = _mm256_packus_epi16(nibbles.a, nibbles.b);  // lanes hold four bytes of a, then of b
    const __m256i bytes = _mm256_maddubs_epi16(both, _mm256_set1_epi16(0x1001));
    const __m256i packed =
        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(bytes, bytes), _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), _mm256_castsi256_si128(packed));
  }
}

// Interleaving works within 128-bit lanes. This order of the indices makes `registers` interleaved planes come out
// consecutive: of the chunks that a lane of a register is made of, the even ones go to the low lane.
template <int registers>
inline __m256i order_for_interleaving(__m256i x) {
  if constexpr (registers == 1) {
    return x;
  } else if constexpr (registers == 4) {
    return _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  } else {
    static_assert(registers == 2 || registers == 8);
    const __m128i even_words = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    if constexpr (registers == 8) x = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(even_words));
    return _mm256_permute4x64_epi64(x, _MM_SHUFFLE(3, 1, 2, 0));
  }
}

// One register of indices to as many as their outputs take.
template <Layout layout>
[[gnu::always_inline]] inline Registers<Unpack> look_up(__m256i indices, const std::byte* table) {
  indices = order_for_interleaving<layout.output_units()>(indices);
  if constexpr (layout.form == Form::rows) {
    const RowIndex row_index(
        layout.index_offset == 0 ? indices : _mm256_add_epi8(indices, _mm256_set1_epi8(layout.index_offset)));
    return interleaved_planes<layout, Unpack>([&](auto plane) { return look_up_row<layout, plane>(table, row_index); });
  } else {
    return interleaved_planes<layout, Unpack>(
        [&](auto plane) { return _mm256_shuffle_epi8(broadcast(table + plane * 16), indices); });
  }
}

template <Layout layout>
[[gnu::always_inline]] inline void look_up_block(const std::byte* src, std::byte* dst, const std::byte* table) {
  if constexpr (block_indices<layout> == 64) {
    const Pair indices = {load_indices<layout.index_bits>(src), load_indices<layout.index_bits>(src + 32)};
    Pair codes;
    if constexpr (layout.form == Form::chains) {
      codes = look_up_256<layout>(table, indices);
    } else {
      codes = map(indices, [table](__m256i x) { return look_up<layout>(x, table).v[0]; });
    }
    if constexpr (layout.output_bits() < 8) {
      store_packed<layout.output_bits()>(dst, codes);
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), codes.a);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 32), codes.b);
    }
  } else {
    const Registers<Unpack> out = look_up<layout>(load_indices<layout.index_bits>(src), table);
    [&]<std::size_t... i>(std::index_sequence<i...>) {
      (_mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i * 32), out.v[i]), ...);
    }(std::make_index_sequence<layout.output_units()>());
  }
}

// Both halves of each source byte, to four, two or eight bits each.
template <Layout layout>
inline void look_up_nibbles(const std::byte* src, std::byte* dst, const std::byte* table) {
  const __m256i entries = broadcast(table);
  __m256i bytes = load_indices<8>(src);
  if constexpr (layout.output_bits() == 8) bytes = _mm256_permute4x64_epi64(bytes, _MM_SHUFFLE(3, 1, 2, 0));
  const __m256i mask = _mm256_set1_epi8(0x0f);
  const __m256i low = _mm256_shuffle_epi8(entries, _mm256_and_si256(bytes, mask));
  const __m256i high = _mm256_shuffle_epi8(entries, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask));
  if constexpr (layout.output_bits() == 8) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), _mm256_unpacklo_epi8(low, high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + 32), _mm256_unpackhi_epi8(low, high));
  } else {
    const __m256i out = _mm256_or_si256(low, _mm256_slli_epi16(high, layout.output_bits()));
    if constexpr (layout.output_bits() == 4) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), out);
    } else {
      static_assert(layout.output_bits() == 2);
      const __m256i pairs = _mm256_maddubs_epi16(out, _mm256_set1_epi16(0x1001));
      const __m128i packed = _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst), packed);
    }
  }
}

// 8-bit integers to others: their low bits, or as many bits with the sign before them.
template <Layout layout>
inline void convert_integers(const std::byte* src, std::byte* dst) {
  if constexpr (layout.element_bits == 8) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst), load_indices<8>(src));
  } else if constexpr (layout.element_bits < 8) {
    const Pair numbers = {load_indices<8>(src), load_indices<8>(src + 32)};
    store_packed<layout.element_bits>(
        dst, map(numbers, [](__m256i x) { return low_bits(x, (1 << layout.element_bits) - 1); }));
  } else {
    constexpr bool has_sign = layout.from == DType::int8;
    constexpr int per_register = 256 / layout.element_bits;
#pragma GCC unroll 8
    for (int i = 0; i < 32; i += per_register) {
      // Of the bytes only the first `per_register` count.
      const __m128i bytes = per_register == 16  ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i))
                            : per_register == 8 ? _mm_loadl_epi64(reinterpret_cast<const __m128i*>(src + i))
                                                : _mm_loadu_si32(src + i);
      __m256i numbers;
      if constexpr (per_register == 16) numbers = has_sign ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
      if constexpr (per_register == 8) numbers = has_sign ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
      if constexpr (per_register == 4) numbers = has_sign ? _mm256_cvtepi8_epi64(bytes) : _mm256_cvtepu8_epi64(bytes);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i * (layout.element_bits / 8)), numbers);
    }
  }
}

// 8-bit integers to floats of 16 bits and more, which hold them exactly.
template <Layout layout>
inline void convert_numbers(const std::byte* src, std::byte* dst) {
  const auto numbers_at = [src](int i) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(src + i));
    return layout.from == DType::int8 ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  };
#pragma GCC unroll 4
  for (int i = 0; i < static_cast<int>(block_indices<layout>); i += 8) {
    const __m256i integers = numbers_at(i);
    std::byte* const out = dst + i * (layout.element_bits / 8);
    if constexpr (layout.to == DType::float64) {
      auto* const doubles = reinterpret_cast<double*>(out);
      _mm256_storeu_pd(doubles, _mm256_cvtepi32_pd(_mm256_castsi256_si128(integers)));
      _mm256_storeu_pd(doubles + 4, _mm256_cvtepi32_pd(_mm256_extracti128_si256(integers, 1)));
    } else {
      const __m256 floats = _mm256_cvtepi32_ps(integers);
      if constexpr (layout.to == DType::float32) {
        _mm256_storeu_ps(reinterpret_cast<float*>(out), floats);
      } else if constexpr (layout.to == DType::float16) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(floats, _MM_FROUND_TO_NEAREST_INT));
      } else {
        static_assert(layout.to == DType::bfloat16);
        const __m256i upper = _mm256_srli_epi32(_mm256_castps_si256(floats), 16);
        const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out), halves);
      }
    }
  }
}

template <Layout layout>
inline void shift_powers(const std::byte* src, std::byte* dst, const std::byte* table) {
  PowerTable powers;
  std::memcpy(&powers, table, sizeof powers);
#pragma GCC unroll 8
  for (int i = 0; i < 32; i += 256 / layout.element_bits) {
    __m256i out;
    if constexpr (layout.element_bits == 64) {
      const __m256i index = _mm256_cvtepu8_epi64(_mm_loadu_si32(src + i));
      const __m256i above =
          _mm256_andnot_si256(_mm256_cmpeq_epi64(index, _mm256_set1_epi64x(255)),
                              _mm256_cmpgt_epi64(index, _mm256_set1_epi64x(static_cast<long long>(powers.last))));
      const __m256i exponent = _mm256_sub_epi64(index, _mm256_set1_epi64x(127));
      out = _mm256_blendv_epi8(_mm256_sllv_epi64(_mm256_set1_epi64x(1), exponent),
                               _mm256_set1_epi64x(static_cast<long long>(powers.above)), above);
    } else {
      static_assert(layout.element_bits == 32);
      const __m256i index = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(src + i)));
      const __m256i above =
          _mm256_andnot_si256(_mm256_cmpeq_epi32(index, _mm256_set1_epi32(255)),
                              _mm256_cmpgt_epi32(index, _mm256_set1_epi32(static_cast<int>(powers.last))));
      const __m256i exponent = _mm256_sub_epi32(index, _mm256_set1_epi32(127));  // a shift by others gives 0
      out = _mm256_blendv_epi8(_mm256_sllv_epi32(_mm256_set1_epi32(1), exponent),
                               _mm256_set1_epi32(static_cast<int>(powers.above)), above);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst + i * (layout.element_bits / 8)), out);
  }
}

// Four of each lane's bytes, from number `first` on and `step` apart, to the highest bytes of lanes of 32 bits.
template <int first, int step>
inline __m256i to_high_bytes(__m256i x) {
  constexpr char none = -1;
  const __m128i places = _mm_setr_epi8(none, none, none, first, none, none, none, first + step, none, none, none,
                                       first + 2 * step, none, none, none, first + 3 * step);
  return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(places));
}

// 1. Codes, one in each lane's highest byte, to float32: sign, exponent and mantissa move to their places, and the
//    exponent gets float32's bias. Subnormal numbers become other ones below 1/2, which are 0 as integers too.
// 2. The CPU's conversion.
template <Layout layout, bool rounds>
inline __m256i integers_of(__m256i codes) {
  constexpr FloatFormat format = row(layout.from).format;
  constexpr int shift = 1 + format.mantissa_bits;
  constexpr unsigned kept = 0x80000000U | 0x7f000000U >> shift;
  constexpr int bias = (127 - format.bias) << 23;
  const __m256i fields = _mm256_and_si256(_mm256_srai_epi32(codes, shift), _mm256_set1_epi32(static_cast<int>(kept)));
  const __m256 numbers = _mm256_castsi256_ps(_mm256_add_epi32(fields, _mm256_set1_epi32(bias)));
  return rounds ? _mm256_cvtps_epi32(numbers) : _mm256_cvttps_epi32(numbers);
}

template <Layout layout, bool rounds>
inline void truncate_codes(std::byte* dst, __m256i codes) {
  const auto store = [dst](int i, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst) + i, x); };
  if constexpr (layout.element_bits == 16) {
    const __m256i ordered = order_for_interleaving<2>(codes);
    const auto pair = [](__m256i even, __m256i odd) {
      const __m256i low = integers_of<layout, rounds>(even);
      const __m256i high = _mm256_slli_epi32(integers_of<layout, rounds>(odd), 16);
      return _mm256_blend_epi16(low, high, 0xaa);
    };
    store(0, pair(to_high_bytes<0, 2>(ordered), to_high_bytes<1, 2>(ordered)));
    store(1, pair(to_high_bytes<8, 2>(ordered), to_high_bytes<9, 2>(ordered)));
  } else {
    const __m256i ordered = order_for_interleaving<4>(codes);
    const auto store_eight = [&](int i, __m256i eight) {
      const __m256i numbers = integers_of<layout, rounds>(eight);
      if constexpr (layout.element_bits == 32) {
        store(i, numbers);
      } else {
        store(2 * i, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(numbers)));
        store(2 * i + 1, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(numbers, 1)));
      }
    };
    store_eight(0, to_high_bytes<0, 1>(ordered));
    store_eight(1, to_high_bytes<4, 1>(ordered));
    store_eight(2, to_high_bytes<8, 1>(ordered));
    store_eight(3, to_high_bytes<12, 1>(ordered));
  }
}

// Float8 to integers of 16 bits and more. Infinity, NaN and what is beyond a saturating range are looked up one by one.
template <Layout layout>
inline void truncate_block(const std::byte* src, std::byte* dst, const std::byte* table) {
  const __m256i codes = _mm256_max_epi8(load_indices<8>(src), broadcast(table + offsetof(TruncationTable, lowest)));
  if (table[offsetof(TruncationTable, rounds)] != std::byte{}) {
    truncate_codes<layout, true>(dst, codes);
  } else {
    truncate_codes<layout, false>(dst, codes);
  }
  const __m256i is_rare =
      _mm256_cmpgt_epi8(low_bits(codes, 0x7f), broadcast(table + offsetof(TruncationTable, greatest_plain)));
  auto rare = static_cast<unsigned>(_mm256_movemask_epi8(is_rare));
  while (rare != 0) [[unlikely]] {
    constexpr auto bytes = static_cast<std::size_t>(layout.output_bytes());
    const auto i = static_cast<std::size_t>(std::countr_zero(rare));
    std::memcpy(dst + i * bytes, table + sizeof(TruncationTable) + std::to_integer<std::size_t>(src[i]) * bytes, bytes);
    rare &= rare - 1;
  }
}

template <Layout layout>
[[gnu::always_inline]] inline void convert_block(const std::byte* src, std::byte* dst, const std::byte* table) {
  if constexpr (layout.form == Form::none && layout.to == DType::undefined) {
    convert_integers<layout>(src, dst);
  } else if constexpr (layout.form == Form::none) {
    convert_numbers<layout>(src, dst);
  } else if constexpr (layout.form == Form::powers) {
    shift_powers<layout>(src, dst, table);
  } else if constexpr (layout.form == Form::truncated) {
    truncate_block<layout>(src, dst, table);
  } else if constexpr (is_nibbles<layout>) {
    look_up_nibbles<layout>(src, dst, table);
  } else {
    look_up_block<layout>(src, dst, table);
  }
}

template <Layout layout>
[[gnu::noinline]] void convert(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  constexpr std::size_t block_elements = block_indices<layout> * layout.index_elements;
  constexpr std::size_t source_bits = layout.source_bits() / layout.index_elements;
  constexpr std::size_t src_block = block_elements * source_bits / 8;
  constexpr std::size_t dst_block = block_elements * layout.element_bits / 8;
  const bool in_place = src == dst;
  const bool has_block = count >= block_elements;

  // The tail is the end of one more block, which repeats results of the last; or of a zero-padded one of its own where
  // there is none, where sources are overwritten, and where blocks do not end at whole bytes. All go through the same
  // loop: one copy of the code.
  alignas(32) std::byte padded_src[src_block];
  alignas(32) std::byte padded_dst[dst_block];
  std::byte* tail = nullptr;
  std::size_t tail_bytes = 0;
  std::size_t blocks = count / block_elements;
  std::size_t rest = count % block_elements;
  for (;;) {
    for (; blocks != 0; --blocks, src += src_block, dst += dst_block) convert_block<layout>(src, dst, table);
    if (rest == 0) break;
    const bool whole_bytes = rest * source_bits % 8 == 0 && rest * layout.element_bits % 8 == 0;
    if (has_block && !in_place && whole_bytes) {
      src -= src_block - rest * source_bits / 8;
      dst -= dst_block - rest * layout.element_bits / 8;
    } else {
      std::memset(padded_src, 0, src_block);
      std::memcpy(padded_src, src, (rest * source_bits + 7) / 8);
      tail = dst;
      tail_bytes = (rest * layout.element_bits + 7) / 8;
      src = padded_src;
      dst = padded_dst;
    }
    blocks = 1;
    rest = 0;
  }
  if (tail != nullptr) std::memcpy(tail, padded_dst, tail_bytes);
}

template <Layout layout>
void convert_in_default_environment(const std::byte* src, std::byte* dst, std::size_t count, const std::byte* table) {
  using namespace avx2;
  const FloatEnvironment saved = float_environment();
  if (is_default(saved)) [[likely]]
    return convert<layout>(src, dst, count, table);
  set_default_environment();
  convert<layout>(src, dst, count, table);
  restore(saved);
}

template <Layout layout>
constexpr Loop loop() {
  if constexpr (layout.form == Form::truncated) return convert_in_default_environment<layout>;
  return convert<layout>;
}

template <std::size_t... i>
constexpr Loops make_loops(std::index_sequence<i...>) {
  return {loop<layout_list<Engine::avx2>.layouts[i]>()...};
}

}  // namespace

extern const Loops avx2_loops = make_loops(std::make_index_sequence<layout_list<Engine::avx2>.size>());

}  // namespace tensorcast::kernels::narrow
