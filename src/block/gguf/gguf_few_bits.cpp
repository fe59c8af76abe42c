// SPDX-License-Identifier: Apache-2.0
// Q2_K, Q3_K, IQ4_NL and IQ4_XS, with an importance matrix or without: the scale of each run is searched.
#include <algorithm>
#include <array>
#include <span>

#include "block/gguf/gguf_encode.hpp"
#include "block/gguf/gguf_search.hpp"
#include "block/recipe/float_steps.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t short_run = 16, short_runs = k_elements / short_run;
using ShortRuns = std::array<float, short_runs>;
using ShortCodes = std::array<std::uint8_t, short_runs>;

// Codes of four bits for scales or minima: a number is about the result times its code.
float fit_fifteenths(const ShortRuns& x, ShortCodes& codes) noexcept {
  float largest = 0.0f;
  for (const float number : x) largest = number > largest ? number : largest;
  codes.fill(0);
  if (!(largest > 0)) return 0.0f;
  const float inverse = 15.0f / largest;
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<std::uint8_t>(nearest_code(inverse * x[i]));
  return largest / 15.0f;
}

// 16 scales of six bits: four bits of each in eight bytes, then two bits in four.
void put_q3_k_scales(const ShortCodes& codes, std::uint8_t* bytes) noexcept {
  std::fill_n(bytes, 12, std::uint8_t{0});
  for (std::size_t j = 0; j < short_runs; ++j) {
    bytes[j % 8] = static_cast<std::uint8_t>(bytes[j % 8] | (codes[j] & 15) << (j / 8 * 4));
    bytes[8 + j % 4] = static_cast<std::uint8_t>(bytes[8 + j % 4] | codes[j] >> 4 << (j / 4 * 2));
  }
}

constexpr std::array<int, 16> iq4_table = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr std::size_t iq4_run = 32;

// The index of the table's number that is nearest to x, of two equally near ones the larger.
std::size_t nearest_iq4(float x) noexcept {
  const auto number = [](std::size_t i) { return static_cast<float>(iq4_table[i]); };
  if (x <= number(0)) return 0;
  if (x >= number(15)) return 15;
  std::size_t low = 0, high = 15;
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (x < number(middle) ? high : low) = middle;
  }
  return x - number(low) < number(high) - x ? low : high;
}

// The scale of a run by least squares: the best of those that give its largest number a number near the table's first.
float fit_iq4(std::span<const float> x, const float* weights) noexcept {
  constexpr int steps = 7;
  const float largest = first_of_largest(x);
  if (magnitude(largest) < kernels::SignedFit::least_size) return 0.0f;
  float products = 0.0f, squares = 0.0f;
  const auto sum_up = [&](float inverse) {
    products = squares = 0.0f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto number = static_cast<float>(iq4_table[nearest_iq4(inverse * x[i])]);
      products += weights[i] * number * x[i];
      squares += weights[i] * number * number;
    }
  };
  sum_up(1.0f / (-largest / static_cast<float>(iq4_table[0])));
  float scale = squares > 0.0f ? products / squares : 0.0f;
  float best = scale * products;
  for (int step = -steps; step <= steps; ++step) {
    sum_up(static_cast<float>(step + iq4_table[0]) / largest);
    if (!(squares > 0.0f && products * products > best * squares)) continue;
    scale = products / squares;
    best = scale * products;
  }
  return scale;
}

// Blocks of `runs` runs: their scales, and a function that gives the nibbles of one whose stored scale is known.
template <std::size_t runs>
std::array<float, runs> iq4_scales(const float* x, const float* importance) noexcept {
  constexpr std::size_t size = runs * iq4_run;
  std::array<float, runs> scales;
  std::array<float, iq4_run> weights;
  float mean = 0.0f;
  if (importance != nullptr) {
    for (std::size_t i = 0; i < size; ++i) mean += x[i] * x[i];
    mean *= 2.0f / static_cast<float>(size);
  }
  for (std::size_t j = 0; j < runs; ++j) {
    const std::span<const float> run(x + iq4_run * j, iq4_run);
    if (importance != nullptr) {
      set_weights(run, importance + iq4_run * j, mean, weights.data());
    } else {
      std::transform(run.begin(), run.end(), weights.begin(), [](float number) { return number * number; });
    }
    scales[j] = fit_iq4(run, weights.data());
  }
  return scales;
}

void put_iq4_nibbles(const float* x, float scale, std::uint8_t* bytes) noexcept {
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  for (std::size_t i = 0; i < iq4_run / 2; ++i) {
    bytes[i] = static_cast<std::uint8_t>(nearest_iq4(inverse * x[i]) | nearest_iq4(inverse * x[i + iq4_run / 2]) << 4);
  }
}

}  // namespace

