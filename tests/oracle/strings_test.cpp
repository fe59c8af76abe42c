// SPDX-License-Identifier: Apache-2.0
// D8: text to numbers, with exact decimal midpoints of every target.
#include <gtest/gtest.h>

#include "check.hpp"
#include "samples.hpp"

namespace oracle {
namespace {

struct Parsed {
  tc_status status = TC_OK;
  std::string message;
  std::vector<std::uint64_t> codes;
};

Parsed parse_with_engine(const std::vector<std::string>& texts, Type to, const tc_cast_options& options) {
  std::string data;
  std::vector<std::int64_t> offsets = {0};
  for (const std::string& text : texts) {
    data += text;
    offsets.push_back(static_cast<std::int64_t>(data.size()));
  }
  std::vector<std::byte> target(tc_storage_bytes(to, texts.size()) + 1);
  Parsed result;
  result.status = tc_cast_from_strings(data.data(), offsets.data(), target.data(), to, texts.size(), &options);
  if (result.status == TC_OK) {
    result.codes = unpack(to, target, texts.size());
  } else {
    result.message = tc_last_error();
  }
  return result;
}

// Each text by itself when it must fail, all good ones together.
void expect_agreement(const std::vector<std::string>& texts, Type to, const tc_cast_options& options) {
  std::vector<std::string> good;
  std::vector<std::uint64_t> expected;
  for (const std::string& text : texts) {
    const std::optional<Exact> x = parse(text, to);
    const Outcome outcome = x ? Conversion(Type::text, 0, *x, to, options.scale).under(options) : Outcome{};
    if (x && !outcome.refused) {
      good.push_back(text);
      expected.push_back(outcome.code);
      continue;
    }
    const Parsed got = parse_with_engine({"1", text}, to, options);
    ASSERT_EQ(got.status, x ? TC_OUT_OF_RANGE : TC_PARSE) << "\"" << text << "\" to " << info(to).name;
    EXPECT_NE(got.message.find("element 1:"), std::string::npos) << got.message;
  }
  const Parsed got = parse_with_engine(good, to, options);
  ASSERT_EQ(got.status, TC_OK) << info(to).name << ": " << got.message;
  for (std::size_t i = 0; i < good.size(); ++i) {
    ASSERT_EQ(got.codes[i], expected[i]) << "\"" << good[i].substr(0, 1200) << "\" to " << info(to).name << " "
                                         << replay_command(f64, 0, to, options);
  }
}

// A dyadic rational is a finite decimal: multiply by ten until nothing is left behind the point.
std::string exact_decimal(const mpq_class& x) {
  mpz_class whole = truncated(abs(x));
  mpq_class rest = abs(x) - whole;
  std::string text;
  if (sgn(x) < 0) text += '-';
  text += whole.get_str();
  text += '.';
  const mp_bitcnt_t places = mpz_sizeinbase(x.get_den_mpz_t(), 2) - 1;
  mpz_class scaled;
  mpz_ui_pow_ui(scaled.get_mpz_t(), 10, places);
  const mpq_class digits = rest * scaled;
  std::string fraction = digits.get_num().get_str();
  if (places == 0) return text + "0";
  return text + std::string(places - fraction.size(), '0') + fraction;
}

const std::vector<std::string>& handwritten() {
  // clang-format off
  static const std::vector<std::string> texts = {
      "3.14", "1000", "1e-5", "1E8", "100.5", "+INF", "INF", "-INF", "NaN", "inf", "Infinity", "-infinity", "+nan",
      "-NaN", "nAn", " 1.5", "1.5 ", "\t\n\v\f\r 2 \r\n", "5.", ".5", "-.5e1", "+1", "1e+3", "1e3", "0e99999", "-0",
      "-0.0", "0.0000001", "1e400", "-1e400", "1e-400", "-1e-400", "1e-310", "4.9e-324", "2.4e-324", "2.5e-324",
      "1.7976931348623157e308", "1.7976931348623159e308", "3.4028235e38", "3.4028236e38", "65504", "65519.999",
      "65520", "448", "464", "464.0000000000000000000000000000000000001", "465", "61440", "300", "-1", "255.9999",
      "256", "-0.9", "0.5", "1.5", "2.5", "-2.5", "9223372036854775807", "9223372036854775808",
      "-9223372036854775809", "18446744073709551615", "18446744073709551616",
      "340282366920938463463374607431768211456", "1e19", "1e20", "1e999999999999999999999",
      "1e-999999999999999999999", "0e999999999999999999999", "000000000000000000000000000000000000000000000001",
      "0.000000000000000000000000000000000000000000000001e48", "123456789012345678901234567890e-20", "0x10", "0x1p3",
      "1_000", "1,5", "", " ", "+", "-", ".", "e5", "1e", "1e+", "1e5.0", "1.2.3", "12abc", "abc", "Hello World!",
      "inf inity", "in", "infinit", "infinityy", "nan(1)", "--1", "+-1", "1 2", "1f", "1d", "\xEF\xBC\x91", "true",
      "FALSE", "True ", " tRuE", "truee", "t", "yes", "1e 5", "- 1", std::string("1\0", 2), std::string("\0", 1),
      "1\x80", "INF ", "+Infinity", "1e-45", "7e-46", "7.1e-46"
  };
  // clang-format on
  return texts;
}

TEST(Strings, GrammarToEveryTypeUnderEveryOption) {
  for (const Type to : numeric_types()) {
    for (tc_cast_options options : option_sets(f64, to)) {
      expect_agreement(handwritten(), to, options);
      options.scale = 0.3;
      expect_agreement(handwritten(), to, options);
    }
  }
}

TEST(Strings, ExactMidpointsAndTheirNeighbours) {
  for (const Type to : numeric_types()) {
    if (!is_float(to)) continue;
    std::vector<std::string> texts;
    const std::vector<std::uint64_t> codes = thinned(boundary_codes(f64, to, 1.0, false), to == f64 ? 1500 : 3000);
    for (const std::uint64_t code : codes) {
      const Exact x = decode(f64, code);
      if (!x.finite()) continue;
      const std::string exact = exact_decimal(x.value);
      texts.push_back(exact);
      texts.push_back(exact + "0000000000000000000000000000000000000001");
      if (to == f64) {  // halfway to the next one
        const Exact next = decode(f64, code + 1);
        if (next.finite()) texts.push_back(exact_decimal((x.value + next.value) / 2));
        if (next.finite()) texts.push_back(texts.back() + "1");
      }
    }
    expect_agreement(texts, to, default_options());
  }
}

TEST(Strings, RandomDecimals) {
  Random random(23);
  std::vector<std::string> texts;
  for (int i = 0; i < 4000; ++i) {
    std::string text;
    if (random.below(2) == 0) text += '-';
    for (std::uint64_t n = random.below(24) + 1; n > 0; --n) text += static_cast<char>('0' + random.below(10));
    if (random.below(3) != 0) {
      text += '.';
      for (std::uint64_t n = random.below(30); n > 0; --n) text += static_cast<char>('0' + random.below(10));
    }
    if (random.below(3) != 0) text.append("e").append(std::to_string(static_cast<long>(random.below(120)) - 60));
    texts.push_back(text);
  }
  for (const Type to : numeric_types()) expect_agreement(texts, to, default_options());
}

TEST(Strings, EveryOpset) {
  for (const Type to : numeric_types()) {
    for (int opset = 1; opset <= 25; ++opset) {
      tc_cast_options options = default_options();
      options.opset = opset;
      const Parsed got = parse_with_engine({"-9.5", "nan", "1e9", "-inf"}, to, options);
      ASSERT_EQ(got.status, admission(text, to, options)) << info(to).name << " at opset " << opset << got.message;
      if (got.status == TC_OK) expect_agreement({"-9.5", "nan", "1e9", "-inf"}, to, options);
    }
  }
}

}  // namespace
}  // namespace oracle
