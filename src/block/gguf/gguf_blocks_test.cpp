// SPDX-License-Identifier: Apache-2.0
// Every target unpacks and decodes ggml's blocks as plain code does, from the definitions in ggml-quants.c.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::kernels {
namespace {

struct Runs {
  std::array<std::int8_t, 256> q;
  std::size_t run = 0;
  bool has_bias = false;
  std::array<float, 16> scale;
  std::array<float, 16> bias;
};

using Bytes = const std::uint8_t*;

// Twice the numbers of float4_e2m1, as ggml stores them; its scales are halves. The code of -0 means 0.
constexpr std::array<std::int8_t, 16> doubled_e2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr std::array<std::int8_t, 16> iq4_numbers = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};

float half_at(Bytes bytes) {
  float number = 0.0f;
  EXPECT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(bytes), DType::float16,
                                    reinterpret_cast<std::byte*>(&number), DType::float32, 1, {}));
  return number;
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

void one_scale(Runs& runs, float scale) noexcept {
  runs.run = 32;
  runs.has_bias = false;
  runs.scale[0] = scale;
}

void with_bias(Runs& runs, float scale, float bias) noexcept {
  one_scale(runs, scale);
  runs.has_bias = true;
  runs.bias[0] = bias;
}

void add_fifth_bits(std::int8_t* q, Bytes bits) noexcept {
  const std::uint32_t word = word_at(bits);
  for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::int8_t>(q[i] | ((word >> i & 1) << 4));
}

void read_q4_0(Bytes b, Runs& runs) noexcept {
  one_scale(runs, half_at(b));
  split_nibbles(b + 2, runs.q.data(), 32);
  subtract(runs.q.data(), 32, 8);
}

void read_q4_1(Bytes b, Runs& runs) noexcept {
  with_bias(runs, half_at(b), half_at(b + 2));
  split_nibbles(b + 4, runs.q.data(), 32);
}

void read_q5_0(Bytes b, Runs& runs) noexcept {
  one_scale(runs, half_at(b));
  split_nibbles(b + 6, runs.q.data(), 32);
  add_fifth_bits(runs.q.data(), b + 2);
  subtract(runs.q.data(), 32, 16);
}

void read_q5_1(Bytes b, Runs& runs) noexcept {
  with_bias(runs, half_at(b), half_at(b + 2));
  split_nibbles(b + 8, runs.q.data(), 32);
  add_fifth_bits(runs.q.data(), b + 4);
}

void read_q8_0(Bytes b, Runs& runs) noexcept {
  one_scale(runs, half_at(b));
  std::memcpy(runs.q.data(), b + 2, 32);
}

// 256 elements in runs of 16 or 32; `d` and `dmin` multiply integers of each run.
template <class Scale>
void scales_of(Runs& runs, std::size_t run, float d, const Scale& scale) noexcept {
  runs.run = run;
  runs.has_bias = false;
  for (std::size_t i = 0; i < 256 / run; ++i) runs.scale[i] = d * static_cast<float>(scale(i));
}

template <class Minimum>
void minima_of(Runs& runs, float dmin, const Minimum& minimum) noexcept {
  runs.has_bias = true;
  for (std::size_t i = 0; i < 256 / runs.run; ++i) runs.bias[i] = -(dmin * static_cast<float>(minimum(i)));
}

