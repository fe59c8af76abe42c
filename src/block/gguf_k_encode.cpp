// SPDX-License-Identifier: Apache-2.0
// Q4_K and Q6_K, with an importance matrix or without: a search for the scale of each run that gives the least error,
// in float32 sums whose order is part of the result.
#include <algorithm>
#include <array>
#include <cmath>

#include "block/float_steps.hpp"
#include "block/gguf_encode.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t elements = 256;

// Half to even by the float32 adder; numbers of 2^22 and more wrap, as in ggml.
int nearest(float x) noexcept {
  const std::uint32_t bits = bits_of(x + 12582912.0f);
  return static_cast<int>(bits & 0x7fffff) - 0x400000;
}

// Inverse scales that the search tries, without importance and with it.
constexpr kernels::ScaleSearch own_search{-1.0f, 0.1f, 20};
constexpr kernels::ScaleSearch weighed_search{-0.9f, 0.05f, 36};

constexpr float smallest_run = kernels::SignedFit::least_size;

// Eight scales and minima of six bits in twelve bytes.
void put_six_bits(const std::array<std::uint8_t, 8>& scales, const std::array<std::uint8_t, 8>& minima,
                  std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::uint8_t>(scales[i] | (scales[i + 4] >> 4) << 6);
    bytes[i + 4] = static_cast<std::uint8_t>(minima[i] | (minima[i + 4] >> 4) << 6);
    bytes[i + 8] = static_cast<std::uint8_t>((scales[i + 4] & 15) | (minima[i + 4] & 15) << 4);
  }
}

std::uint8_t at_most_63(int x) noexcept { return std::min<std::uint8_t>(63, static_cast<std::uint8_t>(x)); }

constexpr std::size_t offset_runs = elements / kernels::OffsetFit::run;
using RunNumbers = std::array<float, offset_runs>;
using RunCodes = std::array<std::uint8_t, offset_runs>;

// Codes of six bits for the scales or minima of a block: a number is about the result times its code.
float fit_largest(const RunNumbers& x, RunCodes& codes) noexcept {
  float largest = 0.0f;
  for (const float number : x) largest = number > largest ? number : largest;
  const float inverse = largest > 0 ? 63.0f / largest : 0.0f;
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = at_most_63(nearest(inverse * x[i]));
  return largest / 63.0f;
}

// The same by least squares: the best of nine steps, then codes one after the other while the error falls.
float fit_weighed(const RunNumbers& x, const RunNumbers& weights, RunCodes& codes) noexcept {
  constexpr int most = 63;
  codes.fill(0);
  float largest = 0.0f;
  for (const float number : x) largest = number > largest ? number : largest;
  if (largest < smallest_run) return 0.0f;
  const auto error_of = [&](float inverse) {
    const float scale = 1.0f / inverse;
    float sum = 0.0f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float difference = x[i] - scale * static_cast<float>(std::min(most, nearest(inverse * x[i])));
      sum += weights[i] * difference * difference;
    }
    return sum;
  };
  float inverse = static_cast<float>(most) / largest;
  float best = error_of(inverse);
  for (int step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    const float tried = (0.1f * static_cast<float>(step) + static_cast<float>(most)) / largest;
    if (const float error = error_of(tried); error < best) best = error, inverse = tried;
  }
  float products = 0.0f, squares = 0.0f;
  const auto product = [&](std::size_t i, int code) { return weights[i] * x[i] * static_cast<float>(code); };
  const auto square = [&](std::size_t i, int code) {
    return weights[i] * static_cast<float>(code) * static_cast<float>(code);
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int code = std::min(most, nearest(inverse * x[i]));
    codes[i] = static_cast<std::uint8_t>(code);
    products += product(i, code);
    squares += square(i, code);
  }
  constexpr int rounds = 5;
  bool has_changed = true;
  for (int round = 0; round < rounds && has_changed; ++round) {
    has_changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      float other_products = products - product(i, codes[i]);
      float other_squares = squares - square(i, codes[i]);
      if (!(other_products > 0 && other_squares > 0)) continue;
      const int code = std::min(most, nearest(x[i] * other_squares / other_products));
      if (code == codes[i]) continue;
      other_products += product(i, code);
      other_squares += square(i, code);
      if (!(other_products * other_products * squares > products * products * other_squares)) continue;
      codes[i] = static_cast<std::uint8_t>(code);
      products = other_products;
      squares = other_squares;
      has_changed = true;
    }
  }
  return squares > 0.0f ? products / squares : 0.0f;
}

// The weights of a block's numbers: importance, more for larger numbers.
void set_weights(const float* x, const float* importance, float* weights) noexcept {
  float squares = 0.0f;
  for (std::size_t i = 0; i < elements; ++i) squares += x[i] * x[i];
  const float twice_mean = 2.0f * squares / static_cast<float>(elements);
  for (std::size_t i = 0; i < elements; ++i) weights[i] = importance[i] * std::sqrt(twice_mean + x[i] * x[i]);
}

// The codes of a run whose scale is stored: round((x + minimum) / scale), from `least` to `most`.
template <std::size_t size>
void set_codes(const float* x, float scale, float minimum, int least, int most, std::uint8_t* codes) noexcept {
  std::array<float, size> quotients;
  for (std::size_t i = 0; i < size; ++i) quotients[i] = (x[i] + minimum) / scale;
  for (std::size_t i = 0; i < size; ++i) {
    codes[i] = static_cast<std::uint8_t>(std::clamp(nearest(quotients[i]), least, most) - least);
  }
}

using BlockCodes = std::array<std::uint8_t, elements>;

