// SPDX-License-Identifier: Apache-2.0
// Reports against sums over elements by the reference, on all targets, in blocks of any size.
#include "report/reporter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "codec/reference_cast.hpp"
#include "kernels/kernel.hpp"
#include "options/cast_report.hpp"
#include "report/code_outcome.hpp"

namespace tensorcast::report {
namespace {

struct Conversion {
  const std::byte* src = nullptr;
  DType from = DType::undefined;
  std::byte* dst = nullptr;
  DType to = DType::undefined;
  std::size_t count = 0;
};

void convert(const Conversion& c, const codec::Policy& policy) {
  if (policy.scale == 1.0 && c.from != c.to) {
    kernels::find_kernel(Target::portable, c.from, c.to)->run(c.src, c.dst, c.count, policy);
  } else {
    ASSERT_TRUE(codec::reference_cast(c.src, c.from, c.dst, c.to, c.count, policy).ok());
  }
}

const std::vector<CastOptions> all_options = {CastOptions{},
                                              CastOptions{.saturate = false, .out_of_range = OutOfRange::saturate},
                                              CastOptions{.opset = 23, .rounding = Rounding::nearest_even}};

std::vector<DType> numeric_types() {
  std::vector<DType> types;
  for (const DType dtype : all_dtypes()) {
    if (dtype != DType::string) types.push_back(dtype);
  }
  return types;
}

struct Sums {
  CastReport counts;  // and maxima
  long double signal = 0.0L, noise = 0.0L;
};

class Expectation {
 public:
  Expectation(DType from, DType to, const codec::Policy& policy) : from_(from), to_(to), policy_(policy) {}

  Sums of(const std::byte* data, std::size_t count) {
    std::map<std::uint64_t, std::uint64_t> codes;
    for (std::size_t i = 0; i < count; ++i) ++codes[codec::load_code(from_, data, i)];
    Sums sums;
    sums.counts.count = count;
    for (const auto& [code, times] : codes) {
      const CodeOutcome outcome = code_outcome(from_, code, to_, policy_);
      add_counts(outcome, times, sums.counts);
      const auto n = static_cast<long double>(times);
      sums.signal += outcome.source * outcome.source * n;
      sums.noise += static_cast<long double>(outcome.error) * outcome.error * n;
    }
    return sums;
  }

