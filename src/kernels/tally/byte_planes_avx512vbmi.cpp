// 1. A lookup in 128 values, which are two registers, ignores bit 7. A plane whose values depend on bit 7 takes two
//    lookups; one that has values for bytes with bit 7 only, or without, takes one and a mask.
// 2. One instruction adds four signed bytes, each times one, to a lane of 32 bits (VNNI).
// 3. A pass looks up in several planes of one kind, so that each source byte is loaded once for all of them. Planes of
//    which no byte may be in the block are left out.
// 4. Where squares are summed, the same instruction multiplies values of seven bits by themselves: a lookup covers ten
//    bits or more of a sum of squares instead of eight.
// 5. Of a pair, the lower seven bits of a lane are the first one's sum, for as long as that is below 128; the bits
//    above it are the second one's, negative.
#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/simd/byte_table.hpp"
#include "kernels/tally/byte_planes.hpp"

namespace tensorcast::kernels::avx512vbmi {
namespace {

constexpr std::size_t vector_bytes = 64;

constexpr std::size_t pair_run_bytes = 31 * vector_bytes;      // sums of ones are at most 124 a lane
constexpr std::size_t max_block_bytes = std::size_t{1} << 16;  // sums fit lanes of 32 bits

__m512i quarter(const void* table, int i) {
  return _mm512_loadu_si512(static_cast<const char*>(table) + static_cast<std::size_t>(i) * vector_bytes);
}

void add_lanes(__m512i sums, PlaneSum::Lanes& into) {
  const __m512i pairs = _mm512_add_epi64(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(sums)),
                                         _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(sums, 1)));
  _mm512_store_si512(into.data(), _mm512_add_epi64(_mm512_load_si512(into.data()), pairs));
}

struct Pass {
  std::array<const BytePlane*, planes_per_pass> planes = {};
  std::array<PlaneSum*, planes_per_pass> sums = {};
};

