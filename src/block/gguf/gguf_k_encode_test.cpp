// SPDX-License-Identifier: Apache-2.0
// Every target's searches of Q4_K, Q5_K and Q6_K are those of the definition: one run after the other, in scalar
// float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "block/gguf/gguf_encode.hpp"
#include "block/recipe/float_steps.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

// --- The definition

// Half to even by the float32 adder; numbers of 2^22 and more wrap, as in ggml.
int nearest(float x) noexcept {
  const std::uint32_t bits = bits_of(x + 12582912.0f);
  return static_cast<int>(bits & 0x7fffff) - 0x400000;
}

// A run of Q4_K or Q5_K: x is about scale * code - minimum. The codes of the search remain where the stored scale is 0.
struct OffsetRun {
  static constexpr std::size_t size = 32;
  float scale = 0.0f;
  float minimum = 0.0f;
};

// Weighted sums over a run, each in the order of its elements.
struct OffsetSums {
  float code = 0.0f, code_squared = 0.0f, product = 0.0f;
};

using RunWeights = std::array<float, OffsetRun::size>;
using kernels::ScaleSearch;

RunWeights own_weights(const float* x) noexcept {
  RunWeights weights;
  float squares = 0.0f;
  for (std::size_t i = 0; i < OffsetRun::size; ++i) squares += x[i] * x[i];
  const float average = std::sqrt(squares / static_cast<float>(OffsetRun::size));
  for (std::size_t i = 0; i < OffsetRun::size; ++i) weights[i] = average + magnitude(x[i]);
  return weights;
}

