// SPDX-License-Identifier: Apache-2.0
// Every kernel whose source is wider than 8 bits, on every target that this CPU has, against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "codec/reference_cast.hpp"
#include "dtype/formatted.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::kernels {
namespace {

using Bytes = std::vector<std::byte>;
using Codes = std::vector<std::uint64_t>;

constexpr DType wide_sources[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16, DType::int64,
                                  DType::uint64,  DType::int32,   DType::uint32,  DType::int16,    DType::uint16};

std::vector<DType> numbers_except(DType source) {
  std::vector<DType> result;
  for (const DType dtype : all_dtypes()) {
    if (dtype != source && dtype != DType::string) result.push_back(dtype);
  }
  return result;
}

struct NamedPolicy {
  std::string name;
  codec::Policy policy;
};

// All that matter to the pair.
std::vector<NamedPolicy> policies(DType from, DType to) {
  std::vector<NamedPolicy> result;
  const auto add = [&result](std::string name, auto change) {
    codec::Policy policy;
    change(policy);
    result.push_back({std::move(name), policy});
  };
  add("default", [](codec::Policy&) {});
  if (to == DType::float8_e8m0fnu) {
    for (const RoundMode mode : {RoundMode::up, RoundMode::down, RoundMode::nearest}) {
      for (const bool saturate : {true, false}) {
        add("round_mode " + std::to_string(static_cast<int>(mode)) + (saturate ? "" : " unsaturated"),
            [=](codec::Policy& policy) {
              policy.e8m0_rounding = mode;
              policy.saturate = saturate;
            });
      }
      add("round_mode " + std::to_string(static_cast<int>(mode)) + " keeps infinity", [=](codec::Policy& policy) {
        policy.e8m0_rounding = mode;
        policy.keeps_infinity = true;
      });
    }
  } else if (to == DType::float4_e2m1fn) {
    add("float4 nan is six", [](codec::Policy& policy) { policy.float4_nan_is_zero = false; });
  } else if (family(to) == Family::floating && bit_width(to) == 8) {
    add("unsaturated", [](codec::Policy& policy) { policy.saturate = false; });
    add("keeps infinity", [](codec::Policy& policy) { policy.keeps_infinity = true; });
    add("unsaturated, keeps infinity", [](codec::Policy& policy) {
      policy.saturate = false;
      policy.keeps_infinity = true;
    });
  } else if (family(to) != Family::boolean && (family(to) == Family::floating || family(from) != Family::floating)) {
    add("saturate", [](codec::Policy& policy) { policy.range = codec::RangeRule::saturate; });
  } else if (family(to) == Family::integer) {
    for (const bool nearest : {false, true}) {
      for (const bool saturate : {false, true}) {
        add(std::string(saturate ? "saturate" : "wrap") + (nearest ? " nearest" : " trunc"),
            [=](codec::Policy& policy) {
              policy.range = saturate ? codec::RangeRule::saturate : codec::RangeRule::wrap;
              policy.rounding = nearest ? Rounding::nearest_even : Rounding::automatic;
            });
      }
    }
  }
  return result;
}

Bytes pack(DType dtype, const Codes& codes) {
  Bytes bytes(storage_bytes(dtype, codes.size()));
  for (std::size_t i = 0; i < codes.size(); ++i) codec::store_code(dtype, bytes.data(), i, codes[i]);
  return bytes;
}

std::uint64_t code_of(DType dtype, double value) {
  std::uint64_t code = 0;
  EXPECT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(&value), DType::float64,
                                    reinterpret_cast<std::byte*>(&code), dtype, 1, {.saturate = true}));
  return dtype == DType::float64 ? std::bit_cast<std::uint64_t>(value) : code;
}

double value_of(DType dtype, std::uint64_t code) {
  double value = 0;
  EXPECT_TRUE(codec::reference_cast(reinterpret_cast<const std::byte*>(&code), dtype,
                                    reinterpret_cast<std::byte*>(&value), DType::float64, 1, {}));
  return value;
}