// At most `max_block_bytes`.
template <PlaneBytes kind, std::size_t linear, std::size_t squared>
void sum(const Pass& pass, const std::byte* data, std::size_t bytes) {
  constexpr std::size_t count = linear + squared;
  constexpr std::size_t chains = count <= 2 ? 2 : 1;  // so that one addition need not wait for the last
  constexpr bool masked = kind == PlaneBytes::without_bit_7 || kind == PlaneBytes::with_bit_7;
  constexpr bool differs = kind == PlaneBytes::different;
  constexpr int first = kind == PlaneBytes::with_bit_7 ? 2 : 0;
  __m512i lower[count], upper[count], lower_with[count], upper_with[count], sums[chains][count];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < count; ++i) {
    lower[i] = quarter(pass.planes[i]->value.data(), first);
    upper[i] = quarter(pass.planes[i]->value.data(), first + 1);
    if (differs) lower_with[i] = quarter(pass.planes[i]->value.data(), 2);
    if (differs) upper_with[i] = quarter(pass.planes[i]->value.data(), 3);
#pragma GCC unroll 2
    for (std::size_t chain = 0; chain < chains; ++chain) sums[chain][i] = _mm512_setzero_si512();
  }
  const __m512i ones = _mm512_set1_epi8(1);
  constexpr __mmask64 flip = kind == PlaneBytes::without_bit_7 ? ~__mmask64{0} : 0;
  const auto values_of = [&](__m512i x, std::size_t i) __attribute__((always_inline)) {
    if (masked) {
      const __mmask64 mask = _kxor_mask64(_mm512_movepi8_mask(x), flip);
      return _mm512_maskz_permutex2var_epi8(mask, lower[i], x, upper[i]);
    }
    const __m512i values = _mm512_permutex2var_epi8(lower[i], x, upper[i]);
    if (!differs) return values;
    const __m512i values_with = _mm512_permutex2var_epi8(lower_with[i], x, upper_with[i]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), values, values_with);
  };
  const auto add = [&](__m512i x, __m512i * into) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < count; ++i) {
      const __m512i values = values_of(x, i);
      into[i] = _mm512_dpbusd_epi32(into[i], i < linear ? ones : values, values);
    }
  };
  const bool has_pair = linear != 0 && pass.planes[0]->is_pair;
  __m512i firsts = _mm512_setzero_si512(), seconds = firsts;
  while (bytes != 0) {
    const std::size_t run = has_pair ? std::min(bytes, pair_run_bytes) : bytes;
    const std::byte* const end = data + run / vector_bytes * vector_bytes;
    if (chains == 2) {
      for (; end - data >= 2 * static_cast<std::ptrdiff_t>(vector_bytes); data += 2 * vector_bytes) {
        add(_mm512_loadu_si512(data), sums[0]);
        add(_mm512_loadu_si512(data + vector_bytes), sums[chains - 1]);
      }
    }
    for (; data != end; data += vector_bytes) add(_mm512_loadu_si512(data), sums[0]);
    if (run % vector_bytes != 0) {  // the last bytes of all
      const __mmask64 rest = (__mmask64{1} << (run % vector_bytes)) - 1;
      const __m512i x = _mm512_maskz_loadu_epi8(rest, data);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < count; ++i) {
        const __m512i values = _mm512_maskz_mov_epi8(rest, values_of(x, i));
        sums[0][i] = _mm512_dpbusd_epi32(sums[0][i], i < linear ? ones : values, values);
      }
    }
    bytes -= run;
    if (has_pair) {
#pragma GCC unroll 2
      for (std::size_t chain = 0; chain < chains; ++chain) {
        firsts = _mm512_add_epi32(firsts, _mm512_and_si512(sums[chain][0], _mm512_set1_epi32(127)));
        seconds = _mm512_sub_epi32(seconds, _mm512_srai_epi32(sums[chain][0], 7));
        sums[chain][0] = _mm512_setzero_si512();
      }
    }
  }
  if (has_pair) {
    sums[0][0] = firsts;
    add_lanes(seconds, pass.sums[0]->second);
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < count; ++i) {
    const __m512i total = chains == 1 ? sums[0][i] : _mm512_add_epi32(sums[0][i], sums[chains - 1][i]);
    add_lanes(total, pass.sums[i]->first);
  }
}

using Run = void (*)(const Pass& pass, const std::byte* data, std::size_t bytes);

// By the numbers of planes whose values are summed, and whose squares are.
using Runs = std::array<std::array<Run, planes_per_pass + 1>, planes_per_pass + 1>;

template <PlaneBytes kind, std::size_t linear, std::size_t squared>
constexpr Run run_of() {
  if constexpr (linear + squared != 0 && linear + squared <= planes_per_pass) {
    return sum<kind, linear, squared>;
  } else {
    return nullptr;
  }
}

template <PlaneBytes kind>
constexpr Runs runs_of() {
  constexpr std::size_t size = planes_per_pass + 1;
  return []<std::size_t... i>(std::index_sequence<i...>) {
    Runs runs = {};
    ((runs[i / size][i % size] = run_of<kind, i / size, i % size>()), ...);
    return runs;
  }(std::make_index_sequence<size * size>());
}

constexpr std::array<Runs, plane_kinds> all_runs = {runs_of<PlaneBytes::same>(), runs_of<PlaneBytes::without_bit_7>(),
                                                    runs_of<PlaneBytes::with_bit_7>(),
                                                    runs_of<PlaneBytes::different>()};

bool meets(const BytePlane& plane, const ByteSet& possible) {
  const __m256i nonzero = _mm256_load_si256(reinterpret_cast<const __m256i*>(plane.nonzero.bits.data()));
  return _mm256_testz_si256(nonzero, _mm256_load_si256(reinterpret_cast<const __m256i*>(possible.bits.data()))) == 0;
}