 private:
  DType from_, to_;
  codec::Policy policy_;
};

bool is_near(double got, long double want, double tolerance) {
  const auto expected = static_cast<double>(want);
  return got == expected || std::fabs(got - expected) <= tolerance * std::fabs(expected) + 1e-300;
}

void expect_report(const CastReport& got, const Sums& want, double tolerance, const std::string& where) {
  CastReport numbers = want.counts;
  numbers.signal_power = static_cast<double>(want.signal);
  numbers.noise_power = static_cast<double>(want.noise);
  options::for_each(options::cast_report, [&](const auto& number) {
    const auto have = got.*number.member, wanted = numbers.*number.member;
    if constexpr (std::is_floating_point_v<decltype(have)>) {
      const bool is_sum = number.merged == options::Merged::sum;
      EXPECT_TRUE(is_near(have, wanted, is_sum ? tolerance : 1e-15)) << where << " " << number.name << " " << have;
    } else {
      EXPECT_EQ(have, wanted) << where << " " << number.name;
    }
  });
}

bool are_same(const CastReport& a, const CastReport& b) {
  bool same = true;
  options::for_each(options::cast_report,
                    [&](const auto& number) { same = same && a.*number.member == b.*number.member; });
  return same;
}

CastReport report_of(Target target, const Conversion& whole, const codec::Policy& policy, std::size_t piece_elements) {
  const Reporter reporter(whole.from, whole.to, policy, target);
  ReportAccumulator accumulator;
  for (std::size_t first = 0; first < whole.count; first += piece_elements) {
    reporter.add({whole.src + storage_bytes(whole.from, first), whole.dst + storage_bytes(whole.to, first),
                  std::min(piece_elements, whole.count - first)},
                 accumulator);
  }
  return reporter.report(accumulator);
}

void check(DType from, const std::vector<std::byte>& source, std::size_t elements, DType to,
           const CastOptions& options) {
  const Result<codec::Policy> policy = codec::resolve_policy(options, from, to);
  if (!policy) return;
  std::vector<std::byte> target(storage_bytes(to, elements));
  convert({source.data(), from, target.data(), to, elements}, *policy);
  const Conversion whole{source.data(), from, target.data(), to, elements};
  const std::string pair = std::string(name(from)) + " to " + std::string(name(to));
  const CastReport first = report_of(Target::portable, whole, *policy, 8192);
  expect_report(first, Expectation(from, to, *policy).of(source.data(), elements), 1e-11, pair);
  for (const Target on : supported_targets()) {
    EXPECT_TRUE(are_same(report_of(on, whole, *policy, piece_multiple), first)) << pair << " on " << name(on);
  }
}

std::vector<std::byte> random_bytes(std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

std::vector<std::byte> encoded(DType dtype, const std::vector<double>& numbers) {
  std::vector<std::byte> out(storage_bytes(dtype, numbers.size()));
  const auto* const bytes = reinterpret_cast<const std::byte*>(numbers.data());
  const Result<codec::Policy> policy =
      codec::resolve_policy({.out_of_range = OutOfRange::saturate}, DType::float64, dtype);
  convert({bytes, DType::float64, out.data(), dtype, numbers.size()}, *policy);
  return out;
}

// Products that float64 holds, and others.
constexpr double short_and_long_scales[] = {0.25, -static_cast<double>(0.7F), 0.1, 1.0 + 0x1p-29, 0x1p-810};

TEST(Report, SlowOfEveryCodeOf16Bits) {
  for (const DType from : numeric_types()) {
    if (bit_width(from) != 16) continue;
    constexpr std::size_t elements = 65536 + 5;
    std::vector<std::uint16_t> codes(elements);
    for (std::size_t i = 0; i < elements; ++i) codes[i] = static_cast<std::uint16_t>(i * 40503);  // every code, mixed
    std::vector<std::byte> source(elements * 2);
    std::memcpy(source.data(), codes.data(), source.size());
    for (const DType to : numeric_types()) {
      check(from, source, elements, to, {});
      for (const CastOptions& options : all_options) {
        check(from, source, elements / 8, to, options);
        for (const std::size_t count : {1, 2, 17, 31, 33, 65}) check(from, source, count, to, options);
        for (const double scale : short_and_long_scales) {
          CastOptions scaled = options;
          scaled.scale = scale;
          check(from, source, elements / 8, to, scaled);
          check(from, source, 33, to, scaled);
        }
      }
    }
  }
}

TEST(Report, SlowOfManyNarrowElements) {
  for (const DType from : numeric_types()) {
    if (bit_width(from) > 8) continue;
    const std::size_t elements = std::size_t{135'000} * 8 / static_cast<std::size_t>(bit_width(from)) + 3;
    const std::vector<std::byte> source = random_bytes(storage_bytes(from, elements), 7);
    for (const DType to : numeric_types()) {
      check(from, source, elements, to, {});
      check(from, source, 5003, to, {.scale = 0.25});
      for (const CastOptions& options : all_options) check(from, source, 5003, to, options);
    }
  }
}

// Errors of 2^32 and more, and sources that are so large.
TEST(Report, SlowOfManyNarrowElementsWithLargeSquares) {
  constexpr std::size_t elements = 140'001;
  const std::vector<std::byte> source = random_bytes(elements, 17);
  for (const DType from : {DType::float8_e4m3fn, DType::float8_e5m2fnuz, DType::int8, DType::float8_e8m0fnu}) {
    for (const DType to : {DType::float32, DType::float16, DType::uint32, DType::uint64, DType::int64, DType::int8}) {
      for (const double scale : {1.0, 0x1p31, 0x1.8p33, 0x1p-40, 0.1}) {
        check(from, source, elements, to, {.scale = scale});
      }
    }
  }
}

// Counts that leave bytes beside the words that are loaded at once.
TEST(Report, OfFewNarrowElements) {
  for (const DType from : numeric_types()) {
    if (bit_width(from) > 8) continue;
    const std::vector<std::byte> source = random_bytes(4000, 15);
    for (const std::size_t bytes : {1, 2, 31, 32, 33, 63, 64, 65, 223, 224, 225, 447, 448, 449, 1000}) {
      const std::size_t elements = bytes * 8 / static_cast<std::size_t>(bit_width(from)) - (bytes % 2);
      for (const DType to : {DType::float32, DType::uint32, DType::uint8, DType::float8_e5m2, DType::int2}) {
        if (elements != 0) check(from, source, elements, to, {});
      }
    }
  }
}

std::vector<double> boundary_numbers() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> numbers = {0.0, -0.0, infinity, -infinity, std::nan(""), 5e-324, -5e-324, 1.7e308, -1.7e308};
  for (const double around :
       {0x1p-149, 0x1p-133, 0x1p-126, 0x1p-24, 0.25,   0.5,    1.0,    1.5,    2.5,    3.5,     6.0,     7.5,
        15.5,     127.5,    128.0,    128.5,   255.5,  256.0,  448.0,  464.0,  480.0,  57344.0, 61440.0, 32767.5,
        32768.5,  65504.0,  65520.0,  65535.5, 0x1p31, 0x1p32, 0x1p53, 0x1p63, 0x1p64, 0x1p127, 3.4e38}) {
    for (const double sign : {1.0, -1.0}) {
      const auto single = static_cast<float>(around);
      numbers.insert(numbers.end(),
                     {sign * around, sign * std::nextafter(around, 0.0), sign * std::nextafter(around, infinity),
                      sign * around * 0.999, sign * around * 1.3, sign * std::nextafterf(single, 0.0F),
                      sign * std::nextafterf(single, std::numeric_limits<float>::infinity())});
    }
  }
  return numbers;
}

// Numbers as they are, among them now and then one that is not usual; random codes; boundary numbers in a row.
TEST(Report, OfWideElements) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0.0, 3.0);
  const std::vector<double> boundaries = boundary_numbers();
  std::vector<double> numbers(6000);
  for (double& number : numbers) {
    number = normal(random);
    if (random() % 100 == 0) number = boundaries[random() % boundaries.size()];
  }
  numbers.insert(numbers.end(), boundaries.begin(), boundaries.end());
  for (const DType from : numeric_types()) {
    if (bit_width(from) < 32) continue;
    std::vector<std::byte> source = encoded(from, numbers);
    const std::vector<std::byte> codes = random_bytes(storage_bytes(from, 2001), 9);
    source.resize(storage_bytes(from, numbers.size() / 16 * 16));
    source.insert(source.end(), codes.begin(), codes.end());
    const std::size_t elements = numbers.size() / 16 * 16 + 2001;
    for (const DType to : numeric_types()) {
      for (const CastOptions& options : all_options) check(from, source, elements, to, options);
      for (const double scale : short_and_long_scales) check(from, source, elements, to, {.scale = scale});
    }
  }
}

// Next to all that integer sources have to tell apart: what targets keep, where they saturate, overflow and round.
std::vector<std::uint64_t> boundary_integers() {
  std::vector<std::uint64_t> numbers;
  for (const std::uint64_t around : {6, 7, 240, 248, 448, 464, 480, 57344, 61440, 65504, 65520}) {
    for (std::uint64_t step = 0; step < 5; ++step) numbers.push_back(around + step - 2);
  }
  for (int bit = 0; bit < 64; ++bit) {
    for (const std::uint64_t part : {std::uint64_t{1}, std::uint64_t{3}, ~std::uint64_t{0}}) {
      for (std::uint64_t step = 0; step < 5; ++step) numbers.push_back((part << bit) + step - 2);
    }
  }
  const std::size_t positive = numbers.size();
  for (std::size_t i = 0; i < positive; ++i) numbers.push_back(0 - numbers[i]);
  return numbers;
}

// As integers of the type, modulo its range.
template <class Integer>
std::vector<std::byte> low_bytes(DType dtype, const std::vector<Integer>& numbers) {
  const auto bytes = static_cast<std::size_t>(bit_width(dtype)) / 8;
  std::vector<std::byte> out(numbers.size() * bytes);
  for (std::size_t i = 0; i < numbers.size(); ++i) std::memcpy(out.data() + i * bytes, &numbers[i], bytes);
  return out;
}

// Many small ones among them, as groups without errors have loops of their own; and many of one kind in a row.
TEST(Report, OfWideIntegers) {
  std::mt19937_64 random(13);
  const std::vector<std::uint64_t> boundaries = boundary_integers();
  std::vector<std::uint64_t> numbers = boundaries;
  numbers.resize(boundaries.size() + 1000);  // zeros
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t near = random() % 61 - 30;
    numbers.push_back(random() % 50 == 0 ? boundaries[random() % boundaries.size()] : near);
  }
  for (int i = 0; i < 2003; ++i) numbers.push_back(random() >> (random() % 64));
  for (const DType from : {DType::int32, DType::uint32, DType::int64, DType::uint64}) {
    const std::vector<std::byte> source = low_bytes(from, numbers);
    for (const DType to : numeric_types()) {
      for (const CastOptions& options : all_options) {
        check(from, source, numbers.size(), to, options);
        for (const std::size_t count : {1, 2, 15, 17, 33}) check(from, source, count, to, options);
      }
    }
  }
}

