// Q4_K and Q6_K, with an importance matrix or without: a search for the scale of each run that gives the least error,
// in float32 sums whose order is part of the result.
#include <algorithm>
#include <array>
#include <cmath>
// SPDX-License-Identifier: Apache-2.0
#include "block/float_steps.hpp"
#include "block/gguf_encode.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t elements = 256;

// Half to even by the float32 adder; numbers of 2^22 and more wrap, as in ggml.
int nearest(float x) noexcept {
  const std::uint32_t bits = bits_of(x + 12582912.0f);
  return static_cast<int>(bits & 0x7fffff) - 0x400000;
}

// A run of Q4_K: x is about scale * code - minimum. The codes of the search remain where the stored scale is 0.
struct OffsetRun {
  static constexpr std::size_t size = 32;
  static constexpr int most = 15;

  float scale = 0.0f;
  float minimum = 0.0f;
};

// Weighted sums over a run, each in the order of its elements.
struct OffsetSums {
  float code = 0.0f, code_squared = 0.0f, product = 0.0f;
};

using RunWeights = std::array<float, OffsetRun::size>;

RunWeights own_weights(const float* x) noexcept {
  RunWeights weights;
  float squares = 0.0f;
  for (std::size_t i = 0; i < OffsetRun::size; ++i) squares += x[i] * x[i];
  const float average = std::sqrt(squares / static_cast<float>(OffsetRun::size));
  for (std::size_t i = 0; i < OffsetRun::size; ++i) weights[i] = average + magnitude(x[i]);
  return weights;
}

// Inverse scales that the search tries: those of so many codes more or fewer.
struct ScaleSearch {
  float first, step;
  int steps;
};
constexpr ScaleSearch own_search{-1.0f, 0.1f, 20};
constexpr ScaleSearch weighed_search{-0.9f, 0.05f, 36};

OffsetRun fit_offset_run(const float* x, const RunWeights& weights, const ScaleSearch& search,
                         std::uint8_t* found) noexcept {
  constexpr std::size_t n = OffsetRun::size;
  constexpr auto most = static_cast<float>(OffsetRun::most);
  float low = x[0], high = x[0];
  float weight_sum = weights[0];
  float number_sum = weight_sum * x[0];
  for (std::size_t i = 1; i < n; ++i) {
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
    weight_sum += weights[i];
    number_sum += weights[i] * x[i];
  }
  low = low > 0 ? 0 : low;
  std::fill_n(found, n, std::uint8_t{0});
  if (high == low) return {.scale = 0.0f, .minimum = -low};

  std::array<float, n> codes;
  const auto set_codes = [&](float inverse_scale) {
    for (std::size_t i = 0; i < n; ++i) {
      codes[i] = static_cast<float>(std::clamp(nearest(inverse_scale * (x[i] - low)), 0, OffsetRun::most));
    }
  };
  const auto keep_codes = [&] {
    for (std::size_t i = 0; i < n; ++i) found[i] = static_cast<std::uint8_t>(codes[i]);
  };
  const auto error_of = [&](float scale, float offset) {
    float sum = 0.0f;
    for (std::size_t i = 0; i < n; ++i) {
      const float difference = scale * codes[i] + offset - x[i];
      sum += weights[i] * (difference * difference);
    }
    return sum;
  };
  float inverse_scale = most / (high - low);
  float scale = 1.0f / inverse_scale;
  set_codes(inverse_scale);
  keep_codes();
  float best = error_of(scale, low);
  for (int step = 0; step <= search.steps; ++step) {
    inverse_scale = (search.first + search.step * static_cast<float>(step) + most) / (high - low);
    set_codes(inverse_scale);
    OffsetSums sums;
    for (std::size_t i = 0; i < n; ++i) {
      const float weighted = weights[i] * codes[i];
      sums.code += weighted;
      sums.code_squared += weighted * codes[i];
      sums.product += weighted * x[i];
    }
    const float determinant = weight_sum * sums.code_squared - sums.code * sums.code;
    if (!(determinant > 0)) continue;
    float new_scale = (weight_sum * sums.product - number_sum * sums.code) / determinant;
    float new_low = (sums.code_squared * number_sum - sums.code * sums.product) / determinant;
    if (new_low > 0) {
      new_low = 0;
      new_scale = sums.product / sums.code_squared;
    }
    const float error = error_of(new_scale, new_low);
    if (error < best) {
      keep_codes();
      best = error;
      scale = new_scale;
      low = new_low;  // and the next step's codes are counted from here
    }
  }
  return {.scale = scale, .minimum = -low};
}

// A run of Q6_K: x is about scale * (code - 32). As above, the codes remain where the stored scale is 0.
constexpr std::size_t signed_size = 16;
constexpr int signed_most = 32;
constexpr float smallest_run = 1e-15f;

float fit_signed_run(const float* x, const float* importance, std::uint8_t* found) noexcept {
  std::fill_n(found, signed_size, std::uint8_t{0});
  float largest = 0.0f, size = 0.0f;
  for (std::size_t i = 0; i < signed_size; ++i) {
    if (magnitude(x[i]) > size) size = magnitude(x[i]), largest = x[i];
  }
  if (size < smallest_run) return 0.0f;
  std::array<float, signed_size> codes;
  const auto keep_codes = [&] {
    for (std::size_t i = 0; i < signed_size; ++i) {
      found[i] = static_cast<std::uint8_t>(static_cast<int>(codes[i]) + signed_most);
    }
  };
  float products = 0.0f, squares = 0.0f;
  const auto sum_up = [&](float inverse_scale) {
    products = squares = 0.0f;
    for (std::size_t i = 0; i < signed_size; ++i) {
      codes[i] = static_cast<float>(std::clamp(nearest(inverse_scale * x[i]), -signed_most, signed_most - 1));
      const float weight = importance != nullptr ? importance[i] : x[i] * x[i];
      products += weight * x[i] * codes[i];
      squares += weight * codes[i] * codes[i];
    }
  };
  sum_up(static_cast<float>(-signed_most) / largest);
  keep_codes();
  float scale = squares != 0.0f ? products / squares : 0.0f;
  float best = scale * products;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    sum_up(-(static_cast<float>(signed_most) + 0.1f * static_cast<float>(step)) / largest);
    if (squares > 0 && products * products > best * squares) {
      keep_codes();
      scale = products / squares;
      best = scale * products;
    }
  }
  return scale;
}

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