std::uint8_t greatest_lane(__m512i x) {
  const __m256i half = _mm256_max_epu8(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
  const __m128i lanes = _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
  const __m128i words = _mm_max_epu8(lanes, _mm_srli_epi16(lanes, 8));
  const __m128i inverted = _mm_xor_si128(_mm_and_si128(words, _mm_set1_epi16(0xff)), _mm_set1_epi16(0xff));
  return static_cast<std::uint8_t>(0xff ^ _mm_extract_epi16(_mm_minpos_epu16(inverted), 0));
}

// Bits from `first` to `last`, if that is not less.
void add_range(unsigned first, unsigned last, ByteSet& set) {
  for (unsigned word = first / 64; word <= last / 64 && first <= last; ++word) {
    const std::uint64_t from = word == first / 64 ? ~std::uint64_t{0} << (first % 64) : ~std::uint64_t{0};
    const std::uint64_t to = word == last / 64 ? ~std::uint64_t{0} >> (63 - last % 64) : ~std::uint64_t{0};
    set.bits[word] |= from & to;
  }
}

// Sums planes of one kind in as few passes as there can be. Each has a pair at most, which comes first, and squares
// last.
void sum_all(const Runs& runs, const PlaneSet& set, std::uint32_t planes, const std::byte* data, std::size_t bytes,
             PlaneSum* sums) {
  std::uint32_t squared = planes & set.squared, pairs = planes & set.pairs, others = planes & ~squared & ~pairs;
  const auto pair_count = static_cast<std::size_t>(std::popcount(pairs));
  auto rest = static_cast<std::size_t>(std::popcount(planes));
  std::size_t left = std::max(pair_count, (rest + planes_per_pass - 1) / planes_per_pass);
  for (; left != 0; --left) {
    Pass pass;
    const std::size_t size = (rest + left - 1) / left;
    rest -= size;
    std::size_t count = 0;
    const auto take = [&](std::uint32_t& from) {
      const auto i = static_cast<std::size_t>(std::countr_zero(from));
      from &= from - 1;
      pass.planes[count] = &set.planes[i];
      pass.sums[count++] = &sums[i];
    };
    if (pairs != 0) take(pairs);
    while (count < size && others != 0) take(others);
    const std::size_t linear = count;
    while (count < size) take(squared);
    runs[linear][count - linear](pass, data, bytes);
  }
}

}  // namespace

// 1. As signed numbers, bytes with bit 7 are less than those without.
// 2. While this and the passes are at a block, memory has nothing to do: the next bytes are asked for.
ByteSet possible_bytes(const std::byte* data, std::size_t bytes) {
  ByteSet set;
  if (bytes < vector_bytes) {
    add_range(0, 255, set);
    return set;
  }
  __m512i most = _mm512_loadu_si512(data), signed_most = most, signed_least = most;
  const std::size_t block_bytes = bytes;
  const auto add = [&](__m512i x) {
    _mm_prefetch(reinterpret_cast<const char*>(reinterpret_cast<std::uintptr_t>(data) + block_bytes), _MM_HINT_T1);
    __asm__("" : "+v"(x));  // loaded once: there is one load a cycle
    most = _mm512_max_epu8(most, x);
    signed_most = _mm512_max_epi8(signed_most, x);
    signed_least = _mm512_min_epi8(signed_least, x);
  };
  for (; bytes >= vector_bytes; bytes -= vector_bytes, data += vector_bytes) add(_mm512_loadu_si512(data));
  if (bytes != 0) add(_mm512_loadu_si512(data + bytes - vector_bytes));  // some of them again
  const __m512i bit_7 = _mm512_set1_epi8(-128), all_but_bit_7 = _mm512_set1_epi8(127);
  const unsigned last_without = greatest_lane(_mm512_xor_si512(signed_most, bit_7)) ^ 128U;
  const unsigned first_with = greatest_lane(_mm512_xor_si512(signed_least, all_but_bit_7)) ^ 127U;
  const unsigned last_with = greatest_lane(most);
  if (last_without < 128) add_range(0, last_without, set);
  if (last_with >= 128) add_range(first_with, last_with, set);
  return set;
}

