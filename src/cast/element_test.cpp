// SPDX-License-Identifier: Apache-2.0
// Single elements convert as cast() of arrays does, whatever the state of the processor.
#include "tensorcast/element.hpp"

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_set>

#include <gtest/gtest.h>

#include "codec/reference_cast.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace tensorcast {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Without a library: a part of what the tests below compare with the reference.
static_assert(bfloat16(4629700416936869889).bits() == 0x5e81);
static_assert(bfloat16(4629700416936869888).bits() == 0x5e80);  // a tie
static_assert(float16(65519.99f).bits() == 0x7bff && float16(65520.0f).bits() == 0x7c00);
static_assert(float16(0x1.8p-24).bits() == 2 && float16(0x1p-25).bits() == 0 && float16(0x1.000002p-25f).bits() == 1);
static_assert(float8_e4m3fn(464.0f).bits() == 0x7e && float8_e4m3fn(-1e9).bits() == 0xfe);
static_assert(float8_e4m3fn(not_a_number).bits() == 0x7f && float8_e4m3fnuz(-0.0f).bits() == 0);
static_assert(float8_e5m2(infinity).bits() == 0x7b && float8_e8m0fnu(1.1f).bits() == 128);
static_assert(float4_e2m1fn(2.5).bits() == 4 && float4_e2m1fn(-not_a_number).bits() == 8);
static_assert(static_cast<float>(float8_e4m3fn::from_bits(1)) == 0x1p-9f);
static_assert(float16(float8_e5m2::from_bits(0x7f)).bits() == 0x7f00 && float8_e4m3fn(int4(-3)) == float8_e4m3fn(-3));
static_assert(int4(9) == int4(-7) && int4(-2.9) == int4(-2) && uint2(7u) == uint2(3) &&
              int4(float16(300.5)) == int4(12));
static_assert(float16(1.0) < float16(1.001) && -0.0 == static_cast<double>(-float16(0.0)) && int2(-2) < int2(1));
static_assert((bfloat16(not_a_number) <=> bfloat16(1.0)) == std::partial_ordering::unordered);

template <class T>
std::uint64_t reference(DType from, std::uint64_t bits) {
  return codec::cast_code(from, bits, T::dtype, {}).bits;
}

template <class T>
class FloatElements : public testing::Test {};
using FloatTypes = testing::Types<float16, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
                                  float8_e8m0fnu, float8_e4m3, float8_e3m4, float8_e4m3b11fnuz, float8_e5m3fnu,
                                  binary8p4se, binary8p3se, float6_e2m3fn, float6_e3m2fn, float4_e2m1fn>;
TYPED_TEST_SUITE(FloatElements, FloatTypes);

static_assert(static_cast<int>(bfloat16(-2.75)) == -2 && static_cast<std::uint8_t>(float16(300)) == 44 &&
              static_cast<long>(float16(not_a_number)) == 0 && static_cast<bool>(float8_e5m2(not_a_number)));

template <class T>
constexpr unsigned code_count = 1u << bit_width(T::dtype);
template <class T>
constexpr T element(unsigned code) {
  return T::from_bits(static_cast<typename T::bits_type>(code));
}

template <class T>
void expect_as_reference(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  ASSERT_EQ(T(number).bits(), reference<T>(DType::float32, bits)) << name(T::dtype) << " of " << number;
}
template <class T>
void expect_as_reference(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  ASSERT_EQ(T(number).bits(), reference<T>(DType::float64, bits)) << name(T::dtype) << " of " << number;
}

// A number, its neighbours, and their negatives.
template <class T, class Real>
void expect_near(Real number) {
  constexpr Real end = std::numeric_limits<Real>::infinity();
  for (const Real near : {number, std::nextafter(number, -end), std::nextafter(number, end)}) {
    expect_as_reference<T>(near);
    expect_as_reference<T>(-near);
  }
}