// What the search found for a block. `weights`: sums over runs, null without importance.
struct FittedRuns {
  const RunNumbers& scales;
  const RunNumbers& minima;
  const RunNumbers* weights;
  BlockCodes& codes;
};

void put_q4_k(const float* x, const FittedRuns& runs, std::uint8_t* bytes) noexcept {
  constexpr std::size_t size = kernels::OffsetFit::run;
  RunCodes scales, minima;
  const auto fit = [&](const RunNumbers& numbers, RunCodes& made) {
    return runs.weights != nullptr ? fit_weighed(numbers, *runs.weights, made) : fit_largest(numbers, made);
  };
  const float scale_unit = fit(runs.scales, scales), minimum_unit = fit(runs.minima, minima);
  put_half(scale_unit, bytes);
  put_half(minimum_unit, bytes + 2);
  put_six_bits(scales, minima, bytes + 4);
  const float d = half_number(scale_unit), dmin = half_number(minimum_unit);
  for (std::size_t j = 0; j < offset_runs; ++j) {
    const float scale = d * static_cast<float>(scales[j]);
    const float minimum = dmin * static_cast<float>(minima[j]);
    // The codes of the search remain where the stored scale is 0.
    if (scale != 0.0f) {
      set_codes<size>(x + size * j, scale, minimum, 0, kernels::OffsetFit::most, runs.codes.data() + size * j);
    }
  }
  for (std::size_t j = 0; j < elements / 64; ++j) {
    const std::uint8_t* const low = runs.codes.data() + 64 * j;
    for (std::size_t i = 0; i < 32; ++i) bytes[16 + 32 * j + i] = static_cast<std::uint8_t>(low[i] | low[i + 32] << 4);
  }
}

constexpr std::size_t signed_runs = elements / kernels::SignedFit::run;

struct SignedRuns {
  BlockCodes codes;
  std::array<float, signed_runs> scales;
};

void put_q6_k(const float* x, SignedRuns& runs, std::uint8_t* bytes) noexcept {
  constexpr std::size_t size = kernels::SignedFit::run;
  constexpr int zero = kernels::SignedFit::zero;
  float largest = 0.0f, largest_size = 0.0f;
  for (const float scale : runs.scales) {
    if (magnitude(scale) > largest_size) largest_size = magnitude(scale), largest = scale;
  }
  std::fill_n(bytes, 210, std::uint8_t{0});
  if (largest_size < smallest_run) return;
  const float inverse_scale = -128.0f / largest;
  const float d = half_number(1.0f / inverse_scale);
  put_half(1.0f / inverse_scale, bytes + 208);
  for (std::size_t j = 0; j < signed_runs; ++j) {
    const auto integer = static_cast<std::int8_t>(std::min(127, nearest(inverse_scale * runs.scales[j])));
    bytes[192 + j] = static_cast<std::uint8_t>(integer);
    const float scale = d * static_cast<float>(integer);
    // x + -0 is x for every number.
    if (scale != 0.0f) set_codes<size>(x + size * j, scale, -0.0f, -zero, zero - 1, runs.codes.data() + size * j);
  }
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint8_t* const q = runs.codes.data() + 128 * half;
    for (std::size_t i = 0; i < 32; ++i) {
      bytes[64 * half + i] = static_cast<std::uint8_t>((q[i] & 15) | (q[i + 64] & 15) << 4);
      bytes[64 * half + 32 + i] = static_cast<std::uint8_t>((q[i + 32] & 15) | (q[i + 96] & 15) << 4);
      bytes[128 + 32 * half + i] =
          static_cast<std::uint8_t>(q[i] >> 4 | (q[i + 32] >> 4) << 2 | (q[i + 64] >> 4) << 4 | (q[i + 96] >> 4) << 6);
    }
  }
}

// Blocks whose runs are searched together: as many as fill the widest registers.
constexpr std::size_t together = 2;

}  // namespace

void encode_q4_k(const float* x, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept {
  const kernels::FitOffsetRunsFn fit = kernels::ops_of(active_target()).fit_offset_runs;
  const bool is_weighed = importance != nullptr;
  std::array<float, elements * together> weights;
  std::array<BlockCodes, together> codes;
  std::array<RunNumbers, together> scales, minima, sums;
  for (std::size_t done = 0; done < blocks; done += together) {
    const std::size_t n = std::min(together, blocks - done);
    const float* const numbers = x + done * elements;
    for (std::size_t i = 0; is_weighed && i < n; ++i) {
      set_weights(numbers + i * elements, importance + (done + i) * elements, weights.data() + i * elements);
    }
    fit(numbers, is_weighed ? weights.data() : nullptr, n * offset_runs, is_weighed ? weighed_search : own_search,
        {scales[0].data(), minima[0].data(), is_weighed ? sums[0].data() : nullptr, codes[0].data()});
    for (std::size_t i = 0; i < n; ++i) {
      put_q4_k(numbers + i * elements, {scales[i], minima[i], is_weighed ? &sums[i] : nullptr, codes[i]},
               bytes + (done + i) * 144);
    }
  }
}

void encode_q6_k(const float* x, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept {
  const kernels::FitSignedRunsFn fit = kernels::ops_of(active_target()).fit_signed_runs;
  for (std::size_t i = 0; i < blocks; ++i, x += elements, bytes += 210) {
    SignedRuns runs;
    fit(x, importance == nullptr ? nullptr : importance + i * elements, signed_runs,
        {runs.scales.data(), runs.codes.data()});
    put_q6_k(x, runs, bytes);
  }
}

}  // namespace tensorcast::block
