// SPDX-License-Identifier: Apache-2.0
#include "kernels/runs.hpp"

#include <bit>
#include <cstdint>

#include "kernels/encode/encode_float.hpp"
#include "kernels/per_target/functions.hpp"
#include "kernels/simd/environment.hpp"
#include "kernels/simd/powers.hpp"

namespace tensorcast::kernels::TENSORCAST_TARGET {

namespace {

static_assert(run_step % kBlock == 0);

// The parameter of each element of the unit that begins at element `at`.
template <int run>
SIMD_INLINE F32 of_unit(const float* parameters, std::size_t at) {
  if constexpr (run == 1) {
    return load<F32>(reinterpret_cast<const std::byte*>(parameters + at));
  } else {
    return splat(parameters[at / run]);
  }
}

template <DType from>
SIMD_INLINE F32 load_numbers(const std::byte* src) {
  if constexpr (is_float<from>) {
    return load_unit<from>(src);
  } else {
    return to_f32<true>(load_unit<from>(src));
  }
}

template <DType from, DType to, int run, bool is_affine, bool may_be_nan>
[[gnu::noinline]] void scale_runs(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& by) {
  constexpr bool shares_all = run == run_of_all;
  static_assert(shares_all || run == 1 || run % kLanes == 0);
  const FloatEncoder<to, may_be_nan> encoder{Policy{}};
  const F32 scale = splat(by.scales[0]);
  const F32 zero = splat(by.zeros == nullptr ? 0.0F : by.zeros[0]);
  const F32 bias = splat(by.biases == nullptr ? -0.0F : by.biases[0]);  // x + -0 is x for every float
  const auto product = [&](std::size_t at) SIMD_INLINE_LAMBDA {
    F32 x = load_numbers<from>(src + bytes_of<from>(at));
    if constexpr (shares_all) {
      return is_affine ? (x - zero) * scale + bias : x * scale;
    } else if constexpr (is_affine) {
      if (by.zeros != nullptr) x -= of_unit<run>(by.zeros, at);
      x *= of_unit<run>(by.scales, at);
      return by.biases == nullptr ? x : x + of_unit<run>(by.biases, at);
    } else {
      return x * of_unit<run>(by.scales, at);
    }
  };
  for (std::size_t at = 0; at < count; at += kBlock) {
    encoder.store_block(dst + bytes_of<to>(at),
                        {product(at), product(at + kLanes), product(at + 2 * kLanes), product(at + 3 * kLanes)});
  }
}

[[maybe_unused]] bool any_nan(const float* parameters, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; parameters != nullptr && i < count; ++i) {
    const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(parameters[i]) & INT32_MAX);
    largest = bits > largest ? bits : largest;
  }
  return largest > 0x7f800000;
}

// Reports whether NaN must be told from numbers that round to bfloat16. That of int8 and bfloat16 sources need not: its
// lower half is zero, as is that of NaN of infinities, and the operations make it quiet. That of a parameter may have
// any payload; to look for it among as many as numbers would take as long as to tell it from numbers.
template <DType from, DType to, int run, bool is_affine>
void run_scales_of(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& by) {
  if constexpr (to == DType::bfloat16 && from != DType::float32 && run != 1) {
    const std::size_t runs = run == run_of_all ? 1 : count / (run == run_of_all ? 1 : run);
    if (!any_nan(by.scales, runs) && !any_nan(by.zeros, runs) && !any_nan(by.biases, runs)) {
      return scale_runs<from, to, run, is_affine, false>(src, dst, count, by);
    }
  }
  scale_runs<from, to, run, is_affine, true>(src, dst, count, by);
}

template <DType from, DType to, int run>
void run_scales(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& by) {
  in_default_environment([&] {
    if (by.zeros != nullptr || by.biases != nullptr) {
      run_scales_of<from, to, run, true>(src, dst, count, by);
    } else {
      run_scales_of<from, to, run, false>(src, dst, count, by);
    }
  });
}

template <DType from, DType to>
ScaleRunsFn find_run(unsigned run) {
  switch (run) {
    case run_of_all:
      return run_scales<from, to, 0>;
    case 1:
      return run_scales<from, to, 1>;
    case 16:
      return run_scales<from, to, 16>;
    case 32:
      return run_scales<from, to, 32>;
    default:
      return nullptr;
  }
}

template <DType from>
ScaleRunsFn find_target(DType to, unsigned run) {
  switch (to) {
    case DType::float32:
      return find_run<from, DType::float32>(run);
    case DType::float16:
      return find_run<from, DType::float16>(run);
    case DType::bfloat16:
      return find_run<from, DType::bfloat16>(run);
    default:
      return nullptr;
  }
}

}  // namespace

ScaleRunsFn find_scale_runs(DType from, DType to, unsigned run) noexcept {
  switch (from) {
    case DType::int8:
      return find_target<DType::int8>(to, run);
    case DType::bfloat16:
      return find_target<DType::bfloat16>(to, run);
    case DType::float32:
      return find_target<DType::float32>(to, run);
    default:
      return nullptr;
  }
}

// Adds the exponent of the scale to those of numbers, in 16-bit lanes.
void scale_runs_by_powers(const std::byte* src, std::byte* dst, std::size_t count, const RunParameters& by) {
  constexpr std::size_t run = 32, lanes = kRegisterBytes / 2;
  constexpr std::uint32_t one = 0x3f80;
  for (std::size_t at = 0; at < count; at += run) {
    const U16 exponent =
        splat(static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(by.scales[at / run]) >> 16) - one));
#pragma GCC unroll 4
    for (std::size_t i = at; i < at + run; i += lanes) {
      store(dst + 2 * i, with_power(load<U16>(src + 2 * i), exponent));
    }
  }
}

}  // namespace tensorcast::kernels::TENSORCAST_TARGET
