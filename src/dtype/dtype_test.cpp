// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/dtype.hpp"

#include <gtest/gtest.h>

#include <set>

#include "dtype/dtype_table.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast {
namespace {

TEST(DTypeTable, HoldsEveryTypeOnce) {
  std::set<DType> seen;
  for (const DType dtype : all_dtypes()) EXPECT_TRUE(seen.insert(dtype).second) << name(dtype);
  EXPECT_EQ(seen.size(), dtype_table.size());
}

TEST(DTypeTable, NumbersWithoutATypeAreHarmless) {
  constexpr int own_code_limit = detail::first_own_code + detail::type_row_count - detail::onnx_code_limit;
  for (const int number :
       {-2147483647 - 1, -1, 0, 14, 15, detail::onnx_code_limit, 1000, 1001, own_code_limit, 1029, 1030, 2147483647}) {
    const auto dtype = static_cast<DType>(number);
    EXPECT_FALSE(is_castable(dtype)) << number;
    EXPECT_EQ(bit_width(dtype), dtype == DType::uint1 ? 1 : 0) << number;
    EXPECT_EQ(since_opset(dtype), 0) << number;
  }
  EXPECT_EQ(name(static_cast<DType>(14)), "undefined");
  EXPECT_EQ(name(DType::uint1), "uint1");
}

// Types that ONNX lacks have numbers of their own, and no opset.
TEST(DTypeTable, OnnxHasTwentySixTypes) {
  std::size_t count = 0;
  for (const DType dtype : all_dtypes()) {
    EXPECT_EQ(is_onnx(dtype), static_cast<int>(dtype) < 1000) << name(dtype);
    EXPECT_EQ(is_onnx(dtype), since_opset(dtype) > 0) << name(dtype);
    count += is_onnx(dtype) ? 1 : 0;
  }
  EXPECT_EQ(count, 26u);
  EXPECT_FALSE(is_onnx(DType::uint1));
  EXPECT_FALSE(is_onnx(DType::undefined));
}

TEST(DTypeFacts, RangesOfTheFloats) {
  EXPECT_EQ(facts(DType::float8_e4m3fn).largest, 448.0);
  EXPECT_EQ(facts(DType::float8_e4m3fnuz).largest, 240.0);
  EXPECT_EQ(facts(DType::float8_e5m2).largest, 57344.0);
  EXPECT_EQ(facts(DType::float8_e5m2fnuz).largest, 57344.0);
  EXPECT_EQ(facts(DType::float4_e2m1fn).largest, 6.0);
  EXPECT_EQ(facts(DType::float6_e2m3fn).largest, 7.5);
  EXPECT_EQ(facts(DType::float6_e2m3fn).smallest_positive, 0.125);
  EXPECT_EQ(facts(DType::float6_e3m2fn).largest, 28.0);
  EXPECT_EQ(facts(DType::float6_e3m2fn).smallest_positive, 0.0625);
  EXPECT_EQ(facts(DType::float16).largest, 65504.0);
  EXPECT_EQ(facts(DType::float8_e8m0fnu).largest, 0x1p127);
  EXPECT_EQ(facts(DType::float8_e8m0fnu).lowest, 0x1p-127);
  EXPECT_EQ(facts(DType::float8_e8m0fnu).smallest_positive, 0x1p-127);
  EXPECT_EQ(facts(DType::float8_e4m3fn).smallest_positive, 0x1p-9);
  EXPECT_EQ(facts(DType::float8_e4m3fnuz).smallest_positive, 0x1p-10);
  EXPECT_EQ(facts(DType::float8_e4m3).largest, 240.0);
  EXPECT_EQ(facts(DType::float8_e4m3).smallest_positive, 0x1p-9);
  EXPECT_EQ(facts(DType::float8_e3m4).largest, 15.5);
  EXPECT_EQ(facts(DType::float8_e3m4).smallest_positive, 0x1p-6);
  EXPECT_EQ(facts(DType::float8_e4m3b11fnuz).largest, 30.0);
  EXPECT_EQ(facts(DType::float8_e4m3b11fnuz).smallest_positive, 0x1p-13);
  EXPECT_EQ(facts(DType::float8_e5m3fnu).largest, 114688.0);
  EXPECT_EQ(facts(DType::float8_e5m3fnu).lowest, 0.0);
  EXPECT_EQ(facts(DType::float8_e5m3fnu).smallest_positive, 0x1p-17);
  EXPECT_EQ(facts(DType::binary8p4se).largest, 224.0);
  EXPECT_EQ(facts(DType::binary8p4se).smallest_positive, 0x1p-10);
  EXPECT_EQ(facts(DType::binary8p3se).largest, 49152.0);
  EXPECT_EQ(facts(DType::binary8p3se).smallest_positive, 0x1p-17);
  EXPECT_EQ(facts(DType::float64).smallest_positive, 0x1p-1074);
  EXPECT_EQ(facts(DType::bfloat16).smallest_positive, 0x1p-133);
  EXPECT_EQ(facts(DType::int4).lowest, -8.0);
  EXPECT_EQ(facts(DType::uint2).largest, 3.0);
}

TEST(DTypeFacts, AreConstant) {
  constexpr NumberFacts half = number_facts(DType::float16);
  static_assert(half.bits == 16 && half.exponent_bits == 5 && half.mantissa_bits == 10 && half.bias == 15);
  static_assert(half.largest == 65504.0 && half.lowest == -65504.0 && half.epsilon == 0x1p-10);
  static_assert(half.smallest_positive == 0x1p-24 && half.smallest_normal == 0x1p-14);
  static_assert(half.is_signed && half.has_infinity && half.has_nan && half.has_negative_zero);
  constexpr NumberFacts fnuz = number_facts(DType::float8_e4m3fnuz);
  static_assert(fnuz.is_signed && !fnuz.has_infinity && fnuz.has_nan && !fnuz.has_negative_zero);
  constexpr NumberFacts power = number_facts(DType::float8_e8m0fnu);
  static_assert(!power.is_signed && power.epsilon == 1.0 && power.smallest_normal == 0x1p-127);
  static_assert(number_facts(DType::float64).smallest_positive == 0x1p-1074);
  static_assert(number_facts(DType::int64).largest == 0x1p63 && number_facts(DType::int4).lowest == -8.0);
  static_assert(number_facts(DType::boolean).largest == 1.0 && number_facts(DType::uint1).bits == 1);
  static_assert(number_facts(static_cast<DType>(99)).bits == 0 && number_facts(DType::string).largest == 0.0);
  for (const DType dtype : all_dtypes()) EXPECT_EQ(facts(dtype).smallest_normal, number_facts(dtype).smallest_normal);
}

TEST(DTypeFacts, SpecialCodes) {
  EXPECT_EQ(facts(DType::float16).special_codes, "Inf 0x7C00 0xFC00, NaN above them");
  EXPECT_EQ(facts(DType::float8_e4m3fn).special_codes, "NaN 0x7F 0xFF, no Inf");
  EXPECT_EQ(facts(DType::float8_e5m2fnuz).special_codes, "NaN 0x80, no Inf, no -0");
  EXPECT_EQ(facts(DType::float8_e8m0fnu).special_codes, "NaN 0xFF, no zero");
  EXPECT_EQ(facts(DType::float8_e4m3).special_codes, "Inf 0x78 0xF8, NaN above them");
  EXPECT_EQ(facts(DType::float8_e5m3fnu).special_codes, "NaN 0xFF, no Inf");
  EXPECT_EQ(facts(DType::binary8p4se).special_codes, "NaN 0x80, Inf 0x7F 0xFF, no -0");
  EXPECT_EQ(facts(DType::int8).special_codes, "");
}

TEST(ParseDType, TakesEverySpellingThatItNames) {
  for (const DType dtype : all_dtypes()) {
    for (const std::string_view spelling : facts(dtype).spellings) {
      const Result<DType> parsed = parse_dtype(spelling);
      ASSERT_TRUE(parsed.ok()) << spelling;
      EXPECT_EQ(*parsed, dtype) << spelling;
    }
    EXPECT_EQ(*parse_dtype(std::to_string(static_cast<int>(dtype))), dtype);
  }
}

TEST(ParseDType, TakesTheSpellingsOfTheNeighbours) {
  const std::pair<const char*, DType> cases[] = {
      {"FLOAT", DType::float32},
      {"DOUBLE", DType::float64},
      {"FLOAT8E4M3FN", DType::float8_e4m3fn},
      {"17", DType::float8_e4m3fn},
      {"tensor(float16)", DType::float16},
      {"boolean", DType::boolean},
      {"BF16", DType::bfloat16},
      {"F8_E4M3", DType::float8_e4m3fn},
      {"F4", DType::float4_e2m1fn},
      {"<f4", DType::float32},
      {"<i4", DType::int32},
      {"|u1", DType::uint8},
      {"uint1", DType::uint1},
      {"=f8", DType::float64},
      {"I8", DType::int8},
      {"U8", DType::uint8},
      {"i16", DType::int16},
      {"torch.int", DType::int32},
      {"torch.float", DType::float32},
      {"tensor(float)", DType::float32},
      {"torch.bfloat16", DType::bfloat16},
      {"torch.long", DType::int64},
      {"fp16", DType::float16},
      {"e8m0", DType::float8_e8m0fnu},
      {"e2m1", DType::float4_e2m1fn},
      {"TensorProto.FLOAT8E5M2", DType::float8_e5m2},
      {" Half ", DType::float16},
      {"np.float32", DType::float32},
      {"ml_dtypes.float8_e5m2fnuz", DType::float8_e5m2fnuz},
      {"tensor(INT2)", DType::int2},
      {"F6_E2M3", DType::float6_e2m3fn},
      {"e3m2", DType::float6_e3m2fn},
      {"TensorProto.FLOAT6E3M2", DType::float6_e3m2fn},
      {"27", DType::float6_e2m3fn},
      {"float8_e4m3", DType::float8_e4m3},
      {"ml_dtypes.float8_e4m3", DType::float8_e4m3},
      {"1002", DType::float8_e4m3},
      {"ue5m3", DType::float8_e5m3fnu},
      {"Binary8p4se", DType::binary8p4se},
      {"Binary8p4sf", DType::float8_e4m3fnuz},
      {"Binary8p3sf", DType::float8_e5m2fnuz},
  };
  for (const auto& [spelling, dtype] : cases) {
    const Result<DType> parsed = parse_dtype(spelling);
    ASSERT_TRUE(parsed.ok()) << spelling;
    EXPECT_EQ(*parsed, dtype) << spelling;
  }
}

TEST(ParseDType, NamesTheNearestOnes) {
  const Result<DType> parsed = parse_dtype("flaot16");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(parsed.error().message, "unknown dtype \"flaot16\"");
  EXPECT_EQ(parsed.error().hint, "did you mean float16, bfloat16, float64?");
  EXPECT_EQ(parse_dtype("float4").error().hint, "did you mean float4_e2m1fn?");
  EXPECT_EQ(parse_dtype("bfloat").error().hint, "did you mean bfloat16?");
}

TEST(ParseDType, RefusesWordsThatMeanSeveralTypesAndNamesThem) {
  const std::pair<const char*, const char*> cases[] = {
      {"f4", "write one of float4_e2m1fn, float32"},
      {"i1", "write one of int8, bool"},
      {"i2", "write one of int2, int16"},
      {"i4", "write one of int4, int32"},
      {"i8", "write one of int8, int64"},
      {"u1", "write one of uint8, uint1"},
      {"u2", "write one of uint2, uint16"},
      {"u4", "write one of uint4, uint32"},
      {"u8", "write one of uint8, uint64"},
      {"int", "write one of int32, int64"},
      {"e4m3", "write one of float8_e4m3fn, float8_e4m3fnuz, float8_e4m3, float8_e4m3b11fnuz"},
      {"f8e4m3", "write one of float8_e4m3fn, float8_e4m3fnuz, float8_e4m3, float8_e4m3b11fnuz"},
      {"fp8_e4m3", "write one of float8_e4m3fn, float8_e4m3fnuz, float8_e4m3, float8_e4m3b11fnuz"},
      {"float", "write one of float32, float64"},
      {"Float", "write one of float32, float64"},
      {"np.float", "write one of float32, float64"},
  };
  for (const auto& [spelling, hint] : cases) {
    const Result<DType> parsed = parse_dtype(spelling);
    ASSERT_FALSE(parsed.ok()) << spelling;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument) << spelling;
    EXPECT_EQ(parsed.error().hint, hint) << spelling;
  }
  EXPECT_EQ(parse_dtype("i4").error().message,
            "\"i4\" means different types, as NumPy counts bytes and others count bits");
}