// Zeros have no magnitude; one less than it, they are above all others. Byte 0x80, which may be a NaN, is the least
// there is with a sign, so that it is known whether it is there.
ByteSet possible_magnitudes(const std::byte* data, std::size_t bytes) {
  ByteSet set;
  if (bytes < 2 * vector_bytes) {
    add_range(0, 255, set);
    return set;
  }
  __m512i most = _mm512_setzero_si512(), least = _mm512_set1_epi8(-1), signed_least = most;
  const __m512i minus_one = least;
  const std::size_t block_bytes = bytes;
  const auto add = [&](const std::byte* at) {
    const auto ahead = reinterpret_cast<std::uintptr_t>(at) + block_bytes;
    _mm_prefetch(reinterpret_cast<const char*>(ahead), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(ahead + vector_bytes), _MM_HINT_T1);
    const __m512i x = _mm512_loadu_si512(at), y = _mm512_loadu_si512(at + vector_bytes);
    signed_least = _mm512_min_epi8(signed_least, _mm512_min_epi8(x, y));
    const __m512i double_x = _mm512_add_epi8(x, x), double_y = _mm512_add_epi8(y, y);
    most = _mm512_max_epu8(most, _mm512_max_epu8(double_x, double_y));
    least = _mm512_min_epu8(
        least, _mm512_min_epu8(_mm512_add_epi8(double_x, minus_one), _mm512_add_epi8(double_y, minus_one)));
  };
  for (; bytes >= 2 * vector_bytes; bytes -= 2 * vector_bytes, data += 2 * vector_bytes) add(data);
  if (bytes != 0) add(data + bytes - 2 * vector_bytes);  // some of them again
  const unsigned last = greatest_lane(most) / 2U;
  const unsigned first = (255U - greatest_lane(_mm512_xor_si512(least, minus_one)) + 1) / 2;
  set.bits[0] = 1;
  add_range(first, last, set);  // none where all are zeros: then `first` is 128
  if (_mm512_movepi8_mask(signed_least) != 0) {
    const bool has_0x80 = _mm512_cmpeq_epi8_mask(signed_least, _mm512_set1_epi8(-128)) != 0;
    set.bits[2] = (set.bits[0] & ~std::uint64_t{1}) | std::uint64_t{has_0x80};
    set.bits[3] = set.bits[1];
  }
  return set;
}

void sum_planes(const PlaneSet& set, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                PlaneSum* sums) {
  std::uint32_t met = 0;
  for (std::size_t i = 0; i < set.planes.size(); ++i) {
    met |= std::uint32_t{meets(set.planes[i], possible)} << i;
  }
  for (std::size_t kind = 0; kind < plane_kinds; ++kind) {
    const std::uint32_t planes = met & set.of_kind[kind];
    for (std::size_t at = 0; at < bytes && planes != 0; at += max_block_bytes) {
      sum_all(all_runs[kind], set, planes, data + at, std::min(max_block_bytes, bytes - at), sums);
    }
  }
}

void raise_rank(const ByteRanks& ranks, const ByteSet& possible, const std::byte* data, std::size_t bytes,
                std::uint8_t& greatest) {
  const __m512i limit = _mm512_set1_epi8(static_cast<char>(greatest));
  std::uint64_t greater = 0;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    greater |=
        _mm512_cmpgt_epu8_mask(quarter(ranks.value.data(), i), limit) & possible.bits[static_cast<std::size_t>(i)];
  }
  if (greater == 0) return;
  const ByteTable<> table(ranks.value.data());
  __m512i most = _mm512_setzero_si512();
  for (; bytes >= vector_bytes; bytes -= vector_bytes, data += vector_bytes) {
    most = _mm512_max_epu8(most, table(_mm512_loadu_si512(data)));
  }
  if (bytes != 0) {
    const __mmask64 rest = (__mmask64{1} << bytes) - 1;
    most = _mm512_mask_max_epu8(most, rest, most, table(_mm512_maskz_loadu_epi8(rest, data)));
  }
  greatest = std::max(greatest, greatest_lane(most));
}

}  // namespace tensorcast::kernels::avx512vbmi
