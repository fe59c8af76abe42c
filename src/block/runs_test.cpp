// Every target scales runs and unpacks ggml's blocks as plain code does, one element at a time.
#include <gtest/gtest.h>
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::kernels {
namespace {

// --- Blocks of ggml, from the definitions in ggml-quants.c

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

bool same(float a, float b) {
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
            ASSERT_TRUE(same(runs.scale[i], made.scales[block * count + i])) << name(target);
            if (runs.has_bias) {
              ASSERT_TRUE(same(runs.bias[i], made.biases[block * count + i])) << name(target);
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

// --- Runs

// Numbers of `from`, among them the extremes, infinities and NaN of floating-point types.
std::vector<std::byte> numbers_of(DType from, std::size_t count, std::mt19937& random) {
  std::vector<std::byte> bytes(storage_bytes(from, count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  if (from == DType::float32) {
    constexpr std::array<float, 8> extremes = {0.0F,      -0.0F,      0x1p-149F, -0x1p-126F, 0x1.fffffep127F,
                                               HUGE_VALF, -HUGE_VALF, 448.0F};
    std::memcpy(bytes.data(), extremes.data(), sizeof(extremes));
  }
  return bytes;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes, DType from, std::size_t count) {
  std::vector<float> floats(count);
  if (from == DType::float32) {
    std::memcpy(floats.data(), bytes.data(), bytes.size());
  } else {
    auto* const out = reinterpret_cast<std::byte*>(floats.data());
    EXPECT_TRUE(codec::reference_cast(bytes.data(), from, out, DType::float32, count, {}));
  }
  return floats;
}

TEST(ScaleRuns, EveryTargetRoundsEachStepAndThenTheResult) {
  constexpr std::size_t count = 512;
  std::mt19937 random(11);
  const std::vector<std::byte> random_scales = numbers_of(DType::float32, count, random);
  for (const DType from : {DType::int8, DType::bfloat16, DType::float32}) {
    for (const unsigned kind : {0U, 1U, 2U, 3U}) {
      const bool is_affine = kind % 2 != 0, has_no_nan = kind >= 2;
      for (const unsigned run : {run_of_all, 1U, 16U, 32U}) {
        const std::vector<std::byte> src = numbers_of(from, count, random);
        std::vector<float> scales = floats_of(random_scales, DType::float32, count);
        if (run == run_of_all) scales[0] = 0x1.234568p-9F;
        if (has_no_nan) {
          for (float& scale : scales) scale = std::isnan(scale) ? HUGE_VALF : scale;
        }
        std::vector<float> zeros(count), biases(count), wanted(count);
        for (std::size_t i = 0; i < count; ++i) {
          zeros[i] = static_cast<float>(random() % 256);
          biases[i] = static_cast<float>(random()) * 0x1p-40F;
        }
        const std::vector<float> numbers = floats_of(src, from, count);
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t k = run == run_of_all ? 0 : i / run;
          volatile float x = numbers[i];
          if (is_affine) x = x - zeros[k];
          x = x * scales[k];
          if (is_affine) x = x + biases[k];
          wanted[i] = x;
        }
        const RunParameters by{scales.data(), is_affine ? zeros.data() : nullptr, is_affine ? biases.data() : nullptr};
        for (const DType to : {DType::float32, DType::float16, DType::bfloat16}) {
          std::vector<std::byte> rounded(storage_bytes(to, count)), made(rounded.size());
          if (to == DType::float32) {
            std::memcpy(rounded.data(), wanted.data(), rounded.size());
          } else {
            const auto* const numbers_wanted = reinterpret_cast<const std::byte*>(wanted.data());
            ASSERT_TRUE(codec::reference_cast(numbers_wanted, DType::float32, rounded.data(), to, count, {}));
          }
          const std::vector<float> right = floats_of(rounded, to, count);
          for (const Target target : supported_targets()) {
            ops_of(target).find_scale_runs(from, to, run)(src.data(), made.data(), count, by);
            const std::vector<float> got = floats_of(made, to, count);
            for (std::size_t i = 0; i < count; ++i) {
              ASSERT_TRUE(same(got[i], right[i])) << name(target) << ' ' << name(from) << ' ' << name(to) << ' ' << i;
            }
          }
        }
      }
    }
  }
}

TEST(ScaleRuns, EveryTargetMultipliesByPowersOfTwo) {
  constexpr std::size_t run = 32, count = 256 * 256;
  // Numbers of float8_e5m2, all with a scale of each power that keeps results normal.
  std::vector<std::byte> codes(count);
  for (std::size_t i = 0; i < count; ++i) codes[i] = static_cast<std::byte>(i);
  std::vector<std::uint16_t> numbers(count), wanted(count), made(count);
  ASSERT_TRUE(codec::reference_cast(codes.data(), DType::float8_e5m2, reinterpret_cast<std::byte*>(numbers.data()),
                                    DType::bfloat16, count, {}));
  std::vector<float> scales(count / run);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = std::ldexp(1.0F, static_cast<int>(i / 8) % 220 - 109);
  const auto* const src = reinterpret_cast<const std::byte*>(numbers.data());
  const RunParameters by{scales.data(), nullptr, nullptr};
  ops_of(Target::portable)
      .find_scale_runs(DType::bfloat16, DType::bfloat16, run)(src, reinterpret_cast<std::byte*>(wanted.data()), count,
                                                              by);
  for (const Target target : supported_targets()) {
    ops_of(target).scale_runs_by_powers(src, reinterpret_cast<std::byte*>(made.data()), count, by);
    EXPECT_EQ(made, wanted) << name(target);
  }
}

// Numbers of float8 and powers that keep them normal, in runs of 32.
TEST(LookUpSplit, EveryTargetAddsThePowersOfRuns) {
  std::mt19937 random(17);
  constexpr std::size_t most = 1000;
  std::vector<std::byte> codes(most);
  std::vector<std::uint16_t> powers(most / 32 + 2);
  for (const DType type : {DType::float8_e4m3fn, DType::float8_e5m2}) {
    std::array<std::uint16_t, 256> numbers;
    for (unsigned code = 0; code < 256; ++code) {
      numbers[code] = static_cast<std::uint16_t>(codec::cast_code(type, code, DType::bfloat16, {}).bits);
    }
    const std::optional<byte_table::SplitTable> table = byte_table::split(numbers);
    ASSERT_TRUE(table && table->odd_low == 0 && table->odd_high == 0);
    for (int round = 0; round < 20; ++round) {
      for (std::byte& code : codes) code = static_cast<std::byte>(random());
      for (std::uint16_t& power : powers)
        power = static_cast<std::uint16_t>((static_cast<int>(random() % 200) - 100) * 128);
      for (const Target target : supported_targets()) {
        const LookUpSplitByPowersFn look_up = ops_of(target).look_up_split_by_powers;
        if (look_up == nullptr) continue;
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{256}, most}) {
          const std::vector<std::byte> given(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(count));
          std::vector<std::uint16_t> made((count + run_step - 1) / run_step * run_step);
          look_up(given.data(), reinterpret_cast<std::byte*>(made.data()), count, *table, powers.data());
          for (std::size_t i = 0; i < count; ++i) {
            const std::uint16_t number = numbers[std::to_integer<unsigned>(given[i])];
            const bool has_exponent = (number & 0x7fff) != 0 && (number & 0x7f80) != 0x7f80;
            const auto right = static_cast<std::uint16_t>(number + (has_exponent ? powers[i / 32] : 0));
            ASSERT_EQ(made[i], right) << name(target) << ' ' << count << ' ' << i;
          }
        }
      }
    }
  }
}

TEST(LookUpSplit, EveryTargetGivesTheOutputsOfAnyTable) {
  std::mt19937 random(13);
  std::vector<std::byte> codes(1000);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i < 256 ? i : random());
  for (int round = 0; round < 20; ++round) {
    const std::size_t width = std::array<std::size_t, 4>{64, 100, 128, 5000}[static_cast<std::size_t>(round) % 4];
    std::array<byte_table::SplitTable, 3> tables = {};
    for (byte_table::SplitTable& table : tables) {
      for (auto* entries :
           {&table.low_of_low, &table.high_of_high, &table.high_of_low, &table.rare_low, &table.rare_high}) {
        for (std::uint8_t& entry : *entries) entry = static_cast<std::uint8_t>(random());
      }
    }
    std::vector<const byte_table::SplitTable*> each(codes.size() / width + 2);
    for (std::size_t i = 0; i < each.size(); ++i) each[i] = &tables[i % tables.size()];
    for (const Target target : supported_targets()) {
      const LookUpSplitFn look_up = ops_of(target).look_up_split;
      if (look_up == nullptr) continue;
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{128}, codes.size()}) {
        std::vector<std::uint16_t> made(count + 1, 0xabcd);
        const SplitRuns runs{.tables = each.data(), .width = width, .skipped = width / 3};
        look_up(codes.data(), reinterpret_cast<std::byte*>(made.data()), count, runs);
        for (std::size_t i = 0; i < count; ++i) {
          const byte_table::SplitTable& table = *each[(i + runs.skipped) / width];
          ASSERT_EQ(made[i], table(std::to_integer<unsigned>(codes[i]))) << name(target) << ' ' << count << ' ' << i;
        }
        EXPECT_EQ(made[count], 0xabcd) << name(target) << ' ' << count;
      }
    }
  }
}

