// SPDX-License-Identifier: Apache-2.0
#include "block/gguf/gguf_search.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

namespace tensorcast::block {
namespace {

constexpr float smallest_run_size = kernels::SignedFit::least_size;
constexpr std::size_t most_of_run = 32;

int clamped_code(float x, int least, int most) noexcept { return std::clamp(nearest_code(x), least, most); }

// Rounds inverse * x, then changes codes one by one as long as that fits better. Returns the scale.
template <class Code>
float fit_one_by_one(std::span<const float> x, const float* weights, float inverse, int least, int most,
                     Code* codes) noexcept {
  float products = 0.0f, squares = 0.0f;
  const auto product = [&](std::size_t i, int code) { return weights[i] * x[i] * static_cast<float>(code); };
  const auto square = [&](std::size_t i, int code) {
    return weights[i] * static_cast<float>(code) * static_cast<float>(code);
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int code = clamped_code(inverse * x[i], least, most);
    codes[i] = static_cast<Code>(code);
    products += product(i, code);
    squares += square(i, code);
  }
  constexpr int rounds = 5;
  bool has_changed = true;
  for (int round = 0; round < rounds && has_changed; ++round) {
    has_changed = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      float other_products = products - product(i, codes[i]), other_squares = squares - square(i, codes[i]);
      // ggml asks for the squares here if codes have no sign, else when the new code is among them.
      if (!(other_products > 0 && (std::is_signed_v<Code> || other_squares > 0))) continue;
      const int code = clamped_code(x[i] * other_squares / other_products, least, most);
      if (code == codes[i]) continue;
      other_products += product(i, code);
      other_squares += square(i, code);
      if (!(other_squares > 0 && other_products * other_products * squares > products * products * other_squares)) {
        continue;
      }
      codes[i] = static_cast<Code>(code);
      products = other_products;
      squares = other_squares;
      has_changed = true;
    }
  }
  return squares > 0.0f ? products / squares : 0.0f;
}

}  // namespace

void set_weights(std::span<const float> x, const float* importance, float mean, float* weights) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) weights[i] = importance[i] * std::sqrt(mean + x[i] * x[i]);
}

float mean_of_squares(std::span<const float> x, float factor) noexcept {
  float squares = 0.0f;
  for (const float number : x) squares += number * number;
  return factor * squares / static_cast<float>(x.size());
}

float sum_of(std::span<const float> x) noexcept {
  float sum = 0.0f;
  for (const float number : x) sum += number;
  return sum;
}

float fit_positive(std::span<const float> x, const float* weights, int most, std::uint8_t* codes) noexcept {
  std::fill_n(codes, x.size(), std::uint8_t{0});
  float largest = 0.0f;
  for (const float number : x) largest = number > largest ? number : largest;
  if (largest < smallest_run_size) return 0.0f;
  const auto error_of = [&](float inverse) {
    const float scale = 1.0f / inverse;
    float sum = 0.0f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float difference = x[i] - scale * static_cast<float>(std::min(most, nearest_code(inverse * x[i])));
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
  return fit_one_by_one(x, weights, inverse, std::numeric_limits<int>::min(), most, codes);
}

OffsetScale fit_offset(std::span<const float> x, const float* weights, int most, const kernels::ScaleSearch& search,
                       bool absolute, std::uint8_t* codes) noexcept {
  float low = x[0], high = x[0], weight_sum = weights[0], number_sum = weights[0] * x[0];
  for (std::size_t i = 1; i < x.size(); ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
    weight_sum += weights[i];
    number_sum += weights[i] * x[i];
  }
  if (low > 0) low = 0;
  std::fill_n(codes, x.size(), std::uint8_t{0});
  if (high == low) return {0.0f, -low};
  std::array<std::uint8_t, most_of_run> tried;
  const auto error_of = [&](const std::uint8_t* q, float scale, float offset) {
    float sum = 0.0f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float difference = scale * static_cast<float>(q[i]) + offset - x[i];
      sum += weights[i] * (absolute ? magnitude(difference) : difference * difference);
    }
    return sum;
  };
  float inverse = static_cast<float>(most) / (high - low);
  float scale = 1.0f / inverse;
  for (std::size_t i = 0; i < x.size(); ++i) {
    codes[i] = static_cast<std::uint8_t>(clamped_code(inverse * (x[i] - low), 0, most));
  }
  float best = error_of(codes, scale, low);
  for (int step = 0; step <= search.steps; ++step) {
    // Later steps count from the offset of the best one.
    inverse = (search.first + search.step * static_cast<float>(step) + static_cast<float>(most)) / (high - low);
    float code_sum = 0.0f, squares = 0.0f, products = 0.0f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int code = clamped_code(inverse * (x[i] - low), 0, most);
      tried[i] = static_cast<std::uint8_t>(code);
      const float weighted = weights[i] * static_cast<float>(code);
      code_sum += weighted;
      squares += weighted * static_cast<float>(code);
      products += weighted * x[i];
    }
    const float determinant = weight_sum * squares - code_sum * code_sum;
    if (!(determinant > 0)) continue;
    float new_scale = (weight_sum * products - number_sum * code_sum) / determinant;
    float new_low = (squares * number_sum - code_sum * products) / determinant;
    if (new_low > 0) new_low = 0.0f, new_scale = products / squares;
    const float error = error_of(tried.data(), new_scale, new_low);
    if (!(error < best)) continue;
    std::copy_n(tried.data(), x.size(), codes);
    best = error;
    scale = new_scale;
    low = new_low;
  }
  return {scale, -low};
}

float fit_signed(std::span<const float> x, const float* weights, int zero, std::uint8_t* codes) noexcept {
  const float largest = first_of_largest(x);
  std::fill_n(codes, x.size(), std::uint8_t{0});
  if (magnitude(largest) < smallest_run_size) return 0.0f;
  const auto code_at = [&](float inverse, std::size_t i) { return clamped_code(inverse * x[i], -zero, zero - 1); };
  float products = 0.0f, squares = 0.0f;
  const auto sum_up = [&](float inverse) {
    products = squares = 0.0f;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto code = static_cast<float>(code_at(inverse, i));
      products += weights[i] * x[i] * code;
      squares += weights[i] * code * code;
    }
  };
  const auto keep = [&](float inverse) {
    for (std::size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<std::uint8_t>(code_at(inverse, i) + zero);
  };
  const auto most = static_cast<float>(zero);
  sum_up(-most / largest);
  keep(-most / largest);
  float scale = squares != 0.0f ? products / squares : 0.0f;
  float best = scale * products;
  for (int step = -9; step <= 9; ++step) {
    if (step == 0) continue;
    const float inverse = -(most + 0.1f * static_cast<float>(step)) / largest;
    sum_up(inverse);
    if (!(squares > 0 && products * products > best * squares)) continue;
    keep(inverse);
    scale = products / squares;
    best = scale * products;
  }
  return scale;
}

float fit_signed_codes(std::span<const float> x, int zero, std::uint8_t* codes) noexcept {
  const float largest = first_of_largest(x);
  std::fill_n(codes, x.size(), std::uint8_t{0});
  if (magnitude(largest) < smallest_run_size) return 0.0f;
  const float inverse = static_cast<float>(-zero) / largest;
  std::array<float, most_of_run> weights;
  for (std::size_t i = 0; i < x.size(); ++i) weights[i] = x[i] * x[i];
  std::array<int, most_of_run> made;
  const float scale = fit_one_by_one(x, weights.data(), inverse, -zero, zero - 1, made.data());
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<std::uint8_t>(made[i] + zero);
  return scale;
}

}  // namespace tensorcast::block
