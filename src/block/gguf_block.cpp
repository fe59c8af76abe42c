// Layouts as in ggml-quants.c and the gguf package; each product and each sum is one float32 operation there.
#include "block/gguf_block.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstring>

namespace tensorcast::block {
namespace {

using Bytes = const std::uint8_t*;

// Twice the numbers of float4_e2m1, as ggml stores them; its scales are halves. The code of -0 means 0.
constexpr std::array<std::int8_t, 16> doubled_e2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr std::array<std::int8_t, 16> iq4_numbers = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};

float half_at(Bytes bytes) noexcept {
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  // The exponent field as float32 has it, then its bias; a subnormal's mantissa counts 2^-24.
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x400)
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f) | sign);
  const std::uint32_t rebias = magnitude >= 0x7c00 ? (255u - 31u) << 23 : (127u - 15u) << 23;
  return std::bit_cast<float>(((magnitude << 13) + rebias) | sign);
}

std::uint32_t word_at(Bytes bytes) noexcept {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// `count` elements: low nibbles are the first half, high ones the second.
void split_nibbles(Bytes bytes, std::int8_t* q, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count / 2; ++i) {
    q[i] = static_cast<std::int8_t>(bytes[i] & 15);
    q[i + count / 2] = static_cast<std::int8_t>(bytes[i] >> 4);
  }
}

void look_up(std::int8_t* q, std::size_t count, const std::array<std::int8_t, 16>& numbers) noexcept {
  for (std::size_t i = 0; i < count; ++i) q[i] = numbers[static_cast<std::size_t>(q[i])];
}

void subtract(std::int8_t* q, std::size_t count, int zero) noexcept {
  for (std::size_t i = 0; i < count; ++i) q[i] = static_cast<std::int8_t>(q[i] - zero);
}

void one_scale(GgufRuns& runs, float scale) noexcept {
  runs.run = 32;
  runs.has_bias = false;
  runs.scale[0] = scale;
}

void with_bias(GgufRuns& runs, float scale, float bias) noexcept {
  one_scale(runs, scale);
  runs.has_bias = true;
  runs.bias[0] = bias;
}

void add_fifth_bits(std::int8_t* q, Bytes bits) noexcept {
  const std::uint32_t word = word_at(bits);
  for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::int8_t>(q[i] | ((word >> i & 1) << 4));
}

void read_q4_0(Bytes b, GgufRuns& runs) noexcept {
  one_scale(runs, half_at(b));
  split_nibbles(b + 2, runs.q.data(), 32);
  subtract(runs.q.data(), 32, 8);
}

void read_q4_1(Bytes b, GgufRuns& runs) noexcept {
  with_bias(runs, half_at(b), half_at(b + 2));
  split_nibbles(b + 4, runs.q.data(), 32);
}

void read_q5_0(Bytes b, GgufRuns& runs) noexcept {
  one_scale(runs, half_at(b));
  split_nibbles(b + 6, runs.q.data(), 32);
  add_fifth_bits(runs.q.data(), b + 2);
  subtract(runs.q.data(), 32, 16);
}

void read_q5_1(Bytes b, GgufRuns& runs) noexcept {
  with_bias(runs, half_at(b), half_at(b + 2));
  split_nibbles(b + 8, runs.q.data(), 32);
  add_fifth_bits(runs.q.data(), b + 4);
}

void read_q8_0(Bytes b, GgufRuns& runs) noexcept {
  one_scale(runs, half_at(b));
  std::memcpy(runs.q.data(), b + 2, 32);
}

// 256 elements in runs of 16 or 32; `d` and `dmin` multiply integers of each run.
template <class Scale>
void scales_of(GgufRuns& runs, std::size_t run, float d, const Scale& scale) noexcept {
  runs.run = run;
  runs.has_bias = false;
  for (std::size_t i = 0; i < 256 / run; ++i) runs.scale[i] = d * static_cast<float>(scale(i));
}

template <class Minimum>
void minima_of(GgufRuns& runs, float dmin, const Minimum& minimum) noexcept {
  runs.has_bias = true;
  for (std::size_t i = 0; i < 256 / runs.run; ++i) runs.bias[i] = -(dmin * static_cast<float>(minimum(i)));
}

// Element 128 h + 32 s + l has two bits of byte 32 h + l, from bit 2 s on.
int two_bits(Bytes bytes, std::size_t i) noexcept { return bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3; }

void read_q2_k(Bytes b, GgufRuns& runs) noexcept {
  scales_of(runs, 16, half_at(b + 80), [&](std::size_t i) { return b[i] & 15; });
  minima_of(runs, half_at(b + 82), [&](std::size_t i) { return b[i] >> 4; });
  for (std::size_t i = 0; i < 256; ++i) runs.q[i] = static_cast<std::int8_t>(two_bits(b + 16, i));
}

void read_q3_k(Bytes b, GgufRuns& runs) noexcept {
  const Bytes packed = b + 96;
  scales_of(runs, 16, half_at(b + 108), [&](std::size_t i) {
    const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    return (low | (packed[8 + i % 4] >> (i / 4 * 2) & 3) << 4) - 32;
  });
  for (std::size_t i = 0; i < 256; ++i) {
    const bool is_high = (b[i % 32] >> (i / 32) & 1) != 0;
    runs.q[i] = static_cast<std::int8_t>(two_bits(b + 32, i) - (is_high ? 0 : 4));
  }
}