// Each block has a new extreme, so that merging in order is tested: a larger or a smaller number, a first or a last
// negative one. Some blocks have one value only.
TEST(Report, OfIntegersInOrder) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t constant : {0, 1, 2, -1, -2}) numbers.insert(numbers.end(), 512, constant);
  for (std::int64_t x = 0; x < 4096; ++x) numbers.push_back(x * x * 127 + 3 * (x % 5));
  for (std::int64_t x = 0; x < 4096; ++x) numbers.push_back(-x * x * 127 - x % 7);
  numbers.insert(numbers.end(), {INT32_MIN, INT32_MAX, INT16_MIN, INT16_MAX, UINT16_MAX, UINT32_MAX});
  for (const bool backwards : {false, true}) {
    if (backwards) std::reverse(numbers.begin(), numbers.end());
    for (const DType from : {DType::int16, DType::uint16, DType::int32, DType::uint32}) {
      const auto bytes = static_cast<std::size_t>(bit_width(from)) / 8;
      const std::vector<std::byte> source = low_bytes(from, numbers);
      for (const DType to : numeric_types()) {
        for (const CastOptions& options : all_options) {
          check(from, source, numbers.size(), to, options);
          for (const std::size_t first : {512, 1024, 1536, 2048}) {  // from one of the constant blocks on
            const std::vector<std::byte> part(source.begin() + static_cast<std::ptrdiff_t>(first * bytes),
                                              source.begin() + static_cast<std::ptrdiff_t>((first + 700) * bytes));
            check(from, part, 700, to, options);
          }
        }
      }
    }
  }
}

