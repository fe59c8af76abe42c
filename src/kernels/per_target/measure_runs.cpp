// SPDX-License-Identifier: Apache-2.0
// Quantization: the extent of runs of numbers, which scales are made from.

#include "kernels/encode/blocks.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/largest_lanes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

static_assert(run_step % kBlock == 0 && (1 << least_run_shift) % kLanes == 0);

constexpr std::size_t lanes16 = kLanes * 2;

SIMD_INLINE I16 words_at(const std::byte* numbers, std::size_t at) {
  return load<I16>(numbers + bytes_of<DType::bfloat16>(at)) & INT16_MAX;
}
template <DType from>
SIMD_INLINE I32 magnitudes_at(const std::byte* numbers, std::size_t at) {
  return as<I32>(load_unit<from>(numbers + bytes_of<from>(at))) & INT32_MAX;
}

// The largest lanes of registers of `lanes` numbers from `first` on, where at(number) has them: at least one. Two at a
// time, so that none waits for the one before.
template <std::size_t lanes, class At>
SIMD_INLINE auto largest_lanes(std::size_t first, std::size_t end, const At& at) {
  auto most = at(first);
  first += lanes;
  auto other = most;
  for (; end - first >= 4 * lanes; first += 4 * lanes) {
    most = max(most, max(at(first), at(first + lanes)));
    other = max(other, max(at(first + 2 * lanes), at(first + 3 * lanes)));
  }
  most = max(most, other);
  for (; first < end; first += lanes) most = max(most, at(first));
  return most;
}

SIMD_INLINE I16 largest_words(const std::byte* numbers, std::size_t first, std::size_t end) {
  return largest_lanes<lanes16>(first, end, [=](std::size_t at) SIMD_INLINE_LAMBDA { return words_at(numbers, at); });
}

// The largest magnitudes of numbers [first, end), in lanes of float32's bits.
template <DType from>
SIMD_INLINE I32 magnitudes_of(const std::byte* numbers, std::size_t first, std::size_t end) {
  if constexpr (from == DType::bfloat16) {
    if ((end - first) % lanes16 == 0) {
      const U32 pairs = as<U32>(largest_words(numbers, first, end));
      return max(as<I32>(pairs << 16), as<I32>(pairs & 0xffff0000u));
    }
  }
  return largest_lanes<kLanes>(first, end,
                               [=](std::size_t at) SIMD_INLINE_LAMBDA { return magnitudes_at<from>(numbers, at); });
}

// Adds what is found of as many runs as a register has words, where they lie.
SIMD_INLINE void raise(std::uint32_t* largest, I16 words) {
  std::byte found[kRegisterBytes];
  store(found, words);
  for (std::size_t half = 0; half < 2; ++half) {
    auto* const to = reinterpret_cast<std::byte*>(largest + half * kLanes);
    store(to, max(load<I32>(to), as<I32>(load_unit<DType::bfloat16>(found + half * kRegisterBytes / 2))));
  }
}

#if TENSORCAST_TARGET_LEVEL >= 2
// Runs of half a register: of the two runs of each of `lanes16` / 2 registers.
SIMD_INLINE I16 largest_of_halves(const std::byte* numbers) {
  const auto pair = [&](std::size_t index) SIMD_INLINE_LAMBDA {
    const std::size_t first = index * 2 * lanes16;
    return max_of_word_pairs(largest_words(numbers, first, first + lanes16),
                             largest_words(numbers, first + lanes16, first + 2 * lanes16));
  };
  const I16 found = max_of_quarter_pairs(max_of_each<quarter>(0, pair), max_of_each<quarter>(quarter, pair));
  alignas(kRegisterBytes) static constexpr auto order = [] {
    struct {
      std::uint16_t at[lanes16];
    } made{};
    for (std::size_t run = 0; run < lanes16; ++run) {
      const std::size_t reg = run / 2, half = run % 2, lane = reg / 2;  // two registers share a lane
      made.at[run] =
          static_cast<std::uint16_t>((lane / quarter * 2 + half) * quarter * 2 + lane % quarter * 2 + reg % 2);
    }
    return made;
  }();
  return in_order_of(order.at, found);
}
#endif

// Of runs of bfloat16, in 16-bit lanes, and of as many at once: those that are left have fewer. `at_once`: the size of
// runs, if it is known.
template <std::size_t at_once = 0>
SIMD_INLINE std::size_t find_largest_words(const std::byte* numbers, std::size_t run_size, std::size_t runs,
                                           std::size_t count, std::uint32_t* largest) {
  const std::size_t size = at_once == 0 ? run_size : at_once;
  std::size_t index = 0;
  const auto run = [&](std::size_t at)
                       SIMD_INLINE_LAMBDA { return largest_words(numbers, at * size, at * size + size); };
  const auto pair = [&](std::size_t at) SIMD_INLINE_LAMBDA { return max_of_word_pairs(run(at * 2), run(at * 2 + 1)); };
  for (; index + lanes16 <= runs && (index + lanes16) * size <= count; index += lanes16) {
    I16 pairs[kLanes];
#pragma GCC unroll 1
    for (std::size_t i = 0; i < kLanes; ++i) pairs[i] = pair(index / 2 + i);
    raise(largest + index, max_of_each(0, [&](std::size_t i) SIMD_INLINE_LAMBDA { return pairs[i]; }));
  }
  return index;
}

