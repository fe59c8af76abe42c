// SPDX-License-Identifier: Apache-2.0
// Q4_K, Q5_K and Q6_K, with an importance matrix or without: a search for the scale of each run that gives the least
// error, in float32 sums whose order is part of the result.
#include <algorithm>
#include <array>

#include "block/gguf/gguf_encode.hpp"
#include "block/gguf/gguf_search.hpp"
#include "block/recipe/float_steps.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::block {
namespace {

constexpr std::size_t elements = k_elements;
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
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = at_most_63(nearest_code(inverse * x[i]));
  return largest / 63.0f;
}

using BlockCodes = std::array<std::uint8_t, elements>;

// Scales and minima of a block, and the sums of its weights.
struct RunScales {
  RunNumbers scales, minima, weights;
};

// Writes scales and minima, 16 bytes, and replaces them by the stored numbers.
void put_scales(bool is_weighed, RunScales& runs, std::uint8_t* bytes) noexcept {
  RunCodes scales, minima;
  const auto fit = [&](const RunNumbers& numbers, RunCodes& made) {
    return is_weighed ? fit_positive(numbers, runs.weights.data(), 63, made.data()) : fit_largest(numbers, made);
  };
  const float scale_unit = fit(runs.scales, scales), minimum_unit = fit(runs.minima, minima);
  put_half(scale_unit, bytes);
  put_half(minimum_unit, bytes + 2);
  put_six_bits(scales, minima, bytes + 4);
  const float d = half_number(scale_unit), dmin = half_number(minimum_unit);
  for (std::size_t j = 0; j < offset_runs; ++j) {
    runs.scales[j] = d * static_cast<float>(scales[j]);
    runs.minima[j] = dmin * static_cast<float>(minima[j]);
  }
}

// Reports whether a run has a stored scale of 0 and a number that is not: its codes are those of the search.
bool keeps_codes(const float* x, const RunNumbers& stored_scales) noexcept {
  constexpr std::size_t size = kernels::OffsetFit::run;
  for (std::size_t j = 0; j < offset_runs; ++j) {
    if (stored_scales[j] != 0.0f) continue;
    if (std::any_of(x + size * j, x + size * (j + 1), [](float number) { return number != 0.0f; })) return true;
  }
  return false;
}

// The low nibbles of a byte are those of 32 elements, the high ones those of the next 32.
void put_low_nibbles(const BlockCodes& codes, std::uint8_t* bytes) noexcept {
  for (std::size_t j = 0; j < elements / 64; ++j) {
    const std::uint8_t* const low = codes.data() + 64 * j;
    for (std::size_t i = 0; i < 32; ++i) {
      bytes[32 * j + i] = static_cast<std::uint8_t>((low[i] & 15) | (low[i + 32] & 15) << 4);
    }
  }
}

void put_q4_k(const BlockCodes& codes, std::uint8_t* bytes) noexcept { put_low_nibbles(codes, bytes + 16); }
void put_q5_k(const BlockCodes& codes, std::uint8_t* bytes) noexcept {
  put_one_bit(codes.data(), 4, bytes + 16);
  put_low_nibbles(codes, bytes + 48);
}

constexpr std::size_t signed_runs = elements / kernels::SignedFit::run;

struct SignedRuns {
  BlockCodes codes;
  std::array<float, signed_runs> scales;
};

void put_q6_k(const float* x, SignedRuns& runs, std::uint8_t* bytes) noexcept {
  constexpr std::size_t size = kernels::SignedFit::run;
  constexpr int zero = kernels::SignedFit::zero;
  const float largest = first_of_largest(runs.scales);
  std::fill_n(bytes, 210, std::uint8_t{0});
  if (magnitude(largest) < smallest_run) return;
  const float inverse_scale = -128.0f / largest;
  const float d = half_number(1.0f / inverse_scale);
  put_half(1.0f / inverse_scale, bytes + 208);
  for (std::size_t j = 0; j < signed_runs; ++j) {
    const auto integer = static_cast<std::int8_t>(std::min(127, nearest_code(inverse_scale * runs.scales[j])));
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

// Blocks whose runs are searched together: as many as fill the widest registers twice.
constexpr std::size_t together = 4;

struct OffsetFormat {
  int most;
  kernels::ScaleSearch search;
  std::size_t bytes;
  void (*put)(const BlockCodes& codes, std::uint8_t* block) noexcept;
};

void encode_offset_runs(const OffsetFormat& format, const float* x, const float* importance, std::size_t blocks,
                        std::uint8_t* bytes) noexcept {
  const kernels::Ops& ops = kernels::ops_of(active_target());
  const bool is_weighed = importance != nullptr;
  const kernels::ScaleSearch& search = is_weighed ? weighed_search : format.search;
  std::array<float, elements * together> weights;
  const float* const weighed = is_weighed ? weights.data() : nullptr;
  std::array<float, offset_runs * together> scales, minima, sums;
  for (std::size_t done = 0; done < blocks; done += together) {
    const std::size_t n = std::min(together, blocks - done);
    const float* const numbers = x + done * elements;
    for (std::size_t i = 0; is_weighed && i < n; ++i) {
      const std::span<const float> block(numbers + i * elements, elements);
      set_weights(block, importance + (done + i) * elements, mean_of_squares(block, 2.0f),
                  weights.data() + i * elements);
    }
    ops.fit_offset_runs(numbers, weighed, n * offset_runs, search,
                        {scales.data(), minima.data(), is_weighed ? sums.data() : nullptr, nullptr, format.most});
    for (std::size_t i = 0; i < n; ++i) {
      const float* const block = numbers + i * elements;
      std::uint8_t* const block_bytes = bytes + (done + i) * format.bytes;
      RunScales runs;
      const auto take = [&](const auto& all, RunNumbers& own) {
        std::copy_n(all.data() + i * offset_runs, offset_runs, own.data());
      };
      take(scales, runs.scales), take(minima, runs.minima);
      if (is_weighed) take(sums, runs.weights);
      put_scales(is_weighed, runs, block_bytes);
      BlockCodes codes = {};
      if (keeps_codes(block, runs.scales)) {
        RunNumbers found_scales, found_minima;
        ops.fit_offset_runs(block, is_weighed ? weighed + i * elements : nullptr, offset_runs, search,
                            {found_scales.data(), found_minima.data(), nullptr, codes.data(), format.most});
      }
      ops.set_offset_codes(block, offset_runs,
                           {runs.scales.data(), runs.minima.data(), nullptr, codes.data(), format.most});
      format.put(codes, block_bytes);
    }
  }
}

}  // namespace

void encode_q4_k(const float* x, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept {
  encode_offset_runs({15, own_search, 144, put_q4_k}, x, importance, blocks, bytes);
}

void encode_q5_k(const float* x, const float* importance, std::size_t blocks, std::uint8_t* bytes) noexcept {
  encode_offset_runs({31, short_search, 176, put_q5_k}, x, importance, blocks, bytes);
}

void encode_q6_k(const float* x, const float* importance, std::uint8_t* bytes) noexcept {
  SignedRuns runs;
  kernels::ops_of(active_target()).fit_signed_runs(x, importance, signed_runs, {runs.scales.data(), runs.codes.data()});
  put_q6_k(x, runs, bytes);
}

}  // namespace tensorcast::block