TEST(LookUpNibbles, EveryTargetGivesTheResultsOfEachRunsTable) {
  std::mt19937 random(19);
  constexpr std::size_t most = 1000, table_count = 256;
  std::vector<std::uint16_t> tables(16 * table_count);
  for (std::uint16_t& result : tables) result = static_cast<std::uint16_t>(random());
  std::vector<std::uint8_t> indices(table_count);
  for (std::uint8_t& index : indices) index = static_cast<std::uint8_t>(random());
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{256}, most}) {
    for (const std::size_t width : {16U, 32U, 48U, 128U, 2048U}) {
      for (unsigned kind = 0; kind < 8; ++kind) {
        const NibbleRuns runs{.tables = tables.data(),
                              .indices = kind % 2 == 0 ? nullptr : indices.data(),
                              .width = width,
                              .skipped = kind < 2 ? 0 : width - 16,
                              .nibbles = static_cast<Nibbles>(kind / 2)};
        const bool are_halves = kind >= 4;
        std::vector<std::byte> codes(are_halves ? count : (count + 1) / 2);  // no byte more, for sanitizers
        for (std::byte& byte : codes) byte = static_cast<std::byte>(random());
        for (const Target target : supported_targets()) {
          const LookUpNibblesFn look_up = ops_of(target).look_up_nibbles;
          if (look_up == nullptr) continue;
          std::vector<std::uint16_t> made((count + 15) / 16 * 16 + 1, 0xabcd);
          look_up(codes.data(), reinterpret_cast<std::byte*>(made.data()), count, runs);
          for (std::size_t i = 0; i < count; ++i) {
            const std::size_t run = (i + runs.skipped) / width;
            const std::size_t table = runs.indices == nullptr ? run : indices[run];
            const bool is_upper = are_halves ? runs.nibbles == Nibbles::high_halves
                                             : (i % 2 != 0) != (runs.nibbles == Nibbles::high_first);
            const std::byte both = codes[are_halves ? i : i / 2];
            const unsigned code = std::to_integer<unsigned>(both) >> (is_upper ? 4U : 0U) & 15U;
            ASSERT_EQ(made[i], tables[16 * table + code]) << name(target) << ' ' << width << ' ' << i;
          }
          EXPECT_EQ(made.back(), 0xabcd) << name(target);
        }
      }
    }
  }
}

TEST(ScaleRuns, OtherTypesHaveNone) {
  for (const Target target : supported_targets()) {
    EXPECT_EQ(ops_of(target).find_scale_runs(DType::float64, DType::float32, 1), nullptr);
    EXPECT_EQ(ops_of(target).find_scale_runs(DType::int8, DType::float64, 1), nullptr);
    EXPECT_EQ(ops_of(target).find_scale_runs(DType::int8, DType::float32, 2), nullptr);
    for (const GgufElements elements : {GgufElements::numbers, GgufElements::codes}) {
      EXPECT_EQ(ops_of(target).find_unpack_gguf(GgufBlock::none, elements), nullptr);
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