TYPED_TEST(FloatElements, DecodeEveryCode) {
  using T = TypeParam;
  for (unsigned code = 0; code < code_count<T>; ++code) {
    ASSERT_EQ(element<T>(code).bits(), code);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(element<T>(code))),
              codec::cast_code(T::dtype, code, DType::float32, {}).bits)
        << code;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(element<T>(code))),
              codec::cast_code(T::dtype, code, DType::float64, {}).bits)
        << code;
  }
}

template <class To, class From>
void convert_every_code() {
  for (unsigned code = 0; code < code_count<From>; ++code) {
    ASSERT_EQ(To(element<From>(code)).bits(), reference<To>(From::dtype, code))
        << name(From::dtype) << ' ' << code << " to " << name(To::dtype);
  }
}
template <class To, template <class...> class List, class... From>
void convert_every_code_of(const List<From...>*) {
  (convert_every_code<To, From>(), ...);
}

TYPED_TEST(FloatElements, ConvertEveryCodeOfEveryType) {
  using T = TypeParam;
  convert_every_code_of<T>(static_cast<const FloatTypes*>(nullptr));
  convert_every_code<T, int4>();
  convert_every_code<T, int2>();
  convert_every_code<T, uint4>();
  convert_every_code<T, uint2>();
  convert_every_code<int4, T>();
  convert_every_code<uint4, T>();
  convert_every_code<int2, T>();
  convert_every_code<uint2, T>();
}

// C++'s integers keep the low bits of the integer part, as those of a cast do.
template <class Integer, class From>
void convert_every_code_to() {
  constexpr DType to = dtype_of<Integer>;
  constexpr std::uint64_t mask = ~std::uint64_t{0} >> (64 - bit_width(to));
  for (unsigned code = 0; code < code_count<From>; ++code) {
    ASSERT_EQ(static_cast<std::uint64_t>(static_cast<Integer>(element<From>(code))) & mask,
              codec::cast_code(From::dtype, code, to, {}).bits)
        << name(From::dtype) << ' ' << code << " to " << name(to);
  }
}

TYPED_TEST(FloatElements, ConvertToEveryTypeOfTheLanguage) {
  using T = TypeParam;
  convert_every_code_to<std::int64_t, T>();
  convert_every_code_to<std::uint64_t, T>();
  convert_every_code_to<int, T>();
  convert_every_code_to<unsigned, T>();
  convert_every_code_to<short, T>();
  convert_every_code_to<std::uint8_t, T>();
  convert_every_code_to<bool, T>();
  EXPECT_EQ(static_cast<long double>(T(0.5)), 0.5L);
}

TYPED_TEST(FloatElements, RoundEveryTieOfFloat32AndFloat64) {
  using T = TypeParam;
  const auto largest = static_cast<unsigned>(float_format(T::dtype).largest_code());
  for (unsigned code = 0; code <= largest; ++code) {
    const auto number = static_cast<double>(element<T>(code));
    // The number after the largest is as far away as the one before.
    const double step = code == largest ? number - static_cast<double>(element<T>(code - 1))
                                        : static_cast<double>(element<T>(code + 1)) - number;
    const double tie = number + step / 2;
    expect_near<T>(number);
    expect_near<T>(tie);
    expect_near<T>(static_cast<float>(number));
    expect_near<T>(static_cast<float>(tie));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TYPED_TEST(FloatElements, ConvertSampledNumbers) {
  using T = TypeParam;
  std::mt19937_64 random(1);
  for (const double special : {0.0, infinity, not_a_number, 1e300, 0x1p-1074, 0x1p-149, 0x1p-133, 0x1p-134}) {
    expect_near<T>(special);
    expect_near<T>(static_cast<float>(special));
  }
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    expect_as_reference<T>(std::bit_cast<double>(bits));
    expect_as_reference<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    // An exponent near those of the type, and NaN with any payload.
    const auto exponent = static_cast<int>(bits >> 52 & 63) - 31;
    expect_as_reference<T>(std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), exponent - 63));
    expect_as_reference<T>(std::bit_cast<double>(bits | 0x7ff0000000000000));
    expect_as_reference<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) | 0x7f800000));
    if (testing::Test::HasFatalFailure()) return;
  }
}