// The most used ones first, and every type of that width, a new one too.
TEST(ParseDType, AnswersAWidthWithTheFloatsOfThatWidth) {
  const std::pair<const char*, int> cases[] = {{"f8", 8}, {"fp8", 8}, {"float8", 8}, {"fp6", 6}, {"float6", 6}};
  for (const auto& [spelling, bits] : cases) {
    const Result<DType> parsed = parse_dtype(spelling);
    ASSERT_FALSE(parsed.ok()) << spelling;
    const std::string& hint = parsed.error().hint;
    EXPECT_EQ(hint.rfind(bits == 8 ? "write one of float8_e4m3fn, float8_e5m2, " : "write one of float6_e2m3fn, ", 0),
              0u)
        << hint;
    for (const DType dtype : all_dtypes()) {
      const bool is_listed = (hint + ",").find(" " + std::string(name(dtype)) + ",") != std::string::npos;
      const bool is_numpys = dtype == DType::float64 && spelling == std::string("f8");
      EXPECT_EQ(is_listed, is_numpys || (family(dtype) == Family::floating && bit_width(dtype) == bits)) << hint;
    }
  }
}

TEST(ParseDType, RefusesWhatIsNoType) {
  const std::string huge(1 << 20, 'f');
  for (const std::string_view spelling :
       {"", " ", "fp8", "complex64", "complex32", "int1", "torch.float8_e4m3", "onnx.float8_e3m4", "1000", "1999", "14",
        "0", "-1", "99", "999", "tensor(float", "float32x", ">f4"}) {
    EXPECT_FALSE(parse_dtype(spelling).ok()) << spelling;
  }
  EXPECT_FALSE(parse_dtype(huge).ok());
}

