// SPDX-License-Identifier: Apache-2.0
#include "kernels/rounded.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "codec/reference_cast.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/float_environment.hpp"
#include "kernels/ops.hpp"

namespace tensorcast::kernels {
namespace {

constexpr Rounding every_word[] = {Rounding::nearest_even,    Rounding::nearest_away,    Rounding::toward_zero,
                                   Rounding::toward_positive, Rounding::toward_negative, Rounding::to_odd,
                                   Rounding::stochastic};

// Numbers with few bits, and those around the midpoints of types, of all sizes.
std::uint64_t code_for(DType from, std::size_t i, std::mt19937_64& random) {
  const int bits = bit_width(from);
  if (bits <= 16) return (i * 7) & (~std::uint64_t{0} >> (64 - bits));
  const std::uint64_t any = random() >> (64 - bits);
  if (family(from) == Family::integer) return (any >> (random() % static_cast<unsigned>(bits))) ^ (i % 3 == 0 ? 1 : 0);
  // Exponents that narrower types have, and mantissas that end in zeros or ones.
  const int mantissa = row(from).format.mantissa_bits;
  const std::uint64_t low = std::uint64_t{1} << (random() % static_cast<unsigned>(mantissa));
  std::uint64_t code = any;
  if (i % 4 != 0) {
    const double x =
        std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52, static_cast<int>(random() % 60) - 40);
    code =
        from == DType::float64 ? std::bit_cast<std::uint64_t>(x) : std::bit_cast<std::uint32_t>(static_cast<float>(x));
    code |= any & std::uint64_t{1} << (bits - 1);
  }
  if (i % 4 == 1) return code & ~(low - 1);
  if (i % 4 == 2) return code | (low - 1);
  return code;
}

std::vector<std::byte> numbers_of(DType from, std::size_t count) {
  std::mt19937_64 random(static_cast<unsigned>(from) + 1);
  std::vector<std::byte> data(storage_bytes(row(from), count));
  for (std::size_t i = 0; i < count; ++i) codec::store_code(from, data.data(), i, code_for(from, i, random));
  return data;
}

void expect_equal_to_reference(Target target, DType from, DType to, const std::vector<std::byte>& source,
                               std::size_t count, const CastOptions& options) {
  const codec::Policy policy = codec::policy_of(options, from, to);
  if (from == to || !policy.has_word(row(to))) return;
  constexpr std::uint64_t first = 0x1'0000'0003;  // the words of a block may begin in its middle
  std::vector<std::byte> wanted(storage_bytes(row(to), count)), found(wanted.size());
  ASSERT_TRUE(codec::reference_cast(source.data(), from, wanted.data(), to, count, policy, first).ok());
  RoundedConversion(target, from, to, policy).run(source.data(), found.data(), count, first);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(codec::load_code(to, found.data(), i), codec::load_code(to, wanted.data(), i))
        << name(target) << ": " << name(from) << " code " << codec::load_code(from, source.data(), i) << " to "
        << name(to) << " by word " << static_cast<int>(options.rounding) << ", element " << i;
  }
}

TEST(RoundedConversion, EqualsTheReference) {
  constexpr std::size_t count = 2500;
  for (const DType from : all_dtypes()) {
    if (family(from) == Family::text) continue;
    const std::vector<std::byte> source = numbers_of(from, count);
    for (const DType to : all_dtypes()) {
      if (family(to) == Family::text) continue;
      for (const Rounding word : every_word) {
        CastOptions options{.rounding = word};
        if (word == Rounding::stochastic) options.seed = 0x123456789abcdef0;
        for (const Target target : supported_targets()) {
          expect_equal_to_reference(target, from, to, source, count, options);
        }
        options.saturate = false;
        options.out_of_range = OutOfRange::saturate;
        expect_equal_to_reference(active_target(), from, to, source, count, options);
      }
    }
  }
}

#if defined(__x86_64__)

// The caller may read subnormal numbers as zero, flush them, or round down or up: 0 stays 0, not -0.
TEST(RoundedConversion, DoesNotDependOnTheCallersEnvironment) {
  constexpr std::size_t count = 333;
  const DType sources[] = {DType::float64, DType::float32, DType::bfloat16, DType::int64,
                           DType::uint64,  DType::int32,   DType::uint32,   DType::int16};
  for (const DType from : sources) {
    std::vector<std::byte> source = numbers_of(from, count);
    for (std::size_t i = 0; i < 64; ++i) codec::store_code(from, source.data(), i, i);  // 0 and subnormal numbers
    for (const DType to : all_dtypes()) {
      if (family(to) == Family::text) continue;
      for (const Rounding word : every_word) {
        for (const unsigned mode : {0x8040u, 0x2000u, 0x4000u, 0x6000u}) {
          for (const Target target : supported_targets()) {
            const codec::Policy policy = codec::policy_of({.rounding = word}, from, to);
            if (from == to || !policy.has_word(row(to))) continue;
            std::vector<std::byte> wanted(storage_bytes(row(to), count)), found(wanted.size());
            ASSERT_TRUE(codec::reference_cast(source.data(), from, wanted.data(), to, count, policy, 0).ok());
            const RoundedConversion conversion(target, from, to, policy);
            const FloatEnvironment before = float_environment();
            restore(before | mode);
            conversion.run(source.data(), found.data(), count, 0);
            restore(before);
            ASSERT_EQ(found, wanted) << name(target) << ": " << name(from) << " to " << name(to) << " by word "
                                     << static_cast<int>(word) << " with MXCSR " << mode;
          }
        }
      }
    }
  }
}

#endif

TEST(RoundedConversion, EqualsTheReferenceForEveryFloatOf16Bits) {
  constexpr std::size_t count = 65536;
  for (const DType from : {DType::float16, DType::bfloat16}) {
    const std::vector<std::byte> source = numbers_of(from, count);
    for (const DType to : all_dtypes()) {
      if (family(to) != Family::floating || bit_width(to) > 16) continue;
      for (const Rounding word : every_word) {
        for (const bool saturate : {true, false}) {
          for (const Target target : supported_targets()) {
            expect_equal_to_reference(target, from, to, source, count, {.saturate = saturate, .rounding = word});
          }
        }
      }
    }
  }
}

TEST(RandomWords, AreThoseOfTheCodec) {
  constexpr std::size_t blocks = 37;
  for (const Target target : supported_targets()) {
    std::vector<std::uint32_t> words(4 * blocks);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0xfffffff0}}) {
      ops_of(target).random_words(0x1122334455667788, first, blocks, words.data());
      for (std::size_t i = 0; i < words.size(); ++i) {
        ASSERT_EQ(words[i], codec::random_word(0x1122334455667788, 4 * first + i)) << name(target) << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tensorcast::kernels