template <class T, class Integer>
void expect_integer(Integer number) {
  const auto bits = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Integer>>(number));
  ASSERT_EQ(T(number).bits(), reference<T>(dtype_of<Integer>, bits)) << name(T::dtype) << " of " << +number;
}

template <class T>
void convert_integers() {
  std::mt19937_64 random(2);
  for (int number = -70000; number <= 70000; number += 7) {
    expect_integer<T>(static_cast<std::int8_t>(number));
    expect_integer<T>(static_cast<std::uint8_t>(number));
    expect_integer<T>(static_cast<std::int16_t>(number));
    expect_integer<T>(static_cast<std::uint16_t>(number));
    expect_integer<T>(number);
  }
  for (int i = 0; i < 20000; ++i) {
    // A few leading bits, and one more or less than a tie.
    const int shift = static_cast<int>(random() % 64);
    const std::uint64_t leading = random() >> (52 + random() % 12) << shift;
    for (const std::uint64_t bits : {random() >> shift, leading - 1, leading, leading + 1}) {
      expect_integer<T>(static_cast<std::int64_t>(bits));
      expect_integer<T>(bits);
      expect_integer<T>(static_cast<std::int32_t>(bits));
      expect_integer<T>(static_cast<std::uint32_t>(bits));
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  for (const std::int64_t end : {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    expect_integer<T>(end);
    expect_integer<T>(static_cast<std::uint64_t>(end));
  }
}

TYPED_TEST(FloatElements, RoundIntegersOnce) { convert_integers<TypeParam>(); }

TYPED_TEST(FloatElements, RoundLongDoublesOnce) {
  using T = TypeParam;
  for (const long double number : {0.0L, 1e-4000L, -1e-4000L, 1e4000L, -1e4000L, 1.0L}) {
    EXPECT_EQ(T(number).bits(), T(static_cast<double>(number)).bits()) << number;
  }
  const long double tie =
      (static_cast<long double>(static_cast<double>(element<T>(1))) + static_cast<double>(element<T>(2))) / 2;
  for (const long double near : {tie * (1 + 0x1p-60L), tie * (1 - 0x1p-60L)}) {
    const bool is_long = std::numeric_limits<long double>::digits > 60;
    const unsigned expected = !float_format(T::dtype).has_zero ? 2 : near > tie ? 2 : 1;
    if (is_long) {
      EXPECT_EQ(T(near).bits(), expected) << name(T::dtype);
    }
  }
}

TYPED_TEST(FloatElements, CompareAsNumbers) {
  using T = TypeParam;
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const T a = element<T>(random() % code_count<T>), b = element<T>(random() % code_count<T>);
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    ASSERT_EQ(a == b, x == y) << x << ' ' << y;
    ASSERT_TRUE((a <=> b) == (x <=> y)) << x << ' ' << y;
    ASSERT_TRUE(a == b ? std::hash<T>()(a) == std::hash<T>()(b) : true) << x << ' ' << y;
  }
  for (unsigned code = 0; code < code_count<T>; ++code) {
    const T x = element<T>(code);
    const auto number = static_cast<double>(x);
    ASSERT_EQ(isnan(x), std::isnan(number)) << code;
    ASSERT_EQ(isinf(x), std::isinf(number)) << code;
    ASSERT_EQ(isfinite(x), std::isfinite(number)) << code;
    ASSERT_EQ(signbit(x), std::signbit(number)) << code;
    ASSERT_EQ(x == x, !isnan(x)) << code;
    if (isnan(x)) {  // casts make NaN quiet
      ASSERT_TRUE(isnan(-x) && isnan(abs(x))) << code;
      ASSERT_EQ(signbit(-x), signbit(T(-number))) << code;
      ASSERT_EQ(signbit(abs(x)), signbit(T(std::fabs(number)))) << code;
    } else if (isinf(x)) {  // casts to float8 saturate
      ASSERT_EQ(static_cast<double>(-x), -number);
      ASSERT_EQ(static_cast<double>(abs(x)), infinity);
    } else {
      ASSERT_EQ((-x).bits(), T(-number).bits()) << code;
      ASSERT_EQ(abs(x).bits(), T(std::fabs(number)).bits()) << code;
    }
  }
  if (T(0.0) == T(-0.0)) {
    EXPECT_EQ((std::unordered_set<T>{T(0.0), T(-0.0), T(1.0)}).size(), 2u);
  }
}

TYPED_TEST(FloatElements, HaveLimits) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  constexpr NumberFacts facts = number_facts(T::dtype);
  EXPECT_EQ(static_cast<double>(Limits::max()), facts.largest);
  EXPECT_EQ(static_cast<double>(Limits::lowest()), facts.lowest);
  EXPECT_EQ(static_cast<double>(Limits::min()), facts.smallest_normal);
  EXPECT_EQ(static_cast<double>(Limits::denorm_min()), facts.smallest_positive);
  EXPECT_EQ(static_cast<double>(Limits::epsilon()), facts.epsilon);
  EXPECT_EQ(static_cast<double>(Limits::round_error()), 0.5);
  EXPECT_EQ(isinf(Limits::infinity()), Limits::has_infinity);
  EXPECT_EQ(isnan(Limits::quiet_NaN()), Limits::has_quiet_NaN);
  EXPECT_EQ(isnan(Limits::signaling_NaN()), Limits::has_quiet_NaN);
  EXPECT_EQ(std::ilogb(facts.largest) + 1, Limits::max_exponent);
  EXPECT_EQ(std::ilogb(facts.smallest_normal) + 1, Limits::min_exponent);
  EXPECT_EQ(static_cast<int>(std::floor(std::log10(facts.largest))), Limits::max_exponent10);
  EXPECT_EQ(static_cast<int>(std::ceil(std::log10(facts.smallest_normal))), Limits::min_exponent10);
  EXPECT_TRUE(Limits::is_specialized && Limits::radix == 2 && !Limits::is_integer && Limits::is_bounded);
}

TEST(ElementLimits, AreThoseOfTheFormats) {
  using Half = std::numeric_limits<float16>;
  static_assert(Half::digits == 11 && Half::digits10 == 3 && Half::max_digits10 == 5);
  static_assert(Half::min_exponent == -13 && Half::min_exponent10 == -4);
  static_assert(Half::max_exponent == 16 && Half::max_exponent10 == 4);
  static_assert(Half::is_iec559 && Half::has_signaling_NaN && Half::signaling_NaN().bits() == 0x7d00);
  using Brain = std::numeric_limits<bfloat16>;
  static_assert(Brain::digits == 8 && Brain::min_exponent10 == -37 && Brain::max_exponent10 == 38);
  static_assert(std::numeric_limits<float8_e8m0fnu>::round_style == std::round_toward_infinity);
  static_assert(std::numeric_limits<int4>::min() == int4(-8) && std::numeric_limits<int4>::max() == int4(7));
  static_assert(std::numeric_limits<uint2>::lowest() == uint2(0) && std::numeric_limits<uint2>::max() == uint2(3));
  static_assert(std::numeric_limits<int2>::digits == 1 && std::numeric_limits<uint4>::digits10 == 1);
}

template <class T>
void test_integers() {
  convert_integers<T>();
  std::mt19937_64 random(4);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t bits = random();
    expect_as_reference<T>(std::bit_cast<double>(bits));
    expect_as_reference<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    expect_as_reference<T>(
        std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits)), static_cast<int>(bits % 70) - 63));
  }
  convert_every_code<T, int4>();
  convert_every_code<T, uint2>();
  for (unsigned a = 0; a < code_count<T>; ++a) {
    for (unsigned b = 0; b < code_count<T>; ++b) {
      const T x = element<T>(a), y = element<T>(b);
      ASSERT_TRUE((x <=> y) == (static_cast<int>(x) <=> static_cast<int>(y)));
      ASSERT_EQ(std::hash<T>()(x) == std::hash<T>()(y), x == y);
    }
    const T x = element<T>(a);
    ASSERT_EQ(-x, T(-static_cast<int>(x)));
    ASSERT_EQ(abs(x), T(std::abs(static_cast<int>(x))));
    ASSERT_EQ(static_cast<float>(x), static_cast<float>(static_cast<int>(x)));
    ASSERT_TRUE(isfinite(x) && !isnan(x) && !isinf(x) && signbit(x) == (static_cast<int>(x) < 0));
  }
}