// Positive values at which a conversion to `to` changes its answer: its numbers, and the midpoints between them.
std::vector<double> turning_points(DType to) {
  std::vector<double> numbers;
  if (to == DType::float32 || to == DType::float64) {
    for (int exponent = -149; exponent <= 128; ++exponent) {
      for (const double significand : {1.0, 1.0 + 0x1p-24, 1.0 + 0x1p-23, 1.5, 2.0 - 0x1p-23, 2.0 - 0x1p-24}) {
        numbers.push_back(std::ldexp(significand, exponent));
      }
    }
  } else if (family(to) == Family::floating) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << bit_width(to); ++code) {
      const double value = value_of(to, code);
      if (value >= 0 && !std::isinf(value)) numbers.push_back(value);
    }
    std::sort(numbers.begin(), numbers.end());
    const std::size_t size = numbers.size();
    const double beyond = 2 * numbers[size - 1] - numbers[size - 2];
    for (std::size_t i = 0; i + 1 < size; ++i) numbers.push_back((numbers[i] + numbers[i + 1]) / 2);
    numbers.insert(numbers.end(), {(numbers[size - 1] + beyond) / 2, beyond, 2 * beyond});
  } else {
    for (int bit = 0; bit <= 65; ++bit) {
      for (const double offset : {-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5}) {
        numbers.push_back(std::abs(std::ldexp(1.0, bit) + offset));
      }
    }
  }
  return numbers;
}

Codes random_codes(int bits, std::size_t count) {
  std::mt19937_64 random(20240229);
  Codes codes(count);
  // Of every magnitude for integers, of every exponent for floats.
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t code = random();
    codes[i] = i % 2 == 0 ? code : static_cast<std::uint64_t>(static_cast<std::int64_t>(code) >> (random() % 64));
    if (bits < 64) codes[i] &= (std::uint64_t{1} << bits) - 1;
  }
  return codes;
}

Codes float_codes(DType from, DType to) {
  const int bits = bit_width(from);
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  const int mantissa_bits = facts(from).mantissa_bits;
  Codes codes;
  const auto add = [&codes, sign](std::uint64_t code) {
    codes.push_back(code & ~sign);
    codes.push_back(code | sign);
  };
  for (const double value : turning_points(to)) {
    const std::uint64_t code = code_of(from, value);
    for (const int offset : {-1, 0, 1}) add(code + static_cast<std::uint64_t>(offset));
  }
  // Ends of all binades, among them the subnormals, infinities, and NaN with payloads.
  for (std::uint64_t exponent = 0; exponent < std::uint64_t{1} << facts(from).exponent_bits; ++exponent) {
    const std::uint64_t base = exponent << mantissa_bits;
    const std::uint64_t last = (std::uint64_t{1} << mantissa_bits) - 1;
    for (const std::uint64_t mantissa : {std::uint64_t{0}, std::uint64_t{1}, last / 2, last / 2 + 1, last - 1, last}) {
      add(base | mantissa);
    }
  }
  const std::uint64_t infinity = ((std::uint64_t{1} << facts(from).exponent_bits) - 1) << mantissa_bits;
  for (int bit = 0; bit < mantissa_bits; ++bit) {
    add(infinity | std::uint64_t{1} << bit);
    add(infinity | std::uint64_t{3} << bit >> 1 | std::uint64_t{1} << (mantissa_bits - 1));
  }
  return codes;
}