OffsetRun fit_offset_run(const float* x, const RunWeights& weights, const ScaleSearch& search, int most_code,
                         std::uint8_t* found) noexcept {
  constexpr std::size_t n = OffsetRun::size;
  const auto most = static_cast<float>(most_code);
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
      codes[i] = static_cast<float>(std::clamp(nearest(inverse_scale * (x[i] - low)), 0, most_code));
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

// --- Runs: of the usual size, constant, zero, tiny, huge, with one outlier, infinite, NaN; or usual and zero ones
// alone

float number_of(std::size_t run, std::size_t i, std::mt19937& random) {
  const float plain = static_cast<float>(random() % 20001) / 10000.0f - 1.0f;
  switch (run % 9) {
    case 1:
      return 0.25f;
    case 2:
      return 0.0f;
    case 3:
      return plain * 1e-16f;
    case 4:
      return plain * 1e37f;
    case 5:
      return i == 7 ? 100.0f : plain;
    case 6:
      return magnitude(plain) + 1.0f;
    case 7:
      return i == 3 && run % 2 == 0 ? std::numeric_limits<float>::infinity() : -magnitude(plain);
    case 8:
      return i == 5 && run % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                                    : float_of(static_cast<std::uint32_t>(random()));
    default:
      return plain;
  }
}

struct Tried {
  std::vector<float> numbers, importance;
};
Tried tried(std::size_t runs, std::size_t size, unsigned seed, bool usual = false) {
  std::mt19937 random(seed);
  Tried made{std::vector<float>(runs * size), std::vector<float>(runs * size)};
  for (std::size_t i = 0; i < runs * size; ++i) {
    const std::size_t run = i / size;
    made.numbers[i] = number_of(usual ? run % 7 / 6 * 2 : run, i % size, random);
  }
  for (float& weight : made.importance)
    weight = random() % 5 == 0 ? 0.0f : static_cast<float>(random() % 1000) / 100.0f;
  return made;
}

bool same(float a, float b) { return bits_of(a) == bits_of(b) || (is_nan(a) && is_nan(b)); }

constexpr ScaleSearch without_importance{-1.0f, 0.1f, 20}, with_importance{-0.9f, 0.05f, 36};

void expect_offset_runs_as_defined(const Tried& given, std::size_t runs, bool is_weighed, int most, Target target) {
  constexpr std::size_t size = kernels::OffsetFit::run;
  const float* const importance = is_weighed ? given.importance.data() : nullptr;
  const ScaleSearch& search = is_weighed ? with_importance : without_importance;
  const kernels::FitOffsetRunsFn fit = kernels::ops_of(target).fit_offset_runs;
  std::vector<float> scales(runs), minima(runs), sums(runs), again(runs);
  std::vector<std::uint8_t> codes(runs * size), defined(size);
  fit(given.numbers.data(), importance, runs, search, {scales.data(), minima.data(), sums.data(), codes.data(), most});
  for (std::size_t run = 0; run < runs; ++run) {
    const float* const x = given.numbers.data() + run * size;
    RunWeights weights = own_weights(x);
    if (is_weighed) std::copy_n(importance + run * size, size, weights.begin());
    const OffsetRun right = fit_offset_run(x, weights, search, most, defined.data());
    float sum = 0.0f;
    for (const float weight : weights) sum += weight;
    ASSERT_TRUE(same(scales[run], right.scale)) << name(target) << ' ' << run;
    ASSERT_TRUE(same(minima[run], right.minimum)) << name(target) << ' ' << run;
    ASSERT_TRUE(same(sums[run], sum)) << name(target) << ' ' << run;
    ASSERT_TRUE(std::equal(defined.begin(), defined.end(), codes.begin() + static_cast<std::ptrdiff_t>(run * size)))
        << name(target) << ' ' << run;
  }
  fit(given.numbers.data(), importance, runs, search, {again.data(), minima.data(), nullptr, nullptr, most});
  for (std::size_t run = 0; run < runs; ++run) ASSERT_TRUE(same(scales[run], again[run])) << name(target) << ' ' << run;
}

TEST(FitRuns, EveryTargetSearchesOffsetRunsAsDefined) {
  constexpr std::size_t size = kernels::OffsetFit::run;
  for (const std::size_t runs : {std::size_t{1}, std::size_t{8}, std::size_t{61}, std::size_t{360}}) {
    for (const bool is_usual : {false, true}) {
      const Tried given = tried(runs, size, static_cast<unsigned>(runs), is_usual);
      for (const Target target : supported_targets()) {
        for (const bool is_weighed : {false, true}) {
          for (const int most : {15, 31}) {  // of Q4_K, of Q5_K
            expect_offset_runs_as_defined(given, runs, is_weighed, most, target);
          }
        }
      }
    }
  }
}

// Numbers, scales and minima of all sizes; runs with scale 0 keep their codes.
TEST(FitRuns, EveryTargetSetsOffsetCodesAsDefined) {
  constexpr std::size_t size = kernels::OffsetFit::run;
  for (const std::size_t runs : {std::size_t{1}, std::size_t{8}, std::size_t{61}}) {
    const Tried given = tried(runs, size, 5), parameters = tried(2 * runs, 1, 6);
    std::vector<float> scales(runs), minima(runs);
    for (std::size_t run = 0; run < runs; ++run) {
      scales[run] = parameters.numbers[run], minima[run] = parameters.numbers[runs + run];
    }
    for (const int most : {15, 31}) {
      for (const Target target : supported_targets()) {
        std::vector<std::uint8_t> codes(runs * size, 77);
        kernels::ops_of(target).set_offset_codes(given.numbers.data(), runs,
                                                 {scales.data(), minima.data(), nullptr, codes.data(), most});
        for (std::size_t i = 0; i < codes.size(); ++i) {
          const float quotient = (given.numbers[i] + minima[i / size]) / scales[i / size];
          const int defined = scales[i / size] == 0.0f ? 77 : std::clamp(nearest(quotient), 0, most);
          ASSERT_EQ(codes[i], defined) << name(target) << ' ' << i;
        }
      }
    }
  }
}

// A run beside far larger ones: its stored scale is 0, and its codes are those of the search, as ggml writes them.
TEST(FitRuns, CodesOfTheSearchRemainWhereTheStoredScaleIsZero) {
  constexpr std::size_t size = kernels::OffsetFit::run, blocks = 5;
  std::vector<float> numbers(256 * blocks);
  std::mt19937 random(3);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const float plain = static_cast<float>(random() % 20001) / 10000.0f - 1.0f;
    numbers[i] = i / 256 % 2 == 0 && i % 256 < size ? plain : plain * 10000.0f;
  }
  std::vector<std::uint8_t> bytes(144 * blocks), defined(size);
  gguf_encoder(GgufBlock::q4_k)(numbers.data(), nullptr, blocks, bytes.data());
  for (std::size_t block = 0; block < blocks; block += 2) {
    const float* const x = numbers.data() + 256 * block;
    static_cast<void>(fit_offset_run(x, own_weights(x), without_importance, 15, defined.data()));
    const std::uint8_t* const stored = bytes.data() + 144 * block;
    EXPECT_EQ(stored[4] & 63, 0) << block;  // the scale
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(stored[16 + i] & 15, defined[i]) << block << ' ' << i;
  }
}

TEST(FitRuns, EveryTargetSearchesSignedRunsAsDefined) {
  constexpr std::size_t size = kernels::SignedFit::run;
  for (const std::size_t runs : {std::size_t{1}, std::size_t{16}, std::size_t{53}, std::size_t{360}}) {
    const Tried given = tried(runs, size, static_cast<unsigned>(runs));
    for (const bool is_weighed : {false, true}) {
      for (const Target target : supported_targets()) {
        std::vector<float> scales(runs);
        std::vector<std::uint8_t> codes(runs * size), defined(size);
        kernels::ops_of(target).fit_signed_runs(given.numbers.data(), is_weighed ? given.importance.data() : nullptr,
                                                runs, {scales.data(), codes.data()});
        for (std::size_t run = 0; run < runs; ++run) {
          const std::size_t first = run * size;
          const float right = fit_signed_run(given.numbers.data() + first,
                                             is_weighed ? given.importance.data() + first : nullptr, defined.data());
          ASSERT_TRUE(same(scales[run], right)) << name(target) << ' ' << run;
          ASSERT_TRUE(std::equal(defined.begin(), defined.end(), codes.begin() + static_cast<std::ptrdiff_t>(first)))
              << name(target) << ' ' << run;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::block