void encode_q2_k(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  constexpr int most = 3;
  std::array<std::uint8_t, k_elements> codes;
  std::array<float, short_run> weights;
  ShortRuns scales, minima, sums;
  const float mean = importance == nullptr ? 0.0f : mean_of_squares({x, k_elements}, 1.0f);
  for (std::size_t j = 0; j < short_runs; ++j) {
    const std::span<const float> run(x + short_run * j, short_run);
    if (importance != nullptr) {
      set_weights(run, importance + short_run * j, mean, weights.data());
      sums[j] = sum_of(weights);
    } else {
      std::transform(run.begin(), run.end(), weights.begin(), magnitude);
    }
    const auto [scale, minimum] =
        fit_offset(run, weights.data(), most, importance != nullptr ? weighed_search : short_search,
                   importance == nullptr, codes.data() + short_run * j);
    scales[j] = scale;
    minima[j] = minimum;
  }
  ShortCodes scale_codes, minimum_codes;
  const auto fit = [&](const ShortRuns& numbers, ShortCodes& made) {
    return importance == nullptr ? fit_fifteenths(numbers, made) : fit_positive(numbers, sums.data(), 15, made.data());
  };
  const float scale_unit = fit(scales, scale_codes), minimum_unit = fit(minima, minimum_codes);
  put_half(scale_unit, bytes + 80);
  put_half(minimum_unit, bytes + 82);
  const float d = half_number(scale_unit), dmin = half_number(minimum_unit);
  for (std::size_t j = 0; j < short_runs; ++j) {
    bytes[j] = static_cast<std::uint8_t>(scale_codes[j] | minimum_codes[j] << 4);
    const float scale = d * static_cast<float>(bytes[j] & 15), minimum = dmin * static_cast<float>(bytes[j] >> 4);
    // The codes of the search remain where the stored scale is 0.
    if (scale != 0.0f) set_codes<short_run>(x + short_run * j, scale, minimum, 0, most, codes.data() + short_run * j);
  }
  put_two_bits(codes.data(), bytes + 16);
}

void encode_q3_k(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  constexpr int zero = 4, scale_zero = 32;
  std::array<std::uint8_t, k_elements> codes;
  std::array<float, short_run> weights;
  ShortRuns scales, sums;
  const float mean = importance == nullptr ? 0.0f : mean_of_squares({x, k_elements}, 2.0f);
  for (std::size_t j = 0; j < short_runs; ++j) {
    const std::span<const float> run(x + short_run * j, short_run);
    std::uint8_t* const of_run = codes.data() + short_run * j;
    if (importance == nullptr) {
      scales[j] = fit_signed_codes(run, zero, of_run);
      continue;
    }
    set_weights(run, importance + short_run * j, mean, weights.data());
    sums[j] = sum_of(weights);
    scales[j] = fit_signed(run, weights.data(), zero, of_run);
  }
  ShortCodes scale_codes{};
  float unit = 0.0f;
  if (importance != nullptr) {
    unit = fit_signed(scales, sums.data(), scale_zero, scale_codes.data());
  } else if (const float largest = first_of_largest(scales); largest != 0.0f) {
    const float inverse = static_cast<float>(-scale_zero) / largest;
    for (std::size_t j = 0; j < short_runs; ++j) {
      const int code = static_cast<std::int8_t>(nearest_code(inverse * scales[j]));
      scale_codes[j] = static_cast<std::uint8_t>(std::clamp(code, -scale_zero, scale_zero - 1) + scale_zero);
    }
    unit = 1.0f / inverse;
  }
  put_q3_k_scales(scale_codes, bytes + 96);
  put_half(unit, bytes + 108);
  const float d = half_number(unit);
  for (std::size_t j = 0; j < short_runs; ++j) {
    const float scale = d * static_cast<float>(scale_codes[j] - scale_zero);
    // x + -0 is x for every number.
    if (scale != 0.0f) {
      set_codes<short_run>(x + short_run * j, scale, -0.0f, -zero, zero - 1, codes.data() + short_run * j);
    }
  }
  put_one_bit(codes.data(), 2, bytes);
  put_two_bits(codes.data(), bytes + 32);
}

void encode_iq4_nl(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  const float scale = iq4_scales<1>(x, importance)[0];
  put_half(scale, bytes);
  put_iq4_nibbles(x, scale, bytes + 2);
}

void encode_iq4_xs(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  constexpr std::size_t runs = k_elements / iq4_run;
  constexpr int zero = 32;
  const std::array<float, runs> scales = iq4_scales<runs>(x, importance);
  const float unit = -first_of_largest(scales) / static_cast<float>(zero);
  const float inverse = unit != 0.0f ? 1.0f / unit : 0.0f;
  put_half(unit, bytes);
  std::fill_n(bytes + 2, 6, std::uint8_t{0});
  for (std::size_t j = 0; j < runs; ++j) {
    const int code = std::clamp(nearest_code(inverse * scales[j]), -zero, zero - 1);
    put_iq4_nibbles(x + iq4_run * j, unit * static_cast<float>(code), bytes + 8 + 16 * j);
    const auto six_bits = static_cast<unsigned>(code + zero);
    std::uint8_t& high = bytes[2 + j / 4];
    std::uint8_t& low = bytes[4 + j / 2];
    high = static_cast<std::uint8_t>(high | six_bits >> 4 << (j % 4 * 2));
    low = static_cast<std::uint8_t>(low | (six_bits & 15) << (j % 2 * 4));
  }
}

}  // namespace tensorcast::block
