// SPDX-License-Identifier: Apache-2.0
// Layouts and grids as in ggml-quants.c and the gguf package; each product is one float32 operation there.
#include "kernels/gguf_low_bits.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "kernels/gguf_grids.hpp"
#include "tensorcast/element.hpp"

namespace tensorcast::kernels {
namespace {

// All grids, unpacked: the numbers of each point one after the other.
struct Grids {
  std::array<std::int8_t, 2048 * 8> iq1;
  std::array<std::int8_t, 256 * 8> iq2_xxs;
  std::array<std::int8_t, 512 * 8> iq2_xs;
  std::array<std::int8_t, 1024 * 8> iq2_s;
  std::array<std::int8_t, 256 * 4> iq3_xxs;
  std::array<std::int8_t, 512 * 4> iq3_s;
};

// Bit i of `points` says whether the grid has the point whose digits, the first lowest, are i; its place among the
// grid's is its index. `numbers`: what a digit means.
void unpack_points(std::span<const std::uint64_t> points, std::span<const std::int8_t> numbers, std::size_t dimensions,
                   std::span<std::int8_t> out) noexcept {
  std::int8_t* to = out.data();
  for (std::size_t i = 0; i < points.size() * 64; ++i) {
    if ((points[i / 64] >> (i % 64) & 1) == 0) continue;
    std::size_t digits = i;
    for (std::size_t k = 0; k < dimensions; ++k, digits /= numbers.size()) *to++ = numbers[digits % numbers.size()];
  }
}

const Grids& grids() noexcept {
  static const Grids made = [] {
    constexpr std::int8_t eighths[] = {-8, 0, 8}, two_bits[] = {8, 25, 43},
                          three_bits[] = {4, 12, 20, 28, 36, 44, 52, 62}, odd[] = {1, 3, 5, 7, 9, 11, 13, 15};
    Grids unpacked;
    unpack_points(iq1_points, eighths, 8, unpacked.iq1);
    unpack_points(iq2_xxs_points, two_bits, 8, unpacked.iq2_xxs);
    unpack_points(iq2_xs_points, two_bits, 8, unpacked.iq2_xs);
    unpack_points(iq2_s_points, two_bits, 8, unpacked.iq2_s);
    unpack_points(iq3_xxs_points, three_bits, 4, unpacked.iq3_xxs);
    unpack_points(iq3_s_points, odd, 4, unpacked.iq3_s);
    return unpacked;
  }();
  return made;
}

using LowBytes = const std::uint8_t*;

constexpr std::size_t block_elements = 256;

template <class Word>
Word low_word(LowBytes bytes) noexcept {
  Word word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

float float_of_half(std::uint16_t half) noexcept { return static_cast<float>(float16::from_bits(half)); }
float low_half(LowBytes bytes) noexcept { return float_of_half(low_word<std::uint16_t>(bytes)); }

// The numbers of one block: `q` of 256 elements, and the scale of each of its runs.
struct LowRuns {
  std::int8_t* q;
  float* scale;
};

void put_point(const std::int8_t* point, std::size_t count, unsigned signs, std::int8_t* q) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    q[i] = static_cast<std::int8_t>((signs >> i & 1) != 0 ? -point[i] : point[i]);
  }
}
// Seven signs; the eighth makes the number of minus signs even.
constexpr unsigned with_even_sign(unsigned seven) noexcept {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

float quarter_scale(float d, unsigned code) noexcept { return d * (0.5f + static_cast<float>(code)) * 0.25f; }

void read_iq2_xxs(LowBytes b, LowRuns to) noexcept {
  const float d = low_half(b);
  for (std::size_t run = 0; run < 8; ++run) {
    const LowBytes codes = b + 2 + 8 * run;
    const auto signs = low_word<std::uint32_t>(codes + 4);
    to.scale[run] = quarter_scale(d, signs >> 28);
    for (std::size_t i = 0; i < 4; ++i) {
      put_point(&grids().iq2_xxs[8 * codes[i]], 8, with_even_sign(signs >> (7 * i) & 127), to.q + 32 * run + 8 * i);
    }
  }
}

// Scales of four bits, the low nibble first, of runs of 16.
void put_quarter_scales(float d, LowBytes nibbles, float* scale) noexcept {
  for (std::size_t i = 0; i < 16; ++i) scale[i] = quarter_scale(d, nibbles[i / 2] >> (i % 2 * 4) & 15u);
}

void read_iq2_xs(LowBytes b, LowRuns to) noexcept {
  put_quarter_scales(low_half(b), b + 66, to.scale);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned code = low_word<std::uint16_t>(b + 2 + 2 * i);
    put_point(&grids().iq2_xs[8 * (code & 511)], 8, with_even_sign(code >> 9), to.q + 8 * i);
  }
}

void read_iq2_s(LowBytes b, LowRuns to) noexcept {
  put_quarter_scales(low_half(b), b + 74, to.scale);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned high = b[66 + i / 4] >> (i % 4 * 2) & 3u;
    put_point(&grids().iq2_s[8 * (b[2 + i] | high << 8)], 8, b[34 + i], to.q + 8 * i);
  }
}

void read_iq3_xxs(LowBytes b, LowRuns to) noexcept {
  const float d = low_half(b);
  for (std::size_t run = 0; run < 8; ++run) {
    const auto signs = low_word<std::uint32_t>(b + 66 + 4 * run);
    to.scale[run] = d * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
    for (std::size_t i = 0; i < 8; ++i) {
      const unsigned of_eight = with_even_sign(signs >> (i / 2 * 7) & 127);
      const std::size_t point = b[2 + 8 * run + i];
      put_point(&grids().iq3_xxs[4 * point], 4, of_eight >> (i % 2 * 4), to.q + 32 * run + 4 * i);
    }
  }
}

