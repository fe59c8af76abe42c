// SPDX-License-Identifier: Apache-2.0
// D9: numbers to text. Not compared with another printer: each text must read back, be shortest and be closest.
#include <gtest/gtest.h>

#include <cstdio>

#include "check.hpp"
#include "samples.hpp"

namespace oracle {
namespace {

std::vector<std::string> print_with_engine(Type from, const std::vector<std::uint64_t>& codes,
                                           const tc_cast_options& options) {
  const std::vector<std::byte> source = pack(from, codes);
  char* data = nullptr;
  std::int64_t* offsets = nullptr;
  const tc_status status = tc_cast_to_strings(source.data(), from, codes.size(), &data, &offsets, &options);
  if (status != TC_OK) {
    ADD_FAILURE() << tc_last_error();
    return std::vector<std::string>(codes.size());
  }
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < codes.size(); ++i) texts.emplace_back(data + offsets[i], data + offsets[i + 1]);
  EXPECT_EQ(offsets[0], 0);
  tc_free(data);
  tc_free(offsets);
  return texts;
}

std::vector<std::uint64_t> interesting_codes(Type from) {
  if (info(from).bits <= 16) return boundary_codes(from, from);
  std::vector<std::uint64_t> codes = thinned(boundary_codes(from, f32), 12000);
  for (const std::uint64_t code : thinned(boundary_codes(from, i64), 3000)) codes.push_back(code);
  for (const std::uint64_t code : random_codes(from, f64, 29, 10000)) codes.push_back(code);
  if (is_float(from)) {  // powers of ten and their neighbours, where digit counts change
    for (int exponent = -330; exponent <= 308; ++exponent) {
      const std::string power = "1e" + std::to_string(exponent);
      const std::uint64_t code = Conversion(text, 0, *parse(power, from), from).under(default_options()).code;
      for (const std::uint64_t near : {code - 1, code, code + 1}) {
        if (near <= code_mask(from) / 2) codes.push_back(near);
      }
    }
  }
  return codes;
}

TEST(Printing, PlainIsExactShortestAndClosest) {
  for (const Type from : numeric_types()) {
    const std::vector<std::uint64_t> codes = interesting_codes(from);
    const std::vector<std::string> texts = print_with_engine(from, codes, default_options());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::string fault = fault_of_printed(from, codes[i], texts[i], false);
      ASSERT_EQ(fault, "") << info(from).name << " 0x" << std::hex << codes[i] << " prints \"" << texts[i] << "\"";
    }
  }
}

TEST(Printing, ShortestMayUseAnExponent) {
  tc_cast_options options = default_options();
  options.float_string = 1;
  for (const Type from : numeric_types()) {
    const std::vector<std::uint64_t> codes = thinned(interesting_codes(from), 6000);
    const std::vector<std::string> texts = print_with_engine(from, codes, options);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const std::string fault = fault_of_printed(from, codes[i], texts[i], true);
      ASSERT_EQ(fault, "") << info(from).name << " 0x" << std::hex << codes[i] << " prints \"" << texts[i] << "\"";
    }
  }
}

TEST(Printing, G8IsPrintfOfEightDigits) {
  tc_cast_options options = default_options();
  options.float_string = 2;
  for (const Type from : numeric_types()) {
    if (!is_float(from)) continue;
    const std::vector<std::uint64_t> codes = thinned(interesting_codes(from), 6000);
    const std::vector<std::string> texts = print_with_engine(from, codes, options);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const Exact x = decode(from, codes[i]);
      char expected[64];
      std::snprintf(expected, sizeof expected, "%.8g",
                    x.finite() ? (x.zero() && x.negative ? -0.0 : x.value.get_d()) : 0.0);
      const std::string want = x.nan() ? "NaN" : !x.finite() ? (x.negative ? "-INF" : "INF") : expected;
      ASSERT_EQ(texts[i], want) << info(from).name << " 0x" << std::hex << codes[i];
    }
  }
}

TEST(Printing, ReadsBackAsTheSameElement) {
  for (const Type from : numeric_types()) {
    const std::vector<std::uint64_t> codes = thinned(interesting_codes(from), 20000);
    for (const int form : {0, 1}) {
      tc_cast_options options = default_options();
      options.float_string = form;
      options.saturate = 0;    // keeps the infinities of float8_e5m2
      options.round_mode = 2;  // the shortest text of a float8_e8m0fnu may lie beside its power of two
      const std::vector<std::byte> source = pack(from, codes);
      char* data = nullptr;
      std::int64_t* offsets = nullptr;
      ASSERT_EQ(tc_cast_to_strings(source.data(), from, codes.size(), &data, &offsets, &options), TC_OK);
      std::vector<std::byte> again(source.size() + 1);
      ASSERT_EQ(tc_cast_from_strings(data, offsets, again.data(), from, codes.size(), &options), TC_OK)
          << tc_last_error();
      const std::vector<std::uint64_t> back = unpack(from, again, codes.size());
      for (std::size_t i = 0; i < codes.size(); ++i) {
        if (decode(from, codes[i]).nan() || from == boolean) continue;  // "NaN" has no payload
        ASSERT_EQ(back[i], codes[i]) << info(from).name;
      }
      tc_free(data);
      tc_free(offsets);
    }
  }
}

TEST(Printing, ExistsSinceOpsetNine) {
  for (const TypeInfo& type : all_types()) {
    if (type.type == text) continue;
    for (int opset = 1; opset <= 25; ++opset) {
      tc_cast_options options = default_options();
      options.opset = opset;
      const std::uint64_t zero = 0;
      char* data = nullptr;
      std::int64_t* offsets = nullptr;
      ASSERT_EQ(tc_cast_to_strings(&zero, type.type, 1, &data, &offsets, &options), admission(type.type, text, options))
          << type.name << " at opset " << opset;
      tc_free(data);
      tc_free(offsets);
    }
  }
}

}  // namespace
}  // namespace oracle
