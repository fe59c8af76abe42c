// SPDX-License-Identifier: Apache-2.0
// Codes of four bits as entries of tables that change from run to run, 16 codes at a time: as many as the shortest run.
#include <algorithm>
#include <cstring>

#include "kernels/per_target/functions.hpp"
#include "kernels/simd/powers.hpp"
#include "kernels/simd/short_vectors.hpp"
#include "kernels/simd/simd.hpp"
#include "kernels/simd/store_line.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

#if TENSORCAST_HAS_BYTE_LOOKUP

namespace {

typedef std::uint16_t Halves8 __attribute__((vector_size(16)));
typedef std::uint64_t Words2 __attribute__((vector_size(16)));

constexpr std::size_t step = 16;

template <Nibbles nibbles>
constexpr std::size_t bytes_of_codes(std::size_t count) {
  return nibbles == Nibbles::low_halves || nibbles == Nibbles::high_halves ? count : (count + 1) / 2;
}

// The first or the last eight bytes of both, in turns.
SIMD_INLINE Bytes16 first_in_turns(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
SIMD_INLINE Bytes16 last_in_turns(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

// The codes of the first `bytes` bytes, one a byte; `bytes` is 16 codes', but at the end.
template <Nibbles nibbles>
SIMD_INLINE Bytes16 codes_at(const std::byte* src, std::size_t bytes) {
  std::uint64_t words[2] = {};
  std::memcpy(words, src, bytes);
  const auto both = (Bytes16)Words2{words[0], words[1]};
  const Bytes16 lower = both & 15, upper = both >> 4;
  if constexpr (nibbles == Nibbles::low_halves) return lower;
  if constexpr (nibbles == Nibbles::high_halves) return upper;
  return nibbles == Nibbles::low_first ? first_in_turns(lower, upper) : first_in_turns(upper, lower);
}

SIMD_INLINE const std::uint16_t* results_of(const NibbleRuns& runs, std::size_t run) {
  return runs.tables + step * (runs.indices == nullptr ? run : runs.indices[run]);
}

// Results of 16 codes, by their lower and upper bytes.
struct Table {
  Bytes16 low, high;

  SIMD_INLINE explicit Table(const std::uint16_t* results) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(results);
    const auto a = load<Bytes16>(bytes), b = load<Bytes16>(bytes + sizeof(a));
    low = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    high = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  }

  SIMD_INLINE void store_results(std::byte* dst, Bytes16 codes) const {
    const Bytes16 lows = look_up(low, codes), highs = look_up(high, codes);
    store(dst, first_in_turns(lows, highs));
    store(dst + sizeof(lows), last_in_turns(lows, highs));
  }
};

#if TENSORCAST_REGISTER_BYTES == 64

// --- A register of 32 results at a time

constexpr std::size_t wide_step = 2 * step;

// Codes of 32, each in the lower four bits of a lane.
template <Nibbles nibbles>
SIMD_INLINE U16 wide_codes_at(const std::byte* src) {
  if constexpr (nibbles == Nibbles::low_halves) return load_bytes_as_u16(src);
  if constexpr (nibbles == Nibbles::high_halves) return load_bytes_as_u16(src) >> 4;
  const auto both = as<U32>(load_uint8(src));
  return as<U16>(nibbles == Nibbles::low_first ? both | both << 12 : both >> 4 | both << 16);
}

// Returns how many codes are looked up: whole registers, of runs of 16 or of a multiple of 32.
template <Nibbles nibbles, bool bypasses_cache>
std::size_t look_up_wide(const std::byte* codes, std::byte* dst, std::size_t count, NibbleRuns runs) {
  const auto codes_at = [&](std::size_t at)
                            SIMD_INLINE_LAMBDA { return wide_codes_at<nibbles>(codes + bytes_of_codes<nibbles>(at)); };
  const auto put = [&](std::size_t at, U16 results)
                       SIMD_INLINE_LAMBDA { store_line(dst + 2 * at, results, bypasses_cache); };
  const std::size_t whole = count / wide_step * wide_step;
  if (runs.width == step) {
    const U16 of_second = as<U16>(U64{0, 0, 0, 0, ~0ULL, ~0ULL, ~0ULL, ~0ULL}) & 16;
    for (std::size_t at = 0, run = 0; at < whole; at += wide_step, run += 2) {
      const auto table = WordTable32::of_halves(results_of(runs, run), results_of(runs, run + 1));
      put(at, table((codes_at(at) & 15) | of_second));
    }
    return whole;
  }
  if (runs.width % wide_step != 0 || runs.skipped % wide_step != 0) return 0;
  std::size_t end = runs.width - runs.skipped;
  for (std::size_t at = 0, run = 0; at < whole; ++run, end += runs.width) {
    const auto table = WordTable32::of_halves(results_of(runs, run), results_of(runs, run));
    for (; at < end && at < whole; at += wide_step) put(at, table(codes_at(at)));
  }
  return whole;
}

#else

template <Nibbles nibbles, bool bypasses_cache>
SIMD_INLINE std::size_t look_up_wide(const std::byte*, std::byte*, std::size_t, const NibbleRuns&) {
  return 0;
}

#endif

template <Nibbles nibbles>
[[gnu::noinline]] void look_up_runs(const std::byte* codes, std::byte* dst, std::size_t count, const NibbleRuns& runs) {
  std::size_t at = runs.bypasses_cache ? look_up_wide<nibbles, true>(codes, dst, count, runs)
                                       : look_up_wide<nibbles, false>(codes, dst, count, runs);
  std::size_t run = (runs.skipped + at) / runs.width;
  std::size_t end = (run + 1) * runs.width - runs.skipped;
  for (; at < count; ++run, end += runs.width) {
    const Table table(results_of(runs, run));
    const std::size_t stop = std::min(end, count);
    const auto here = [&]() SIMD_INLINE_LAMBDA { return codes + bytes_of_codes<nibbles>(at); };
    for (; at + step <= stop; at += step) {
      table.store_results(dst + 2 * at, codes_at<nibbles>(here(), bytes_of_codes<nibbles>(step)));
    }
    if (at < stop) {  // the last codes of all
      return table.store_results(dst + 2 * at, codes_at<nibbles>(here(), bytes_of_codes<nibbles>(stop - at)));
    }
  }
}

template <class Halves>
SIMD_INLINE Halves with_powers(Halves results, const std::uint16_t* powers) {
  return with_power_of_finite(results, load<Halves>(reinterpret_cast<const std::byte*>(powers)));
}

template <Nibbles nibbles, bool bypasses_cache>
[[gnu::noinline]] void look_up_with_powers(const std::byte* codes, std::byte* dst, std::size_t count,
                                           const NibblePowers& by) {
  const Table table(by.results);
  const auto convert = [&](std::size_t at, std::size_t bytes) SIMD_INLINE_LAMBDA {
    const Bytes16 here = codes_at<nibbles>(codes + at, bytes);
    const Bytes16 lows = look_up(table.low, here), highs = look_up(table.high, here);
    store(dst + 2 * at, with_powers((Halves8)first_in_turns(lows, highs), by.powers + at));
    store(dst + 2 * at + sizeof(lows), with_powers((Halves8)last_in_turns(lows, highs), by.powers + at + step / 2));
  };
  std::size_t at = 0;
#if TENSORCAST_REGISTER_BYTES == 64
  const auto entries = WordTable32::of_halves(by.results, by.results);
  for (; at + wide_step <= count; at += wide_step) {
    const U16 results = entries(wide_codes_at<nibbles>(codes + at));
    store_line(dst + 2 * at, with_powers(results, by.powers + at), bypasses_cache);
  }
#endif
  for (; at + step <= count; at += step) convert(at, step);
  if (at < count) convert(at, count - at);
}

}  // namespace

void look_up_powers(const std::byte* codes, std::byte* dst, std::size_t count, const NibblePowers& by) {
  constexpr auto low = Nibbles::low_halves, high = Nibbles::high_halves;
  if (kRegisterBytes == 64 && by.bypasses_cache) {
    return by.are_upper ? look_up_with_powers<high, true>(codes, dst, count, by)
                        : look_up_with_powers<low, true>(codes, dst, count, by);
  }
  return by.are_upper ? look_up_with_powers<high, false>(codes, dst, count, by)
                      : look_up_with_powers<low, false>(codes, dst, count, by);
}

void look_up_nibbles(const std::byte* codes, std::byte* dst, std::size_t count, const NibbleRuns& runs) {
  switch (runs.nibbles) {
    case Nibbles::low_first:
      return look_up_runs<Nibbles::low_first>(codes, dst, count, runs);
    case Nibbles::high_first:
      return look_up_runs<Nibbles::high_first>(codes, dst, count, runs);
    case Nibbles::low_halves:
      return look_up_runs<Nibbles::low_halves>(codes, dst, count, runs);
    case Nibbles::high_halves:
      return look_up_runs<Nibbles::high_halves>(codes, dst, count, runs);
  }
}

#endif

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