// Q4_K's and Q5_K's eight scales and minima of six bits.
int six_bit_scale(Bytes p, std::size_t i) noexcept {
  return i < 4 ? p[i] & 63 : (p[i + 4] & 15) | (p[i - 4] >> 6) << 4;
}
int six_bit_minimum(Bytes p, std::size_t i) noexcept {
  return i < 4 ? p[i + 4] & 63 : p[i + 4] >> 4 | (p[i] >> 6) << 4;
}

void read_k_header(Bytes b, GgufRuns& runs) noexcept {
  scales_of(runs, 32, half_at(b), [&](std::size_t i) { return six_bit_scale(b + 4, i); });
  minima_of(runs, half_at(b + 2), [&](std::size_t i) { return six_bit_minimum(b + 4, i); });
}

void read_q4_k(Bytes b, GgufRuns& runs) noexcept {
  read_k_header(b, runs);
  for (std::size_t part = 0; part < 4; ++part) split_nibbles(b + 16 + 32 * part, &runs.q[64 * part], 64);
}

void read_q5_k(Bytes b, GgufRuns& runs) noexcept {
  read_k_header(b, runs);
  for (std::size_t part = 0; part < 4; ++part) split_nibbles(b + 48 + 32 * part, &runs.q[64 * part], 64);
  for (std::size_t i = 0; i < 256; ++i) {
    runs.q[i] = static_cast<std::int8_t>(runs.q[i] | (b[16 + i % 32] >> (i / 32) & 1) << 4);
  }
}

void read_q6_k(Bytes b, GgufRuns& runs) noexcept {
  scales_of(runs, 16, half_at(b + 208), [&](std::size_t i) { return std::bit_cast<std::int8_t>(b[192 + i]); });
  for (std::size_t half = 0; half < 2; ++half) split_nibbles(b + 64 * half, &runs.q[128 * half], 128);
  for (std::size_t i = 0; i < 256; ++i) {
    runs.q[i] = static_cast<std::int8_t>((runs.q[i] | two_bits(b + 128, i) << 4) - 32);
  }
}

void read_iq4_nl(Bytes b, GgufRuns& runs) noexcept {
  one_scale(runs, half_at(b));
  split_nibbles(b + 2, runs.q.data(), 32);
  look_up(runs.q.data(), 32, iq4_numbers);
}

void read_iq4_xs(Bytes b, GgufRuns& runs) noexcept {
  const unsigned high = b[2] | static_cast<unsigned>(b[3]) << 8;
  scales_of(runs, 32, half_at(b), [&](std::size_t i) {
    const int low = b[4 + i / 2] >> (i % 2 * 4) & 15;
    return (low | static_cast<int>(high >> (2 * i) & 3) << 4) - 32;
  });
  for (std::size_t i = 0; i < 8; ++i) split_nibbles(b + 8 + 16 * i, &runs.q[32 * i], 32);
  look_up(runs.q.data(), 256, iq4_numbers);
}

// 2^(exponent - 128): half of the scale of MX, as the numbers are doubled. All bytes are numbers.
float half_e8m0(std::uint8_t exponent) noexcept {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

void read_mxfp4(Bytes b, GgufRuns& runs) noexcept {
  one_scale(runs, half_e8m0(b[0]));
  split_nibbles(b + 1, runs.q.data(), 32);
  look_up(runs.q.data(), 32, doubled_e2m1);
}

// Half of an unsigned e4m3, in which 0x7f is 0 and the sign is not read.
float half_ue4m3(std::uint8_t code) noexcept {
  if (code == 0x7f) return 0.0f;
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

void read_nvfp4(Bytes b, GgufRuns& runs) noexcept {
  runs.run = 16;
  runs.has_bias = false;
  for (std::size_t i = 0; i < 4; ++i) {
    runs.scale[i] = half_ue4m3(b[i]);
    split_nibbles(b + 4 + 8 * i, &runs.q[16 * i], 16);
  }
  look_up(runs.q.data(), 64, doubled_e2m1);
}

constexpr std::array<GgufRow, 14> rows = {{
    {GgufBlock::q4_0, {32, 18}, read_q4_0},
    {GgufBlock::q4_1, {32, 20}, read_q4_1},
    {GgufBlock::q5_0, {32, 22}, read_q5_0},
    {GgufBlock::q5_1, {32, 24}, read_q5_1},
    {GgufBlock::q8_0, {32, 34}, read_q8_0},
    {GgufBlock::q2_k, {256, 84}, read_q2_k},
    {GgufBlock::q3_k, {256, 110}, read_q3_k},
    {GgufBlock::q4_k, {256, 144}, read_q4_k},
    {GgufBlock::q5_k, {256, 176}, read_q5_k},
    {GgufBlock::q6_k, {256, 210}, read_q6_k},
    {GgufBlock::iq4_nl, {32, 18}, read_iq4_nl},
    {GgufBlock::iq4_xs, {256, 136}, read_iq4_xs},
    {GgufBlock::mxfp4, {32, 17}, read_mxfp4},
    {GgufBlock::nvfp4, {64, 36}, read_nvfp4},
}};
static_assert([] {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].block) != i + 1) return false;
  }
  return true;
}());

}  // namespace

const GgufRow& row(GgufBlock block) noexcept { return rows[static_cast<std::size_t>(block) - 1]; }

}  // namespace tensorcast::block

namespace tensorcast {
inline namespace TENSORCAST_ABI {

GgufBlockSize block_size(GgufBlock block) noexcept {
  return block == GgufBlock::none ? GgufBlockSize{} : block::row(block).size;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