TEST(IntegerElements, ConvertAndCompareAsNumbers) {
  test_integers<int4>();
  test_integers<int2>();
  test_integers<uint4>();
  test_integers<uint2>();
}

// Sums of all codes in a state of the processor. `volatile`: nothing is computed before it is set.
template <class T>
std::uint64_t sum_of_conversions() {
  std::uint64_t sum = 0;
  for (unsigned code = 0; code < code_count<T>; ++code) {
    volatile auto own = static_cast<typename T::bits_type>(code);
    const auto number = static_cast<float>(T::from_bits(own));
    sum = sum * 31 + std::bit_cast<std::uint32_t>(number);
    volatile std::uint32_t above = std::bit_cast<std::uint32_t>(number) + 1;
    sum =
        sum * 31 + T(std::bit_cast<float>(above)).bits() + T(std::bit_cast<double>(std::uint64_t{above} << 29)).bits();
  }
  return sum;
}

TYPED_TEST(FloatElements, ReadNoStateOfTheProcessor) {
  const std::uint64_t expected = sum_of_conversions<TypeParam>();
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const std::uint64_t sum = sum_of_conversions<TypeParam>();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(sum, expected) << mode;
  }
#if defined(__SSE2__)
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);  // flush subnormal results, read subnormal operands as zero
  const std::uint64_t sum = sum_of_conversions<TypeParam>();
  _mm_setcsr(before);
  EXPECT_EQ(sum, expected);
