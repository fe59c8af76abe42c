// SPDX-License-Identifier: Apache-2.0
// Every target's codes of runs are those of the definition, and so are the extents that scales are made from.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "block/format/code_packing.hpp"
#include "block/recipe/float_steps.hpp"
#include "block/recipe/recipe.hpp"
#include "block/recipe/run_encoder.hpp"
#include "kernels/ops.hpp"
#include "tensorcast/result_vector.hpp"

namespace tensorcast::block {
namespace {

// Numbers of all exponents, at and beside the midpoints of quotients, zeros, NaN and infinity.
std::vector<float> numbers_of(std::size_t count, bool is_near, float factor, std::mt19937& random) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const auto bits = static_cast<std::uint32_t>(random());
    const float near = (static_cast<float>(bits % 4096) - 2048) / 64 * factor;
    number = is_near ? float_of(bits_of(near) + bits % 3 - (near != 0 ? 1 : 0)) : float_of(bits);
  }
  const std::array<float, 4> extremes = {-0.0f, std::numeric_limits<float>::infinity(),
                                         std::numeric_limits<float>::quiet_NaN(),
                                         -std::numeric_limits<float>::quiet_NaN()};
  std::copy_n(extremes.begin(), std::min(count, extremes.size()), numbers.begin());
  return numbers;
}

struct Runs {
  unsigned shift = 0;
  std::size_t count = 0;

  [[nodiscard]] std::size_t size() const { return std::min(std::size_t{1} << shift, count); }
  [[nodiscard]] std::size_t runs() const { return (count + size() - 1) / size(); }
};

std::vector<std::byte> defined(const ElementRule& rule, DType weights, bool is_offset, const Runs& runs,
                               const std::vector<float>& numbers, const std::vector<Operand>& operands) {
  std::vector<std::uint8_t> codes(numbers.size());
  for (std::size_t first = 0; first < numbers.size(); first += runs.size()) {
    const std::size_t n = std::min(runs.size(), numbers.size() - first);
    define_codes(rule, weights, operands[first / runs.size()], std::span(numbers).subspan(first, n),
                 std::span(codes).subspan(first, n));
  }
  if (is_offset) {
    for (std::uint8_t& code : codes) code ^= 8;
  }
  std::vector<std::byte> packed((codes.size() * static_cast<std::size_t>(rule.bits) + 7) / 8);
  pack_stream(rule.bits, codes, packed.data());
  return packed;
}

// The upper halves, and the numbers that they are.
std::vector<std::uint16_t> cut_to_bfloat16(std::vector<float>& numbers) {
  std::vector<std::uint16_t> halves;
  for (float& number : numbers) {
    halves.push_back(static_cast<std::uint16_t>(bits_of(number) >> 16));
    number = float_of(bits_of(number) & 0xffff0000u);
  }
  return halves;
}

struct Case {
  Runs runs;
  std::vector<Operand> operands;
  const std::byte* numbers = nullptr;
};

void check_targets(const ElementRule& rule, DType weights, const RunStorage& storage, const Case& given,
                   const std::vector<std::byte>& right) {
  for (const Target target : supported_targets()) {
    std::vector<std::byte> made(right.size() + 1, std::byte{0xa5});
    RunEncoder(rule, weights, storage, target)
        .run(given.numbers, given.runs.count, given.operands.data(), given.runs.shift, made.data());
    ASSERT_EQ(made.back(), std::byte{0xa5}) << name(target);
    made.pop_back();
    ASSERT_EQ(made, right) << name(target) << ' ' << name(weights) << " of " << name(storage.numbers) << " runs of 2^"
                           << given.runs.shift << " factor " << given.operands.front().factor;
  }
}

// Factors with few digits, with many, and those that no division by multiplication is right for.
float factor_of(int trial, std::mt19937& random) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 9> rare = {0.0f, 0x1p-64f, 0x1p64f, 0x1p-70f, 0x1p70f, 1e-40f, 1.00001f, -1.5f, infinity};
  if (trial % 4 == 3) return rare[random() % rare.size()];
  const float digits = trial % 4 == 0 ? 1.0f : trial % 4 == 1 ? 1.125f : 1.0f + static_cast<float>(random()) * 0x1p-32f;
  return std::ldexp(digits, static_cast<int>(random() % 12) - 6);
}