// Numbers of one sign, with large and small ones, and zeros or none: what never comes else must not be taken for
// granted.
TEST(Report, SlowOfNumbersOfOneSign) {
  std::mt19937_64 random(12);
  for (const int exponents : {1, 6, 24, 200}) {
    for (const double sign : {1.0, -1.0}) {
      for (const bool zeros : {false, true}) {
        std::vector<double> numbers(5000 + 7);
        for (double& number : numbers) {
          const double significand = 1.0 + std::ldexp(static_cast<double>(random() % (1U << 20)), -20);
          const int exponent = static_cast<int>(random() % static_cast<unsigned>(exponents)) - exponents / 2;
          number = zeros && random() % 50 == 0 ? 0.0 : sign * std::ldexp(significand, exponent);
        }
        for (const DType from : {DType::float32, DType::float16, DType::bfloat16}) {
          const std::vector<std::byte> source = encoded(from, numbers);
          for (const DType to : numeric_types()) {
            for (const CastOptions& options : all_options) check(from, source, numbers.size(), to, options);
          }
        }
      }
    }
  }
}

// What the last elements of a tensor are, that make no whole group, is seen too.
TEST(Report, OfUnusualShortFloatsAtTheEnd) {
  for (const DType from : {DType::float16, DType::bfloat16}) {
    for (const double last :
         {std::numeric_limits<double>::infinity(), std::nan(""), -0x1p-24, 0x1p-130, 60000.0, 3e38}) {
      for (const std::size_t elements : {1, 63, 65, 127, 4096 + 5}) {
        std::vector<double> numbers(elements, 1.5);
        numbers.back() = last;
        const std::vector<std::byte> source = encoded(from, numbers);
        for (const DType to : numeric_types()) {
          for (const CastOptions& options : all_options) check(from, source, elements, to, options);
        }
      }
    }
  }
}

// Blocks that differ: in their magnitudes, in how many zeros and infinities they have, constant ones, and ones whose
// squares no float32 holds.
TEST(Report, OfShortFloatsThatChange) {
  std::mt19937_64 random(14);
  std::normal_distribution<double> normal;
  const std::vector<int> exponents = {-2, 3, -7, 8, -12, 15, -20, 0, 0, 70, -60, -130, 120, 1};
  for (const DType from : {DType::float16, DType::bfloat16}) {
    std::vector<double> numbers;
    for (std::size_t block = 0; block < exponents.size(); ++block) {
      const double unit = std::ldexp(1.0, exponents[block]);
      for (int i = 0; i < 4096; ++i) {
        double number = unit * (block == 7 ? 1.1 : normal(random));
        if (block % 3 == 1 && random() % 2 == 0) number = 0.0;
        if (block % 4 == 3 && random() % 500 == 0)
          number = random() % 2 == 0 ? std::nan("") : -std::numeric_limits<double>::infinity();
        if (block == 8) number = static_cast<double>(random() % 16);  // mostly exact
        numbers.push_back(number);
      }
    }
    numbers.resize(numbers.size() - 1000 - 27);
    const std::vector<std::byte> source = encoded(from, numbers);
    for (const DType to : numeric_types()) {
      for (const CastOptions& options : all_options) check(from, source, numbers.size(), to, options);
    }
  }
}

