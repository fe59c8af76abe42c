// SPDX-License-Identifier: Apache-2.0
// What ggml's searches for scales share: float32 sums whose order is part of the result, so that blocks are those of
// ggml bit for bit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "block/recipe/float_steps.hpp"
#include "kernels/runs.hpp"

namespace tensorcast::block {

inline constexpr std::size_t k_elements = 256;  // of a block of the K formats and of IQ4_XS

// Half to even by the float32 adder; numbers of 2^22 and more wrap, as in ggml.
[[nodiscard]] inline int nearest_code(float x) noexcept {
  const std::uint32_t bits = bits_of(x + 12582912.0f);
  return static_cast<int>(bits & 0x7fffff) - 0x400000;
}

// Inverse scales that the searches try, without importance and with it.
inline constexpr kernels::ScaleSearch own_search{-1.0f, 0.1f, 20};
inline constexpr kernels::ScaleSearch short_search{-0.5f, 0.1f, 15};  // of Q2_K and Q5_K
inline constexpr kernels::ScaleSearch weighed_search{-0.9f, 0.05f, 36};

// The weights of numbers: importance, more for larger numbers. `mean`: of the squares of a block, times a constant.
void set_weights(std::span<const float> x, const float* importance, float mean, float* weights) noexcept;
// The mean of the squares of a block's numbers, times `factor`.
[[nodiscard]] float mean_of_squares(std::span<const float> x, float factor) noexcept;
[[nodiscard]] float sum_of(std::span<const float> x) noexcept;

// Codes from 0 to `most` for positive numbers, which are about the result times their code: by least squares, the best
// of nine steps, then codes one after the other while the error falls.
[[nodiscard]] float fit_positive(std::span<const float> x, const float* weights, int most,
                                 std::uint8_t* codes) noexcept;

struct OffsetScale {
  float scale = 0.0f, minimum = 0.0f;
};
// A run whose numbers are about scale * code - minimum, with codes from 0 to `most`. `absolute`: the error is the sum
// of differences, not of their squares.
[[nodiscard]] OffsetScale fit_offset(std::span<const float> x, const float* weights, int most,
                                     const kernels::ScaleSearch& search, bool absolute, std::uint8_t* codes) noexcept;

// A run whose numbers are about the result times (code - zero), with codes from 0 to 2 * zero - 1.
[[nodiscard]] float fit_signed(std::span<const float> x, const float* weights, int zero, std::uint8_t* codes) noexcept;
// The same with the numbers' squares as weights, as Q3_K finds it: from one step, codes one after the other.
[[nodiscard]] float fit_signed_codes(std::span<const float> x, int zero, std::uint8_t* codes) noexcept;

// The first of the numbers with the largest magnitude.
[[nodiscard]] inline float first_of_largest(std::span<const float> x) noexcept {
  float size = 0.0f, found = 0.0f;
  for (const float number : x) {
    if (size < magnitude(number)) size = magnitude(number), found = number;
  }
  return found;
}

// The codes of a run whose scale is stored: round((x + minimum) / scale), from `least` to `most`, less `least`.
template <std::size_t size>
void set_codes(const float* x, float scale, float minimum, int least, int most, std::uint8_t* codes) noexcept {
  float quotients[size];
  for (std::size_t i = 0; i < size; ++i) quotients[i] = (x[i] + minimum) / scale;
  for (std::size_t i = 0; i < size; ++i) {
    codes[i] = static_cast<std::uint8_t>(std::clamp(nearest_code(quotients[i]), least, most) - least);
  }
}

// Two bits of each of 256 codes: byte 32 h + l has those of elements 128 h + 32 s + l from bit 2 s on.
inline void put_two_bits(const std::uint8_t* codes, std::uint8_t* bytes) noexcept {
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint8_t* const q = codes + i / 32 * 128 + i % 32;
    bytes[i] = static_cast<std::uint8_t>((q[0] & 3) | (q[32] & 3) << 2 | (q[64] & 3) << 4 | (q[96] & 3) << 6);
  }
}
// Bit `bit` of each of 256 codes: byte l has those of elements 32 p + l at bit p.
inline void put_one_bit(const std::uint8_t* codes, int bit, std::uint8_t* bytes) noexcept {
  for (std::size_t l = 0; l < 32; ++l) {
    unsigned byte = 0;
    for (std::size_t p = 0; p < 8; ++p) byte |= (static_cast<unsigned>(codes[32 * p + l]) >> bit & 1u) << p;
    bytes[l] = static_cast<std::uint8_t>(byte);
  }
}

}  // namespace tensorcast::block