void check_rule(const ElementRule& rule, bool has_zeros, std::mt19937& random) {
  const bool is_offset = rule.element == DType::int8 && rule.bits == 4;
  for (const Runs runs :
       {Runs{4, 1}, Runs{4, 20}, Runs{4, 128}, Runs{5, 700}, Runs{7, 333}, Runs{kernels::shift_of_all, 193}}) {
    for (int trial = 0; trial < 8; ++trial) {
      std::vector<Operand> operands(runs.runs());
      const float common = factor_of(trial, random);
      for (Operand& operand : operands) {
        operand.factor = trial % 4 == 2 ? common : factor_of(trial, random);
        if (has_zeros && trial != 2) operand.zero = static_cast<float>(random() % 16) - 8.0f;
      }
      std::vector<float> numbers = numbers_of(runs.count, trial % 4 != 1, operands.front().factor, random);
      const std::vector<float> wide = numbers;
      const std::vector<std::uint16_t> halves = cut_to_bfloat16(numbers);
      for (const DType weights : {DType::float32, DType::bfloat16, DType::float16}) {
        check_targets(rule, weights, {.is_offset = is_offset},
                      {runs, operands, reinterpret_cast<const std::byte*>(wide.data())},
                      defined(rule, weights, is_offset, runs, wide, operands));
        if (testing::Test::HasFatalFailure()) return;
        if (rule.search != Search::none) continue;
        check_targets(rule, weights, {.numbers = DType::bfloat16, .is_offset = is_offset},
                      {runs, operands, reinterpret_cast<const std::byte*>(halves.data())},
                      defined(rule, weights, is_offset, runs, numbers, operands));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(RunEncoder, EveryTargetEqualsTheDefinition) {
  std::mt19937 random(23);
  for (const QuantizeRecipe& row : quantize_recipes()) {
    SCOPED_TRACE(std::string(row.scheme) + " of " + std::string(row.recipe));
    const Recipe& recipe = recipe_of(row);
    if (recipe.scale == nullptr) continue;
    ElementRule rule = recipe.element;
    rule.nan_code = -1;  // Quantizer writes it
    check_rule(rule, recipe.asymmetric != nullptr, random);
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Also those that no recipe has yet.
TEST(RunEncoder, EveryRuleOfZerosAndTiesEqualsTheDefinition) {
  std::mt19937 random(29);
  for (const Zeros zeros : {Zeros::sign_kept, Zeros::negative_numbers, Zeros::never_negative, Zeros::always_negative}) {
    for (const Ties ties : {Ties::even, Ties::towards_zero}) {
      SCOPED_TRACE(static_cast<int>(zeros) * 2 + static_cast<int>(ties));
      check_rule({.element = DType::float4_e2m1fn, .bits = 4, .rounds = true, .ties = ties, .zeros = zeros}, false,
                 random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// A run's numbers are near each other, and so is the exponent that puts them in the element's range, but for one of
// four.
Case powers_of(bool multiplies, int trial, const std::vector<std::uint16_t>& halves, std::mt19937& random) {
  Case made{.runs = {5, halves.size()}, .operands = {}, .numbers = reinterpret_cast<const std::byte*>(halves.data())};
  for (std::size_t first = 0; first < halves.size(); first += made.runs.size()) {
    const int field = halves[first] >> 7 & 255, size = std::clamp(field - 127 - trial % 24 + 16, -102, 102);
    const int exponent = random() % 4 == 0 ? static_cast<int>(random() % 206) - 103 : multiplies ? -size : size;
    made.operands.push_back({.factor = std::ldexp(1.0f, exponent)});
  }
  return made;
}

struct AllBfloat16 {
  std::vector<std::uint16_t> halves = std::vector<std::uint16_t>(1 << 16);
  std::vector<float> numbers;

  AllBfloat16() {
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i] = static_cast<std::uint16_t>(i);
      numbers.push_back(float_of(static_cast<std::uint32_t>(i) << 16));
    }
  }
};

TEST(RunEncoder, EveryBfloat16ByPowersOfTwoEqualsTheDefinition) {
  std::mt19937 random(43);
  const auto [halves, numbers] = AllBfloat16();
  for (const auto& [element, bits] :
       {std::pair{DType::float8_e4m3fn, 8}, std::pair{DType::float8_e5m2, 8}, std::pair{DType::float6_e2m3fn, 6},
        std::pair{DType::float6_e3m2fn, 6}, std::pair{DType::float4_e2m1fn, 4}}) {
    SCOPED_TRACE(name(element));
    for (int trial = 0; trial < 24; trial += 3) {
      const ElementRule rule{.element = element, .bits = bits, .multiplies = trial % 2 == 0};
      const Case given = powers_of(rule.multiplies, trial, halves, random);
      check_targets(rule, DType::float32, {.numbers = DType::bfloat16}, given,
                    defined(rule, DType::float32, false, given.runs, numbers, given.operands));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Of few digits, of many, and those that make the quotient of a mantissa nearly halfway between two codes.
float scale_of(int trial, std::mt19937& random) {
  const float mantissa = static_cast<float>(128 + random() % 128), middle = static_cast<float>(17 + random() % 16 * 2);
  const float near = float_of(bits_of(mantissa / middle) + random() % 5 - 2);
  const float digits = trial % 4 == 0   ? 1.0f
                       : trial % 4 == 1 ? mantissa
                       : trial % 4 == 2 ? near
                                        : 1.0f + static_cast<float>(random()) * 0x1p-32f;
  return std::ldexp(digits, static_cast<int>(random() % 60) - 30);
}

// Of codes of 8 bits, by each kernel that stores them.
TEST(RunEncoder, StoresThatBypassTheCacheStoreTheSame) {
  constexpr Runs runs{7, 4096};
  std::mt19937 random(53);
  for (const Target target : supported_targets()) {
    for (int trial = 0; trial < 48; ++trial) {
      const ElementRule rule{.element = trial % 2 == 0 ? DType::float8_e4m3fn : DType::float8_e5m2,
                             .multiplies = trial % 3 == 0};
      std::vector<Operand> operands(runs.runs());
      for (Operand& operand : operands) operand.factor = scale_of(trial % 8 < 4 ? 0 : trial, random);
      std::vector<float> numbers = numbers_of(runs.count, trial % 5 != 0, operands.front().factor, random);
      const std::vector<std::uint16_t> halves = cut_to_bfloat16(numbers);
      for (const DType read : {DType::float32, DType::bfloat16}) {
        const void* const from = read == DType::float32 ? static_cast<const void*>(numbers.data()) : halves.data();
        const RunEncoder encoder(rule, DType::bfloat16, {.numbers = read}, target);
        std::vector<kernels::MantissaTable> tables(operands.size());
        bool has_tables = read == DType::bfloat16 && trial % 4 >= 2;
        for (std::size_t i = 0; i < tables.size() && has_tables; ++i) {
          has_tables = encoder.make_table(operands[i], tables[i]);
        }
        const auto codes = [&](bool bypasses_cache) {
          ResultVector<std::byte> made(runs.count);
          encoder.run(static_cast<const std::byte*>(from), runs.count, operands.data(), runs.shift, made.data(),
                      {.bypasses_cache = bypasses_cache}, has_tables ? tables.data() : nullptr);
          kernels::ops_of(target).stream_fence();
          return made;
        };
        ASSERT_EQ(codes(true), codes(false)) << name(target) << " of " << name(read);
      }
    }
  }
}

TEST(RunEncoder, TablesOfMantissasEqualTheDefinition) {
  std::mt19937 random(47);
  const auto [halves, numbers] = AllBfloat16();
  for (const Target target : supported_targets()) {
    std::size_t tables_made = 0;
    for (int trial = 0; trial < 32; ++trial) {
      const ElementRule rule{.element = trial % 8 < 6 ? DType::float8_e4m3fn : DType::float8_e5m2,
                             .multiplies = trial % 3 == 0,
                             .rounds = trial % 5 == 0};
      const Runs runs{trial % 2 == 0 ? 13U : kernels::shift_of_all, trial % 2 == 0 ? halves.size() - 7 : halves.size()};
      std::vector<Operand> operands(runs.runs());
      for (Operand& operand : operands) operand.factor = scale_of(trial, random);
      const RunEncoder encoder(rule, DType::bfloat16, {.numbers = DType::bfloat16}, target);
      std::vector<kernels::MantissaTable> tables(operands.size());
      bool is_made = true;
      for (std::size_t i = 0; i < tables.size(); ++i) is_made = is_made && encoder.make_table(operands[i], tables[i]);
      if (!is_made) continue;
      ++tables_made;
      const std::vector<float> read(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(runs.count));
      std::vector<std::byte> made(runs.count);
      encoder.run(reinterpret_cast<const std::byte*>(halves.data()), runs.count, operands.data(), runs.shift,
                  made.data(), {}, tables.data());
      ASSERT_EQ(made, defined(rule, DType::bfloat16, false, runs, read, operands))
          << name(target) << " factor " << operands.front().factor;
    }
    if (kernels::ops_of(target).find_encode_mantissas({.element = DType::float8_e4m3fn, .numbers = DType::bfloat16})) {
      EXPECT_GT(tables_made, 24u) << name(target);
    }
  }
}

// Of other exponents than those that they were made for.
TEST(RunEncoder, TablesOfMantissasMoveWithTheExponentOfTheScale) {
  std::mt19937 random(61);
  for (const Target target : supported_targets()) {
    for (int trial = 0; trial < 8; ++trial) {
      const ElementRule rule{.element = trial % 2 == 0 ? DType::float8_e4m3fn : DType::float8_e5m2,
                             .multiplies = trial % 3 == 0};
      const RunEncoder encoder(rule, DType::bfloat16, {.numbers = DType::bfloat16}, target);
      if (!encoder.has_tables()) continue;
      std::array<Operand, MantissaTables::count> operands;
      for (Operand& operand : operands) operand.factor = scale_of(trial, random);
      const MantissaTables known(encoder, operands);
      for (std::uint32_t i = 0; i < operands.size(); ++i) {
        Operand moved = operands[i];
        moved.factor = std::ldexp(moved.factor, static_cast<int>(random() % 100) - 50);
        kernels::MantissaTable found{}, made{};
        const bool is_made = encoder.make_table(moved, made);
        ASSERT_EQ(known.find(0x3f800000 | i << 16, moved, found), is_made);
        if (!is_made) continue;
        EXPECT_TRUE(std::ranges::equal(found.differences, made.differences));
        EXPECT_TRUE(std::ranges::equal(found.first, made.first));
        EXPECT_TRUE(std::ranges::equal(found.last, made.last));
        EXPECT_EQ(found.base, made.base);
        EXPECT_EQ(found.below_normal, made.below_normal);
        moved.factor = std::nextafter(moved.factor, 0.0f);
        EXPECT_FALSE(known.find(0x3f800000 | i << 16, moved, found));
      }
    }
  }
}

void check_integer_steps(bool is_offset, const Case& given, const std::vector<std::byte>& right) {
  const ElementRule rule{.element = DType::int8, .bits = 4, .rounds = true};
  for (const Target target : supported_targets()) {
    const RunEncoder encoder(rule, DType::bfloat16, {.numbers = DType::bfloat16, .is_offset = is_offset}, target);
    EXPECT_EQ(encoder.has_integer_steps(), kernels::ops_of(target).encode_integer_steps != nullptr);
    if (!encoder.has_integer_steps()) continue;
    std::vector<std::byte> made(right.size());
    encoder.run_integer_steps(given.numbers, given.runs.count, given.operands.data(), given.runs.shift, made.data(),
                              {});
    ASSERT_EQ(made, right) << name(target) << " runs of 2^" << given.runs.shift << " factor "
                           << given.operands.front().factor;
  }
}

// All finite numbers, and scales of all kinds.
TEST(RunEncoder, StepsOfIntegersEqualTheDefinition) {
  constexpr std::array<float, 6> rare = {0.0f, 1e-40f, 0x1p126f, -1.0f, 1.00001f, 0x1p-101f};
  const ElementRule rule{.element = DType::int8, .bits = 4, .rounds = true};
  std::mt19937 random(67);
  std::vector<std::uint16_t> halves;
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {
    if (is_finite(float_of(i << 16))) halves.push_back(static_cast<std::uint16_t>(i));
  }
  for (int trial = 0; trial < 48; ++trial) {
    const Runs runs{trial % 4 == 0 ? kernels::shift_of_all : trial % 4 == 1 ? 5U : 7U, halves.size() - random() % 70};
    std::shuffle(halves.begin(), halves.end(), random);
    std::vector<float> numbers;
    for (const std::uint16_t half : halves) numbers.push_back(float_of(std::uint32_t{half} << 16));
    numbers.resize(runs.count);
    std::vector<Operand> operands(runs.runs());
    for (Operand& operand : operands) {
      operand.factor =
          float_of(bits_of(std::ldexp(1.0f, static_cast<int>(random() % 220) - 110)) + (random() % 128 << 16));
      if (random() % 8 == 0) operand.factor = rare[random() % rare.size()];
      if (random() % 16 == 0) operand.zero = static_cast<float>(random() % 16) - 8.0f;
    }
    const bool is_offset = trial % 2 == 0;
    const Case given{runs, operands, reinterpret_cast<const std::byte*>(halves.data())};
    check_integer_steps(is_offset, given, defined(rule, DType::bfloat16, is_offset, runs, numbers, operands));
    if (testing::Test::HasFatalFailure()) return;
  }
}

// Each mantissa by each, where quotients are between 2^-4 and 2^9.
TEST(RunEncoder, EveryQuotientOfBfloat16BecomesTheDefinitionsInteger) {
  for (const int bits : {4, 8}) {
    const ElementRule rule{.element = DType::int8, .bits = bits, .rounds = true};
    for (std::uint32_t mantissa = 128; mantissa < 256; ++mantissa) {
      const Operand operand{.factor = static_cast<float>(mantissa) * 0x1p-20f};
      const std::uint32_t one = bits_of(operand.factor) >> 16;
      std::vector<std::uint16_t> halves;
      std::vector<float> numbers;
      for (std::uint32_t half = one - 4 * 128; half < one + 9 * 128; ++half) {
        for (const std::uint32_t sign : {0u, 0x8000u}) {
          halves.push_back(static_cast<std::uint16_t>(half | sign));
          numbers.push_back(float_of((half | sign) << 16));
        }
      }
      const Case given{.runs = {kernels::shift_of_all, halves.size()},
                       .operands = {operand},
                       .numbers = reinterpret_cast<const std::byte*>(halves.data())};
      const auto right = defined(rule, DType::bfloat16, false, given.runs, numbers, given.operands);
      check_targets(rule, DType::bfloat16, {.numbers = DType::bfloat16}, given, right);
      if (bits == 4) check_integer_steps(false, given, right);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// What the codes of scales stand for: E4M3 times a number, its inverse, or E8M0.
std::array<float, 256> factors_of(int trial, std::mt19937& random) {
  std::array<float, 256> factors{};
  const float global = std::ldexp(1.0f + static_cast<float>(random()) * 0x1p-32f, static_cast<int>(random() % 40) - 35);
  for (std::size_t code = 0; code < factors.size(); ++code) {
    const bool is_e4m3 = code > 0 && code < 0x7f;
    const float scale =
        is_e4m3 ? e4m3_number(static_cast<std::uint8_t>(code)) * (trial % 7 == 0 ? 1.0f : global) : 0.0f;
    if (trial % 3 == 0) {
      factors[code] = float_of(static_cast<std::uint32_t>(code) << mantissa_bits & infinity_bits);
    } else if (is_e4m3) {
      factors[code] = trial % 3 == 1 ? scale : 1.0f / scale;
    }
  }
  return factors;
}

// All finite numbers.
void check_steps(const ElementRule& rule, std::span<const float, 256> factors, unsigned run_shift, Target target,
                 std::mt19937& random) {
  const RunEncoder encoder(rule, DType::bfloat16, {.numbers = DType::bfloat16}, target);
  const std::unique_ptr<const kernels::StepTables> tables = encoder.make_steps(factors);
  ASSERT_NE(tables, nullptr);
  for (int trial = 0; trial < 12; ++trial) {
    const auto code = static_cast<std::uint8_t>(random() % 256);
    const float factor = factors[code];
    if (!(factor >= 0x1p-100f && factor <= 0x1p100f)) continue;
    std::vector<std::uint16_t> halves;
    std::vector<float> numbers;
    for (std::uint32_t i = 0; i < 1 << 16; ++i) {
      const float number = float_of(i << 16);
      if (!is_finite(number)) continue;
      halves.push_back(static_cast<std::uint16_t>(i));
      numbers.push_back(number);
    }
    const Runs runs{run_shift, halves.size() - random() % 2};
    numbers.resize(runs.count);
    const std::vector<std::uint8_t> scales(runs.runs(), code);
    std::vector<std::byte> made((runs.count + 1) / 2);
    encoder.run_steps(reinterpret_cast<const std::byte*>(halves.data()), runs.count, *tables, scales.data(), run_shift,
                      made.data(), {});
    const std::vector<Operand> operands(runs.runs(), {.factor = factor});
    ASSERT_EQ(made, defined(rule, DType::bfloat16, false, runs, numbers, operands)) << name(target) << ' ' << factor;
  }
}

TEST(RunEncoder, TablesOfStepsEqualTheDefinition) {
  std::mt19937 random(53);
  for (const Target target : supported_targets()) {
    if (kernels::ops_of(target).encode_steps == nullptr) continue;
    for (int trial = 0; trial < 24; ++trial) {
      const ElementRule rule{.element = DType::float4_e2m1fn,
                             .bits = 4,
                             .multiplies = trial % 2 == 0,
                             .rounds = trial % 5 == 0,
                             .ties = trial % 6 == 5 ? Ties::towards_zero : Ties::even};
      std::array<float, 256> factors = factors_of(trial, random);
      check_steps(rule, factors, trial % 2 == 0 ? 4 : 5, target, random);
      ElementRule other = rule;
      other.zeros = Zeros::negative_numbers;
      other.multiplies = false;
      for (float& factor : factors) factor = factor <= 1.0f ? factor : 0.0f;
      check_steps(other, factors, 4, target, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// Each run has the scale of its own code.
TEST(RunEncoder, TablesOfStepsFollowTheCodesOfScales) {
  std::mt19937 random(59);
  const std::array<float, 256> factors = factors_of(1, random);
  const ElementRule rule{.element = DType::float4_e2m1fn, .bits = 4};
  for (const unsigned shift : {4U, 5U}) {
    const Runs runs{shift, 1344};
    std::vector<std::uint8_t> scales;
    std::vector<Operand> operands;
    std::vector<std::uint16_t> halves;
    std::vector<float> numbers;
    for (std::size_t i = 0; i < runs.count; ++i) {
      if (i % runs.size() == 0) {
        scales.push_back(static_cast<std::uint8_t>(random() % 0x7e + 1));
        operands.push_back({.factor = factors[scales.back()]});
      }
      const float number = operands.back().factor * (static_cast<float>(random() % 4096) / 256 - 8);
      halves.push_back(static_cast<std::uint16_t>(bits_of(number) >> 16));
      numbers.push_back(float_of(bits_of(number) & 0xffff0000u));
    }
    for (const Target target : supported_targets()) {
      const RunEncoder encoder(rule, DType::float32, {.numbers = DType::bfloat16}, target);
      const std::unique_ptr<const kernels::StepTables> tables = encoder.make_steps(factors);
      if (tables == nullptr) continue;
      std::vector<std::byte> made(runs.count / 2);
      encoder.run_steps(reinterpret_cast<const std::byte*>(halves.data()), runs.count, *tables, scales.data(), shift,
                        made.data(), {});
      EXPECT_EQ(made, defined(rule, DType::float32, false, runs, numbers, operands)) << name(target);
    }
  }
}

void check_extents(const std::vector<float>& numbers, const std::byte* bytes, DType dtype, const Runs& runs) {
  std::vector<std::uint32_t> largest(runs.runs(), 5);
  std::vector<float> low(runs.runs(), -0.5f), high(runs.runs(), 0.5f);
  for (std::size_t i = 0; i < runs.count; ++i) {
    const std::size_t run = i / runs.size();
    largest[run] = std::max(largest[run], bits_of(numbers[i]) & magnitude_bits);
    low[run] = std::min(low[run], numbers[i]);
    high[run] = std::max(high[run], numbers[i]);
  }
  for (const Target target : supported_targets()) {
    const kernels::Ops& ops = kernels::ops_of(target);
    std::vector<std::uint32_t> found(runs.runs(), 5);
    std::vector<float> least(runs.runs(), -0.5f), most(runs.runs(), 0.5f);
    ops.largest_of_runs(bytes, dtype, runs.count, runs.shift, found.data());
    ops.range_of_runs(bytes, dtype, runs.count, runs.shift, least.data(), most.data());
    EXPECT_EQ(found, largest) << name(target) << ' ' << name(dtype);
    EXPECT_EQ(least, low) << name(target) << ' ' << name(dtype);
    EXPECT_EQ(most, high) << name(target) << ' ' << name(dtype);
  }
}

TEST(Runs, EveryTargetFindsTheirExtents) {
  std::mt19937 random(31);
  for (const std::size_t count : {64, 512, 1344}) {
    for (const unsigned shift : {4U, 5U, 7U, kernels::shift_of_all}) {
      for (const bool is_near : {false, true}) {
        std::vector<float> numbers = numbers_of(count, is_near, 0.75f, random);
        const Runs runs{shift, count};
        check_extents(numbers, reinterpret_cast<const std::byte*>(numbers.data()), DType::float32, runs);
        const std::vector<std::uint16_t> halves = cut_to_bfloat16(numbers);
        check_extents(numbers, reinterpret_cast<const std::byte*>(halves.data()), DType::bfloat16, runs);
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::block