TEST(StorageBytes, PacksAndRefusesToOverflow) {
  EXPECT_EQ(storage_bytes(DType::int4, 0), 0u);
  EXPECT_EQ(storage_bytes(DType::int4, 1), 1u);
  EXPECT_EQ(storage_bytes(DType::int4, 3), 2u);
  EXPECT_EQ(storage_bytes(DType::uint2, 5), 2u);
  for (const auto& [count, bytes] : {std::pair{1u, 1u}, {2u, 2u}, {3u, 3u}, {4u, 3u}, {5u, 4u}, {8u, 6u}}) {
    EXPECT_EQ(storage_bytes(DType::float6_e2m3fn, count), bytes) << count;
  }
  EXPECT_EQ(storage_bytes(DType::boolean, 5), 5u);
  EXPECT_EQ(storage_bytes(DType::float64, 5), 40u);
  EXPECT_EQ(storage_bytes(DType::string, 5), 0u);
  EXPECT_EQ(storage_bytes(DType::float64, SIZE_MAX / 2), SIZE_MAX);
  EXPECT_EQ(storage_bytes(DType::int2, SIZE_MAX), SIZE_MAX / 4 + 1);
  EXPECT_EQ(storage_bytes(DType::float6_e2m3fn, SIZE_MAX), SIZE_MAX / 8 * 6 + 6);
}