// Numbers whose results are far away: their errors have more digits than most.
TEST(Report, OfShortFloatsFarBeyond) {
  std::mt19937_64 random(23);
  std::vector<CastOptions> options = all_options;
  options.push_back({.out_of_range = OutOfRange::saturate, .rounding = Rounding::nearest_even});
  for (const DType from : {DType::float16, DType::bfloat16}) {
    for (const int largest : {2, 6, 10, 15, 30}) {
      if (from == DType::float16 && largest > 15) continue;
      std::vector<double> numbers(2 * 4096 + 64 + 27);
      for (double& number : numbers) {
        const int exponent = static_cast<int>(random() % static_cast<unsigned>(largest + 4)) - 4;
        number = std::ldexp(1.0 + static_cast<double>(random() % 1024) / 1024.0, exponent);
        if (random() % 2 == 0) number = -number;
      }
      const std::vector<std::byte> source = encoded(from, numbers);
      for (const DType to : numeric_types()) {
        if (bit_width(to) > 16) continue;
        for (const CastOptions& each : options) check(from, source, numbers.size(), to, each);
      }
    }
  }
}

TEST(Report, SlowOfBlocksOfOneKind) {
  std::mt19937_64 random(17);
  std::normal_distribution<double> normal(0.0, 8.0);
  const std::vector<double> boundaries = boundary_numbers();
  const auto with_sign = [&](double number) { return random() % 2 == 0 ? number : -number; };
  const auto power = [&](int least, int most) {
    return std::ldexp(1.0 + std::ldexp(static_cast<double>(random() % (1U << 20)), -20),
                      least + static_cast<int>(random() % static_cast<unsigned>(most - least)));
  };
  const std::vector<std::function<double()>> kinds = {
      [&] { return normal(random); },
      [&] { return std::fabs(normal(random)); },
      [&] { return 1.0 + std::fabs(normal(random)); },
      [&] { return -1.0 - std::fabs(normal(random)); },
      [&] { return std::round(normal(random)); },
      [&] { return with_sign(power(-2, 16)); },
      [&] { return with_sign(power(10, 24)); },
      [&] { return with_sign(power(20, 33)); },
      [&] { return with_sign(power(31, 64)); },
      [&] { return with_sign(power(40, 126)); },
      [&] { return with_sign(power(-40, -20)); },
      [&] { return with_sign(power(-130, -90)); },
      [&] { return random() % 3 == 0 ? 0.0 : power(-120, 0); },
      [] { return 0.0; },
      [&] { return with_sign(0.0); },
      [&] { return std::ldexp(1.0, static_cast<int>(random() % 30)); },
      [] { return -1.0; },
      [] { return 1.1; },
      [] { return -3.7; },
      [&] { return random() % 1000 == 0 ? boundaries[random() % boundaries.size()] : normal(random); },
      [&] { return boundaries[random() % boundaries.size()]; },
  };
  for (const bool is_sorted : {true, false}) {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < 2 * kinds.size(); ++i) {
      const auto& kind = kinds[is_sorted ? i / 2 : random() % kinds.size()];
      for (int n = 0; n < 2048; ++n) numbers.push_back(kind());
    }
    for (const DType from : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      const std::vector<std::byte> source = encoded(from, numbers);
      for (const std::size_t lost : {0, 1999}) {
        for (const DType to : numeric_types()) {
          if (family(to) == Family::integer && bit_width(to) >= 16) {
            for (const CastOptions& options : all_options) check(from, source, numbers.size() - lost, to, options);
          }
        }
        for (const RoundMode mode : {RoundMode::up, RoundMode::down, RoundMode::nearest}) {
          for (const bool saturate : {true, false}) {
            check(from, source, numbers.size() - lost, DType::float8_e8m0fnu,
                  {.saturate = saturate, .round_mode = mode});
          }
        }
      }
    }
  }
}