void read_iq3_s(LowBytes b, LowRuns to) noexcept {
  const float d = low_half(b);
  for (std::size_t run = 0; run < 8; ++run) {
    to.scale[run] = d * static_cast<float>(1 + 2 * (b[106 + run / 2] >> (run % 2 * 4) & 15));
  }
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t high = b[66 + i / 8] >> (i % 8) & 1u;
    put_point(&grids().iq3_s[4 * (b[2 + i] | high << 8)], 4, static_cast<unsigned>(b[74 + i / 2]) >> (i % 2 * 4),
              to.q + 4 * i);
  }
}

// Points of -1, 0 and 1, all moved up or down by an eighth: integers of eighths.
void put_moved_point(std::size_t point, bool moves_down, std::int8_t* q) noexcept {
  const std::int8_t* const from = &grids().iq1[8 * point];
  for (std::size_t i = 0; i < 8; ++i) q[i] = static_cast<std::int8_t>(from[i] + (moves_down ? -1 : 1));
}
float eighth_scale(float d, unsigned code) noexcept { return d * static_cast<float>(2 * code + 1) * 0.125f; }

void read_iq1_s(LowBytes b, LowRuns to) noexcept {
  const float d = low_half(b);
  for (std::size_t run = 0; run < 8; ++run) {
    const unsigned high = low_word<std::uint16_t>(b + 34 + 2 * run);
    to.scale[run] = eighth_scale(d, high >> 12 & 7);
    for (std::size_t i = 0; i < 4; ++i) {
      const unsigned point = b[2 + 4 * run + i] | (high >> (3 * i) & 7) << 8;
      put_moved_point(point, (high & 0x8000) != 0, to.q + 32 * run + 8 * i);
    }
  }
}

// The float16 scale lies in the upper four bits of four words, whose others are the scales of runs, three bits each.
void read_iq1_m(LowBytes b, LowRuns to) noexcept {
  std::array<unsigned, 4> words;
  unsigned half = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    words[i] = low_word<std::uint16_t>(b + 48 + 2 * i);
    half |= words[i] >> 12 << (4 * i);
  }
  const float d = float_of_half(static_cast<std::uint16_t>(half));
  for (std::size_t run = 0; run < 16; ++run) to.scale[run] = eighth_scale(d, words[run / 4] >> (run % 4 * 3) & 7);
  for (std::size_t i = 0; i < 32; ++i) {
    const unsigned high = b[32 + i / 2] >> (i % 2 * 4) & 15u;
    put_moved_point(b[i] | (high & 7) << 8, (high & 8) != 0, to.q + 8 * i);
  }
}

// Digit `place` of base 3 of a fraction of 256, less 1: five of them fit a byte.
std::int8_t ternary_digit(std::uint8_t byte, std::size_t place) noexcept {
  constexpr std::uint8_t powers[] = {1, 3, 9, 27, 81};
  const auto rest = static_cast<std::uint8_t>(byte * powers[place]);
  return static_cast<std::int8_t>((rest * 3 >> 8) - 1);
}

void put_block_scale(float d, float* scale) noexcept {
  for (std::size_t run = 0; run < 8; ++run) scale[run] = d;
}

void read_tq1_0(LowBytes b, LowRuns to) noexcept {
  put_block_scale(low_half(b + 52), to.scale);
  std::int8_t* q = to.q;
  const auto put = [&](std::size_t first, std::size_t bytes, std::size_t digits) {
    for (std::size_t place = 0; place < digits; ++place) {
      for (std::size_t i = 0; i < bytes; ++i) *q++ = ternary_digit(b[first + i], place);
    }
  };
  put(0, 32, 5);
  put(32, 16, 5);
  put(48, 4, 4);
}

void read_tq2_0(LowBytes b, LowRuns to) noexcept {
  put_block_scale(low_half(b + 64), to.scale);
  for (std::size_t i = 0; i < block_elements; ++i) {
    to.q[i] = static_cast<std::int8_t>((b[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3) - 1);
  }
}

struct LowFormat {
  std::size_t bytes, runs;
  void (*read)(LowBytes block, LowRuns to) noexcept;
};

// In the order of GgufBlock, after nvfp4.
constexpr LowFormat low_formats[] = {
    {50, 8, read_iq1_s},   {56, 16, read_iq1_m}, {66, 8, read_iq2_xxs}, {74, 16, read_iq2_xs}, {82, 16, read_iq2_s},
    {98, 8, read_iq3_xxs}, {110, 8, read_iq3_s}, {54, 8, read_tq1_0},   {66, 8, read_tq2_0},
};
static_assert(std::size(low_formats) ==
              static_cast<std::size_t>(last_gguf_block) - static_cast<std::size_t>(GgufBlock::nvfp4));

}  // namespace

void unpack_low_bits(GgufBlock block, const std::byte* src, std::size_t blocks, GgufRuns& runs) noexcept {
  const LowFormat& format = low_formats[static_cast<std::size_t>(block) - static_cast<std::size_t>(GgufBlock::iq1_s)];
  const auto* const bytes = reinterpret_cast<LowBytes>(src);
  for (std::size_t i = 0; i < blocks; ++i) {
    format.read(bytes + i * format.bytes, {runs.q + i * block_elements, runs.scales + i * format.runs});
  }
}

}  // namespace tensorcast::kernels
