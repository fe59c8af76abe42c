// Quantization: the extent of runs of numbers, which scales are made from.
#include "dtype/platform.hpp"
// SPDX-License-Identifier: Apache-2.0
#include "kernels/encode/blocks.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/runs.hpp"
#include "kernels/simd/largest_lanes.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

static_assert(run_step % kBlock == 0 && (1 << least_run_shift) % kLanes == 0);

// The largest magnitudes of numbers [first, end), in lanes of float32's bits.
template <DType from>
SIMD_INLINE I32 magnitudes_of(const std::byte* numbers, std::size_t first, std::size_t end) {
  if constexpr (from == DType::bfloat16) {
    constexpr std::size_t lanes16 = kLanes * 2;
    if ((end - first) % lanes16 == 0) {
      I16 most = {};
      for (std::size_t at = first; at < end; at += lanes16) {
        most = max(most, load<I16>(numbers + bytes_of<from>(at)) & INT16_MAX);
      }
      const U32 pairs = as<U32>(most);
      return max(as<I32>(pairs << 16), as<I32>(pairs & 0xffff0000u));
    }
  }
  I32 most = {};
  for (std::size_t at = first; at < end; at += kLanes) {
    most = max(most, as<I32>(load_unit<from>(numbers + bytes_of<from>(at))) & INT32_MAX);
  }
  return most;
}

template <DType from>
void find_largest(const std::byte* numbers, std::size_t count, unsigned run_shift, std::uint32_t* largest) {
  const std::size_t size = run_shift == shift_of_all ? count : std::size_t{1} << run_shift;
  const auto run = [&](std::size_t index) SIMD_INLINE_LAMBDA {
    const std::size_t first = index * size;
    return magnitudes_of<from>(numbers, first, size < count - first ? first + size : count);
  };
  const std::size_t runs = (count + size - 1) / size;
  std::size_t index = 0;
  for (; index + kLanes <= runs; index += kLanes) {
    auto* const found = reinterpret_cast<std::byte*>(largest + index);
    store(found, max(load<I32>(found), max_of_each(index, run)));
  }
  for (; index < runs; ++index) {
    const auto found = static_cast<std::uint32_t>(reduce_max(run(index)));
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
  if constexpr (TENSORCAST_HAS_QUICK_BLOCKS) {
    if (dtype == DType::bfloat16) return find_largest<DType::bfloat16>(numbers, count, run_shift, largest);
  }
  find_largest<DType::float32>(numbers, count, run_shift, largest);
}

void range_of_runs(const std::byte* numbers, DType dtype, std::size_t count, unsigned run_shift, float* low,
                   float* high) {
  if constexpr (TENSORCAST_HAS_QUICK_BLOCKS) {
    if (dtype == DType::bfloat16) return find_range<DType::bfloat16>(numbers, count, run_shift, low, high);
  }
  find_range<DType::float32>(numbers, count, run_shift, low, high);
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