Codes integer_codes(DType from, DType to) {
  const int bits = bit_width(from);
  const std::uint64_t mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  Codes codes;
  const auto add = [&codes, mask](std::uint64_t code) {
    codes.push_back(code & mask);
    codes.push_back((0 - code) & mask);
  };
  for (int bit = 0; bit < bits; ++bit) {
    for (std::uint64_t offset = 0; offset < 6; ++offset) {
      add((std::uint64_t{1} << bit) + offset);
      add((std::uint64_t{1} << bit) - offset);
      // A tie, or one off it, when cut to 24, 11, 8, 4 or 3 significant bits.
      for (const int kept : {53, 24, 11, 8, 4, 3, 2}) {
        if (bit >= kept) add((std::uint64_t{1} << bit) + (std::uint64_t{1} << (bit - kept)) + offset - 3);
        if (bit >= kept) add((std::uint64_t{1} << bit) + (std::uint64_t{3} << (bit - kept)) + offset - 3);
      }
    }
  }
  for (const double value : turning_points(to)) {
    if (value < 9e18) {
      for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
        add(static_cast<std::uint64_t>(value) + offset);
      }
    }
  }
  std::sort(codes.begin(), codes.end());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return codes;
}

// All codes of types of 16 bits; of others, those where something happens, and random ones.
Codes inputs(DType from, DType to) {
  Codes codes;
  if (bit_width(from) == 16) {
    for (std::uint64_t code = 0; code < 0x10000; ++code) codes.push_back(code);
  } else {
    codes = family(from) == Family::floating ? float_codes(from, to) : integer_codes(from, to);
    const Codes more = random_codes(bit_width(from), 6007);
    codes.insert(codes.end(), more.begin(), more.end());
  }
  codes.push_back(codes[1]);  // an odd number, so that there is a tail
  if (codes.size() % 2 == 0) codes.push_back(codes[2]);
  return codes;
}

// Runs a kernel between guard bytes, at addresses that are aligned for nothing.
Bytes run(const Kernel& kernel, const std::byte* src, std::size_t count, const codec::Policy& policy,
          std::size_t misalignment) {
  constexpr std::size_t guard = 64;
  constexpr std::byte canary{0xa5};
  const std::size_t src_bytes = storage_bytes(kernel.from, count);
  const std::size_t dst_bytes = storage_bytes(kernel.to, count);
  Bytes input(src_bytes + misalignment);
  if (src_bytes != 0) std::memcpy(input.data() + misalignment, src, src_bytes);
  Bytes output(dst_bytes + 2 * guard + misalignment, canary);
  std::byte* const dst = output.data() + guard + misalignment;
  kernel.run(input.data() + misalignment, dst, count, policy);
  for (std::size_t i = 0; i < guard; ++i) {
    EXPECT_EQ(*(dst - 1 - i), canary) << "wrote before the target";
    EXPECT_EQ(dst[dst_bytes + i], canary) << "wrote behind the target";
  }
  return Bytes(dst, dst + dst_bytes);
}

::testing::AssertionResult same(const Kernel& kernel, const Bytes& src, const Bytes& expected, const Bytes& actual,
                                std::size_t count) {
  if (expected == actual) return ::testing::AssertionSuccess();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t want = codec::load_code(kernel.to, expected.data(), i);
    const std::uint64_t got = codec::load_code(kernel.to, actual.data(), i);
    if (want != got) {
      return ::testing::AssertionFailure() << formatted("element {}: source code {:#x} gives {:#x}, not {:#x}", i,
                                                        codec::load_code(kernel.from, src.data(), i), got, want);
    }
  }
  return ::testing::AssertionFailure() << "tail bits are not zero";
}

std::string describe(Target target, const Kernel& kernel, const std::string& policy) {
  return std::string(name(kernel.from)) + " -> " + std::string(name(kernel.to)) + " on " + std::string(name(target)) +
         ", " + policy;
}

class WideKernel : public ::testing::TestWithParam<DType> {};