// Errors that grow slowly, and zeros made of the smallest numbers there are.
TEST(Report, OfGrowingAndOfTinyErrors) {
  std::vector<float> numbers(4096);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto step = static_cast<float>(i) * 0x1p-20F;
    numbers[i] = i < 2048 ? 1.0F + step : static_cast<float>(i) * 0x1p-149F;
  }
  std::vector<std::byte> source(numbers.size() * sizeof(float));
  std::memcpy(source.data(), numbers.data(), source.size());
  for (const DType to : numeric_types()) check(DType::float32, source, numbers.size(), to, {});
  std::reverse(numbers.begin(), numbers.end());
  std::memcpy(source.data(), numbers.data(), source.size());
  for (const DType to : numeric_types()) check(DType::float32, source, numbers.size(), to, {});
}

// Products with a source of few bits are rounded by up to half.
TEST(Report, OfGrowingErrorsOfSubnormalNumbers) {
  std::vector<float> numbers(64);
  numbers[0] = 131073 * 0x1p-149F;
  numbers[40] = 65537 * 0x1p-149F;
  std::vector<std::byte> source(numbers.size() * sizeof(float));
  std::memcpy(source.data(), numbers.data(), source.size());
  check(DType::float32, source, numbers.size(), DType::bfloat16, {});
}

// The loop for most elements must see the smallest growth of the largest relative error there is: each of the ratios of
// a pair of types, the next larger one, and between them enough that is exact for that loop to take over.
TEST(Report, SlowSeesEachGrowthOfTheRelativeError) {
  constexpr std::size_t step = 128, elements = 3 * step;
  for (const DType from : {DType::float16, DType::bfloat16}) {
    const std::uint16_t one = from == DType::float16 ? 0x3c00 : 0x3f80;
    for (const DType to : numeric_types()) {
      if (bit_width(to) > 16 || to == from) continue;
      const codec::Policy policy = *codec::resolve_policy({}, from, to);
      std::map<double, std::vector<std::uint16_t>> codes;  // of each ratio: the first, one amid them, the last
      for (unsigned code = 0; code < 65536; ++code) {
        std::vector<std::uint16_t>& same = codes[code_outcome(from, code, to, policy).relative_error];
        if (same.size() == 3) {
          (code % 7 == 0 ? same[1] : same[2]) = static_cast<std::uint16_t>(code);
        } else {
          same.push_back(static_cast<std::uint16_t>(code));
        }
      }
      for (auto at = codes.begin(); std::next(at) != codes.end(); ++at) {
        const double expected = std::next(at)->first;
        for (const std::uint16_t code : std::next(at)->second) {
          std::vector<std::uint16_t> source(elements, one);
          source[3] = at->second.front();
          source[step + 5] = code;
          source[2 * step + 7] = at->second.back();
          std::vector<std::byte> target(storage_bytes(to, elements));
          const Conversion whole{reinterpret_cast<const std::byte*>(source.data()), from, target.data(), to, elements};
          convert(whole, policy);
          for (const Target on : supported_targets()) {
            const double got = report_of(on, whole, policy, elements).max_rel_error;
            ASSERT_TRUE(is_near(got, expected, 1e-15))
                << name(from) << " to " << name(to) << " on " << name(on) << " code " << code << ": " << got;
          }
        }
      }
    }
  }
}

// Any pair of types, options, scale, count and size of pieces, with sources of every kind mixed.
TEST(Report, OfRandomRequests) {
  std::mt19937_64 random(31);
  const auto one_of = [&](const auto& values) { return values[random() % std::size(values)]; };
  const std::vector<DType> types = numeric_types();
  const std::vector<double> boundaries = boundary_numbers();
  std::normal_distribution<double> normal;
  for (int request = 0; request < 3000; ++request) {
    const DType from = one_of(types), to = one_of(types);
    CastOptions options = one_of(all_options);
    options.saturate = random() % 2 == 0;
    options.rounding = random() % 2 == 0 ? Rounding::automatic : Rounding::nearest_even;
    if (random() % 2 == 0) options.scale = std::ldexp(normal(random), static_cast<int>(random() % 40) - 20);
    const double unit = std::ldexp(1.0, static_cast<int>(random() % 80) - 40);
    std::vector<double> numbers(1 + random() % 1500);
    for (double& number : numbers) number = random() % 50 == 0 ? one_of(boundaries) : unit * normal(random);
    std::vector<std::byte> source = encoded(from, numbers);
    if (random() % 4 == 0) source = random_bytes(source.size(), random());
    check(from, source, numbers.size(), to, options);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tensorcast::report