// Element 128 h + 32 s + l has two bits of byte 32 h + l, from bit 2 s on.
int two_bits(Bytes bytes, std::size_t i) noexcept { return bytes[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3; }

void read_q2_k(Bytes b, Runs& runs) noexcept {
  scales_of(runs, 16, half_at(b + 80), [&](std::size_t i) { return b[i] & 15; });
  minima_of(runs, half_at(b + 82), [&](std::size_t i) { return b[i] >> 4; });
  for (std::size_t i = 0; i < 256; ++i) runs.q[i] = static_cast<std::int8_t>(two_bits(b + 16, i));
}

void read_q3_k(Bytes b, Runs& runs) noexcept {
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

void read_k_header(Bytes b, Runs& runs) noexcept {
  scales_of(runs, 32, half_at(b), [&](std::size_t i) { return six_bit_scale(b + 4, i); });
  minima_of(runs, half_at(b + 2), [&](std::size_t i) { return six_bit_minimum(b + 4, i); });
}

void read_q4_k(Bytes b, Runs& runs) noexcept {
  read_k_header(b, runs);
  for (std::size_t part = 0; part < 4; ++part) split_nibbles(b + 16 + 32 * part, &runs.q[64 * part], 64);
}

void read_q5_k(Bytes b, Runs& runs) noexcept {
  read_k_header(b, runs);
  for (std::size_t part = 0; part < 4; ++part) split_nibbles(b + 48 + 32 * part, &runs.q[64 * part], 64);
  for (std::size_t i = 0; i < 256; ++i) {
    runs.q[i] = static_cast<std::int8_t>(runs.q[i] | (b[16 + i % 32] >> (i / 32) & 1) << 4);
  }
}

void read_q6_k(Bytes b, Runs& runs) noexcept {
  scales_of(runs, 16, half_at(b + 208), [&](std::size_t i) { return std::bit_cast<std::int8_t>(b[192 + i]); });
  for (std::size_t half = 0; half < 2; ++half) split_nibbles(b + 64 * half, &runs.q[128 * half], 128);
  for (std::size_t i = 0; i < 256; ++i) {
    runs.q[i] = static_cast<std::int8_t>((runs.q[i] | two_bits(b + 128, i) << 4) - 32);
  }
}

void read_iq4_nl(Bytes b, Runs& runs) noexcept {
  one_scale(runs, half_at(b));
  split_nibbles(b + 2, runs.q.data(), 32);
  look_up(runs.q.data(), 32, iq4_numbers);
}

void read_iq4_xs(Bytes b, Runs& runs) noexcept {
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

void read_mxfp4(Bytes b, Runs& runs) noexcept {
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

void read_nvfp4(Bytes b, Runs& runs) noexcept {
  runs.run = 16;
  runs.has_bias = false;
  for (std::size_t i = 0; i < 4; ++i) {
    runs.scale[i] = half_ue4m3(b[i]);
    split_nibbles(b + 4 + 8 * i, &runs.q[16 * i], 16);
  }
  look_up(runs.q.data(), 64, doubled_e2m1);
}

struct Definition {
  GgufBlock block;
  void (*read)(Bytes bytes, Runs& runs) noexcept;
};

constexpr std::array<Definition, 14> definitions = {{
    {GgufBlock::q4_0, read_q4_0},
    {GgufBlock::q4_1, read_q4_1},
    {GgufBlock::q5_0, read_q5_0},
    {GgufBlock::q5_1, read_q5_1},
    {GgufBlock::q8_0, read_q8_0},
    {GgufBlock::q2_k, read_q2_k},
    {GgufBlock::q3_k, read_q3_k},
    {GgufBlock::q4_k, read_q4_k},
    {GgufBlock::q5_k, read_q5_k},
    {GgufBlock::q6_k, read_q6_k},
    {GgufBlock::iq4_nl, read_iq4_nl},
    {GgufBlock::iq4_xs, read_iq4_xs},
    {GgufBlock::mxfp4, read_mxfp4},
    {GgufBlock::nvfp4, read_nvfp4},
}};

bool equal_or_nan(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST(UnpackGguf, EveryTargetReadsRandomBlocksAsDefined) {
  std::mt19937 random(7);
  for (const Definition& definition : definitions) {
    const GgufBlockSize size = block_size(definition.block);
    const std::size_t blocks = GgufRuns::max_elements / size.elements;
    for (int round = 0; round < 40; ++round) {
      std::vector<std::byte> bytes(blocks * size.bytes);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      // All bytes of a block that is one byte's scale: MXFP4's first.
      for (std::size_t i = 0; i < blocks; ++i)
        bytes[i * size.bytes] = static_cast<std::byte>(i + blocks * static_cast<std::size_t>(round));
      for (const Target target : supported_targets()) {
        GgufRuns made = {};
        ops_of(target).find_unpack_gguf(definition.block, GgufElements::numbers)(bytes.data(), blocks, made);
        for (std::size_t block = 0; block < blocks; ++block) {
          Runs runs = {};
          definition.read(reinterpret_cast<Bytes>(bytes.data()) + block * size.bytes, runs);
          ASSERT_EQ(std::memcmp(runs.q.data(), made.q + block * size.elements, size.elements), 0)
              << name(target) << " format " << static_cast<int>(definition.block);
          const std::size_t count = size.elements / runs.run;
          for (std::size_t i = 0; i < count; ++i) {
            ASSERT_TRUE(equal_or_nan(runs.scale[i], made.scales[block * count + i])) << name(target);
            if (runs.has_bias) {
              ASSERT_TRUE(equal_or_nan(runs.bias[i], made.biases[block * count + i])) << name(target);
            }
          }
        }
      }
    }
  }
}

// Each code of an element stands for one number, and each code of a scale for one scale.
TEST(UnpackGguf, CodesStandForNumbers) {
  std::mt19937 random(11);
  for (const Definition& definition : definitions) {
    const GgufBlockSize size = block_size(definition.block);
    const std::size_t blocks = GgufRuns::max_elements / size.elements;
    std::vector<std::byte> bytes(blocks * size.bytes);
    for (const Target target : supported_targets()) {
      const UnpackGgufFn unpack = ops_of(target).find_unpack_gguf(definition.block, GgufElements::codes);
      std::map<int, int> numbers;
      std::map<int, std::uint32_t> scales;
      for (int round = 0; unpack != nullptr && round < 40; ++round) {
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
        GgufRuns made = {}, wanted = {};
        unpack(bytes.data(), blocks, made);
        ops_of(target).find_unpack_gguf(definition.block, GgufElements::numbers)(bytes.data(), blocks, wanted);
        for (std::size_t i = 0; i < GgufRuns::max_elements; ++i) {
          ASSERT_TRUE(made.q[i] >= 0 && made.q[i] < 16) << name(target);
          ASSERT_EQ(numbers.emplace(made.q[i], wanted.q[i]).first->second, wanted.q[i]) << name(target);
        }
        const std::size_t runs = GgufRuns::max_elements / (definition.block == GgufBlock::nvfp4 ? 16 : 32);
        for (std::size_t i = 0; i < runs; ++i) {
          const auto scale = std::bit_cast<std::uint32_t>(wanted.scales[i]);
          ASSERT_EQ(scales.emplace(made.scale_codes[i], scale).first->second, scale) << name(target);
        }
      }
    }
  }
}

std::uint16_t nearest_bfloat16(float number) {
  std::uint16_t code = 0;
  EXPECT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(&number), DType::float32,
                                    reinterpret_cast<std::byte*>(&code), DType::bfloat16, 1, {}));
  return code;
}

// What a block's elements are in bfloat16: a product, a sum, each rounded to float32, and a rounding.
std::array<std::uint16_t, 256> results_of(const Runs& runs, std::size_t count) {
  std::array<std::uint16_t, 256> results = {};
  for (std::size_t i = 0; i < count; ++i) {
    volatile float number = static_cast<float>(runs.q[i]) * runs.scale[i / runs.run];
    if (runs.has_bias) number = number + runs.bias[i / runs.run];
    results[i] = nearest_bfloat16(number);
  }
  return results;
}

// 16 results for each code of a scale, from blocks of which all bytes but the scales' are the same.
std::vector<std::uint16_t> tables_of(const Definition& definition) {
  std::vector<std::uint16_t> tables;
  for (unsigned scale = 0; scale < 256; ++scale) {
    for (unsigned nibble = 0; nibble < 16; ++nibble) {
      std::array<std::uint8_t, 256> block;
      block.fill(static_cast<std::uint8_t>(nibble * 17));
      block[0] = static_cast<std::uint8_t>(scale);
      Runs runs = {};
      definition.read(block.data(), runs);
      tables.push_back(results_of(runs, 1)[0]);
    }
  }
  return tables;
}

TEST(DecodeGguf, EveryTargetGivesTheRoundedNumbersOfRandomBlocks) {
  std::mt19937 random(13);
  for (const Definition& definition : definitions) {
    const GgufBlockSize size = block_size(definition.block);
    const bool has_tables = definition.block == GgufBlock::mxfp4 || definition.block == GgufBlock::nvfp4;
    const std::vector<std::uint16_t> tables = has_tables ? tables_of(definition) : std::vector<std::uint16_t>();
    std::vector<std::byte> bytes(size.bytes);
    alignas(64) std::array<std::uint16_t, 256> made;
    for (int round = 0, refused = 0; round < 2000; ++round) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      Runs runs = {};
      definition.read(reinterpret_cast<Bytes>(bytes.data()), runs);
      const std::array<std::uint16_t, 256> right = results_of(runs, size.elements);
      for (const Target target : supported_targets()) {
        if (ops_of(target).find_decode_gguf == nullptr) continue;
        const DecodeGgufFn decode = ops_of(target).find_decode_gguf(definition.block);
        ASSERT_EQ(decode == nullptr, definition.block == GgufBlock::q6_k);
        if (decode == nullptr) continue;
        made.fill(0xaaaa);
        const bool bypasses_cache = round % 2 != 0;
        const bool is_done =
            decode(bytes.data(), 1, reinterpret_cast<std::byte*>(made.data()), tables.data(), bypasses_cache);
        ops_of(target).stream_fence();
        if (!is_done) {
          ASSERT_TRUE(std::isnan(runs.scale[0]) || (runs.has_bias && std::isnan(runs.bias[0]))) << name(target);
          ASSERT_LE(++refused, 1000);
          continue;
        }
        for (std::size_t i = 0; i < size.elements; ++i) {
          ASSERT_EQ(made[i], right[i]) << name(target) << " format " << static_cast<int>(definition.block);
        }
        if (size.elements < made.size()) {
          ASSERT_EQ(made[size.elements], 0xaaaa);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