constexpr std::size_t offset_runs = elements / OffsetRun::size;
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

// The weights of a block's runs: importance, more for larger numbers.
std::array<RunWeights, offset_runs> weights_of(const float* x, const float* importance) noexcept {
  float squares = 0.0f;
  for (std::size_t i = 0; i < elements; ++i) squares += x[i] * x[i];
  const float twice_mean = 2.0f * squares / static_cast<float>(elements);
  std::array<RunWeights, offset_runs> weights;
  for (std::size_t i = 0; i < elements; ++i) {
    weights[i / OffsetRun::size][i % OffsetRun::size] = importance[i] * std::sqrt(twice_mean + x[i] * x[i]);
  }
  return weights;
}

}  // namespace

void encode_q4_k(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  constexpr std::size_t runs = offset_runs;
  std::array<RunWeights, runs> weights;
  if (importance != nullptr) weights = weights_of(x, importance);
  std::array<std::uint8_t, elements> codes;
  RunNumbers fitted_scales, fitted_minima, sums{};
  for (std::size_t j = 0; j < runs; ++j) {
    const float* const run = x + OffsetRun::size * j;
    if (importance == nullptr) weights[j] = own_weights(run);
    for (const float weight : weights[j]) sums[j] += weight;
    const OffsetRun fitted = fit_offset_run(run, weights[j], importance == nullptr ? own_search : weighed_search,
                                            codes.data() + OffsetRun::size * j);
    fitted_scales[j] = fitted.scale;
    fitted_minima[j] = fitted.minimum;
  }
  RunCodes scales, minima;
  const auto fit = [&](const RunNumbers& numbers, RunCodes& made) {
    return importance == nullptr ? fit_largest(numbers, made) : fit_weighed(numbers, sums, made);
  };
  const float scale_unit = fit(fitted_scales, scales), minimum_unit = fit(fitted_minima, minima);
  put_half(scale_unit, bytes);
  put_half(minimum_unit, bytes + 2);
  put_six_bits(scales, minima, bytes + 4);
  const float d = half_number(scale_unit), dmin = half_number(minimum_unit);
  for (std::size_t j = 0; j < runs; ++j) {
    const float scale = d * static_cast<float>(scales[j]);
    const float minimum = dmin * static_cast<float>(minima[j]);
    for (std::size_t i = OffsetRun::size * j; i < OffsetRun::size * (j + 1); ++i) {
      if (scale != 0.0f) {
        codes[i] = static_cast<std::uint8_t>(std::clamp(nearest((x[i] + minimum) / scale), 0, OffsetRun::most));
      }
    }
  }
  for (std::size_t j = 0; j < elements / 64; ++j) {
    const std::uint8_t* const low = codes.data() + 64 * j;
    for (std::size_t i = 0; i < 32; ++i) bytes[16 + 32 * j + i] = static_cast<std::uint8_t>(low[i] | low[i + 32] << 4);
  }
}

void encode_q6_k(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  constexpr std::size_t runs = elements / signed_size;
  std::array<float, runs> fitted;
  std::array<std::uint8_t, elements> codes;
  float largest = 0.0f, largest_size = 0.0f;
  for (std::size_t j = 0; j < runs; ++j) {
    fitted[j] = fit_signed_run(x + signed_size * j, importance == nullptr ? nullptr : importance + signed_size * j,
                               codes.data() + signed_size * j);
    if (magnitude(fitted[j]) > largest_size) largest_size = magnitude(fitted[j]), largest = fitted[j];
  }
  std::fill_n(bytes, 210, std::uint8_t{0});
  if (largest_size < smallest_run) return;
  const float inverse_scale = -128.0f / largest;
  const float d = half_number(1.0f / inverse_scale);
  put_half(1.0f / inverse_scale, bytes + 208);
  for (std::size_t j = 0; j < runs; ++j) {
    const auto integer = static_cast<std::int8_t>(std::min(127, nearest(inverse_scale * fitted[j])));
    bytes[192 + j] = static_cast<std::uint8_t>(integer);
    const float scale = d * static_cast<float>(integer);
    for (std::size_t i = signed_size * j; i < signed_size * (j + 1); ++i) {
      if (scale == 0.0f) continue;
      codes[i] =
          static_cast<std::uint8_t>(std::clamp(nearest(x[i] / scale), -signed_most, signed_most - 1) + signed_most);
    }
  }
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint8_t* const q = codes.data() + 128 * half;
    for (std::size_t i = 0; i < 32; ++i) {
      bytes[64 * half + i] = static_cast<std::uint8_t>((q[i] & 15) | (q[i + 64] & 15) << 4);
      bytes[64 * half + 32 + i] = static_cast<std::uint8_t>((q[i + 32] & 15) | (q[i + 96] & 15) << 4);
      bytes[128 + 32 * half + i] =
          static_cast<std::uint8_t>(q[i] >> 4 | (q[i + 32] >> 4) << 2 | (q[i + 64] >> 4) << 4 | (q[i + 96] >> 4) << 6);
    }
  }
}

}  // namespace tensorcast::block