TEST(ElementCount, ChecksTheProduct) {
  const std::int64_t scalar[1] = {};
  EXPECT_EQ(*element_count({scalar, 0}), 1u);
  const std::int64_t empty[] = {std::int64_t{1} << 62, std::int64_t{1} << 62, 0};
  EXPECT_EQ(*element_count(empty), 0u);
  const std::int64_t huge[] = {std::int64_t{1} << 32, std::int64_t{1} << 32};
  EXPECT_EQ(element_count(huge).error().code, ErrorCode::invalid_argument);
  const std::int64_t negative[] = {2, -1};
  EXPECT_EQ(element_count(negative).error().code, ErrorCode::invalid_argument);
}

TEST(Error, DescribesAsMuchAsApplies) {
  const Error whole{.code = ErrorCode::out_of_range,
                    .message = "value 300 does not fit uint8 (from float32)",
                    .hint = "pass --out-of-range saturate",
                    .element = 17,
                    .tensor = "w",
                    .file = "a.npy"};
  EXPECT_EQ(
      whole.describe(),
      "a.npy: tensor \"w\": element 17: value 300 does not fit uint8 (from float32); pass --out-of-range saturate");
  EXPECT_EQ((Error{.code = ErrorCode::parse, .message = "no"}).describe(), "no");
}

}  // namespace
}  // namespace tensorcast