TEST_P(WideKernel, EqualsReference) {
  const DType from = GetParam();
  for (const DType to : numbers_except(from)) {
    const Codes codes = inputs(from, to);
    const Bytes src = pack(from, codes);
    for (const auto& [policy_name, policy] : policies(from, to)) {
      Bytes expected(storage_bytes(to, codes.size()));
      ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, codes.size(), policy));
      for (const Target target : supported_targets()) {
        const Kernel* const kernel = find_kernel(target, from, to);
        ASSERT_NE(kernel, nullptr);
        const Bytes actual = run(*kernel, src.data(), codes.size(), policy, 3);
        EXPECT_TRUE(same(*kernel, src, expected, actual, codes.size())) << describe(target, *kernel, policy_name);
      }
    }
  }
}

TEST_P(WideKernel, EveryShortLengthAndInPlace) {
  const DType from = GetParam();
  for (const DType to : numbers_except(from)) {
    const Bytes src = pack(from, random_codes(bit_width(from), 201));
    for (const Target target : supported_targets()) {
      const Kernel* const kernel = find_kernel(target, from, to);
      ASSERT_NE(kernel, nullptr);
      for (std::size_t count = 0; count <= 200; ++count) {
        // Reference once per length is cheap: lengths are short.
        Bytes expected(storage_bytes(to, count));
        ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, count, {}));
        const Bytes actual = run(*kernel, src.data(), count, {}, count % 7);
        ASSERT_TRUE(same(*kernel, src, expected, actual, count)) << describe(target, *kernel, "length ") << count;
        if (bit_width(to) > bit_width(from)) continue;
        Bytes in_place = src;
        kernel->run(in_place.data(), in_place.data(), count, {});
        in_place.resize(expected.size());
        ASSERT_TRUE(same(*kernel, src, expected, in_place, count)) << describe(target, *kernel, "in place ") << count;
      }
    }
  }
}

// Saturation asks once a block whether there is a number beyond int32: without one, and with one at every place.
TEST_P(WideKernel, SaturatesWithAndWithoutNumbersBeyondInt32) {
  const DType from = GetParam();
  if (family(from) != Family::floating) return;
  const std::uint64_t infinity = code_of(from, std::numeric_limits<double>::infinity());
  Codes beyond = {infinity, infinity | std::uint64_t{1} << (bit_width(from) - 1), infinity + 1, code_of(from, NAN)};
  for (const double value : {0x1p31, 3e9, 0x1p32, 5e9, 0x1p33, 0x1p63, 0x1p64, 1e30, -0x1p31, -3e9, -0x1p63, -1e30}) {
    beyond.push_back(code_of(from, value));
  }
  for (const DType to : numbers_except(from)) {
    if (family(to) != Family::integer) continue;
    Codes codes = inputs(from, to);
    std::erase_if(codes, [&](std::uint64_t code) { return !(std::abs(value_of(from, code)) < 0x1p31); });
    const std::size_t plain = codes.size();
    for (std::size_t place = 0; place < 67; ++place) {
      for (const std::uint64_t code : beyond) {
        const std::size_t first = codes.size();
        for (std::size_t i = 0; i < 67; ++i) codes.push_back(codes[(place * 67 + i) % plain]);
        codes[first + place] = code;
      }
    }
    const Bytes src = pack(from, codes);
    for (const Rounding rounding : {Rounding::automatic, Rounding::nearest_even}) {
      codec::Policy policy;
      policy.range = codec::RangeRule::saturate;
      policy.rounding = rounding;
      Bytes expected(storage_bytes(to, codes.size()));
      ASSERT_TRUE(codec::reference_cast(src.data(), from, expected.data(), to, codes.size(), policy));
      for (const Target target : supported_targets()) {
        const Kernel* const kernel = find_kernel(target, from, to);
        ASSERT_NE(kernel, nullptr);
        const Bytes actual = run(*kernel, src.data(), codes.size(), policy, 1);
        EXPECT_TRUE(same(*kernel, src, expected, actual, codes.size())) << describe(target, *kernel, "saturate");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, WideKernel, ::testing::ValuesIn(wide_sources),
                         [](const auto& source) { return std::string(name(source.param)); });

}  // namespace
}  // namespace tensorcast::kernels