#endif
}

template <class T>
concept Native = detail::NativeHalf<T>;

template <class T>
void test_native() {
  if constexpr (Native<T>) {
    using Own = std::conditional_t<dtype_of<T> == DType::float16, float16, bfloat16>;
    static_assert(Element<T> && dtype_of<T> == Own::dtype);
    for (unsigned code = 0; code < code_count<Own>; ++code) {
      const T native = std::bit_cast<T>(static_cast<std::uint16_t>(code));
      ASSERT_EQ(Own(native).bits(), code);
      ASSERT_EQ(std::bit_cast<std::uint16_t>(static_cast<T>(element<Own>(code))), code);
      ASSERT_EQ(float8_e5m2(native).bits(), float8_e5m2(element<Own>(code)).bits());
    }
  }
}

TEST(NativeHalves, AreTheSameNumbers) {
#if defined(__FLT16_MAX__) && defined(__SSE2__)
  static_assert(Native<_Float16>);
  test_native<_Float16>();
  static_assert(static_cast<_Float16>(float8_e4m3fn(1.5)) == static_cast<_Float16>(1.5f));
#endif
#if (defined(__clang__) && defined(__SSE2__)) || defined(__BFLT16_MAX__)
  test_native<__bf16>();
#endif
#if defined(__STDCPP_FLOAT16_T__)
  test_native<decltype(0.0f16)>();
#endif
#if defined(__STDCPP_BFLOAT16_T__)
  test_native<decltype(0.0bf16)>();
#endif
}

}  // namespace
}  // namespace tensorcast