[[maybe_unused]] SIMD_INLINE std::size_t find_largest_words_of(const std::byte* numbers, std::size_t size,
                                                               std::size_t runs, std::size_t count,
                                                               std::uint32_t* largest) {
#if TENSORCAST_TARGET_LEVEL >= 2
  if (size * 2 == lanes16) {
    std::size_t index = 0;
    for (; (index + lanes16) * size <= count; index += lanes16) {
      raise(largest + index, largest_of_halves(numbers + bytes_of<DType::bfloat16>(index * size)));
    }
    return index;
  }
#endif
  if (size == lanes16) return find_largest_words<lanes16>(numbers, size, runs, count, largest);
  if (size == 2 * lanes16) return find_largest_words<2 * lanes16>(numbers, size, runs, count, largest);
  if (size == 4 * lanes16) return find_largest_words<4 * lanes16>(numbers, size, runs, count, largest);
  return size % lanes16 == 0 ? find_largest_words(numbers, size, runs, count, largest) : 0;
}

// Of as many runs at once as a register has lanes. `at_once`: the size of runs, if it is known. But for short ones,
// they are measured in a loop, as code of some thousand bytes is read more slowly than it runs.
template <DType from, std::size_t at_once = 0>
SIMD_INLINE std::size_t find_largest_lanes(const std::byte* numbers, std::size_t run_size, std::size_t index,
                                           std::size_t runs, std::size_t count, std::uint32_t* largest) {
  const std::size_t size = at_once == 0 ? run_size : at_once;
  const auto run = [&](std::size_t at) SIMD_INLINE_LAMBDA {
    const std::size_t first = at * size;
    const bool is_whole = at_once != 0 || size <= count - first;
    return magnitudes_of<from>(numbers, first, is_whole ? first + size : count);
  };
  for (; index + kLanes <= runs && (at_once == 0 || (index + kLanes) * size <= count); index += kLanes) {
    auto* const found = reinterpret_cast<std::byte*>(largest + index);
    if constexpr (at_once != 0 && at_once <= 2 * kLanes) {
      store(found, max(load<I32>(found), max_of_each(index, run)));
      continue;
    }
    I32 lanes[kLanes];
#pragma GCC unroll 1
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = run(index + i);
    store(found, max(load<I32>(found), max_of_each(0, [&](std::size_t i) SIMD_INLINE_LAMBDA { return lanes[i]; })));
  }
  return index;
}

template <DType from>
void find_largest(const std::byte* numbers, std::size_t count, unsigned run_shift, std::uint32_t* largest) {
  const std::size_t size = run_shift == shift_of_all ? count : std::size_t{1} << run_shift;
  const std::size_t runs = (count + size - 1) / size;
  std::size_t index = 0;
  if constexpr (from == DType::bfloat16) index = find_largest_words_of(numbers, size, runs, count, largest);
  if constexpr (from == DType::float32) {
    if (size == kLanes) index = find_largest_lanes<from, kLanes>(numbers, size, index, runs, count, largest);
    if (size == 2 * kLanes) index = find_largest_lanes<from, 2 * kLanes>(numbers, size, index, runs, count, largest);
    if (size == 4 * kLanes) index = find_largest_lanes<from, 4 * kLanes>(numbers, size, index, runs, count, largest);
    if (size == 8 * kLanes) index = find_largest_lanes<from, 8 * kLanes>(numbers, size, index, runs, count, largest);
  }
  if constexpr (from == DType::bfloat16) {
    if (size == 4 * lanes16) index = find_largest_lanes<from, 4 * lanes16>(numbers, size, index, runs, count, largest);
  }
  index = find_largest_lanes<from>(numbers, size, index, runs, count, largest);
  for (; index < runs; ++index) {
    const std::size_t first = index * size;
    const I32 lanes = magnitudes_of<from>(numbers, first, size < count - first ? first + size : count);
    const auto found = static_cast<std::uint32_t>(reduce_max(lanes));
    largest[index] = found > largest[index] ? found : largest[index];
  }
}

template <DType from>
void find_range(const std::byte* numbers, std::size_t count, unsigned run_shift, float* low, float* high) {
  const std::size_t size = run_shift == shift_of_all ? count : std::size_t{1} << run_shift;
  for (std::size_t first = 0, index = 0; first < count; first += size, ++index) {
    const std::size_t end = size < count - first ? first + size : count;
    F32 least = splat(low[index]), most = splat(high[index]);
    for (std::size_t at = first; at < end; at += kLanes) {
      const F32 x = load_unit<from>(numbers + bytes_of<from>(at));
      least = select(less(x, least), x, least);
      most = select(less(most, x), x, most);
    }
    low[index] = reduce_min(least);
    high[index] = reduce_max(most);
  }
}

}  // namespace

void largest_of_runs(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift,
                     std::uint32_t* largest) {
  if (dtype == DType::bfloat16) return find_largest<DType::bfloat16>(numbers, count, run_shift, largest);
  find_largest<DType::float32>(numbers, count, run_shift, largest);
}

void range_of_runs(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift, float* low,
                   float* high) {
  if (dtype == DType::bfloat16) return find_range<DType::bfloat16>(numbers, count, run_shift, low, high);
  find_range<DType::float32>(numbers, count, run_shift, low, high);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
