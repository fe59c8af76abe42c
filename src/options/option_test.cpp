// SPDX-License-Identifier: Apache-2.0
#include "options/option.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "options/cast_options.hpp"
#include "options/cast_report.hpp"
#include "options/option_testing.hpp"
#include "options/option_text.hpp"
#include "options/promote_options.hpp"
#include "options/quantize_options.hpp"
#include "options/value_text.hpp"

namespace tensorcast::options {
namespace {

static_assert(member_count<CastOptions>() == std::tuple_size_v<decltype(cast_options)>, "an option is not in the list");
static_assert(member_count<PromoteOptions>() == std::tuple_size_v<decltype(promote_options)>);
static_assert(member_count<QuantizeOptions>() == std::tuple_size_v<decltype(quantize_options)>);
static_assert(member_count<CastReport>() == std::tuple_size_v<decltype(cast_report)>);

std::string text_of(const char* path) {
  std::ifstream file(std::string(TENSORCAST_SOURCE_DIR "/") + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class List>
void expect_names_and_sentences(const List& list) {
  std::set<std::string> names;
  for_each(list, [&](const auto& option) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_GT(std::string_view(option.help).size(), 10U) << option.name;
    using Value = typename std::decay_t<decltype(option)>::Type;
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      EXPECT_TRUE(option.words.size() == 0 || option.allows(option.usual())) << option.name;
    }
    if constexpr (std::is_enum_v<Value> && !std::is_same_v<Value, DType>) {
      EXPECT_GE(option.words.size(), 2U) << option.name;
      EXPECT_EQ(static_cast<int>(option.usual()), 0) << option.name;
    }
  });
}

TEST(Options, EachHasANameAndASentence) {
  expect_names_and_sentences(cast_options);
  expect_names_and_sentences(quantize_options);
}

TEST(Options, RefuseNumbersWithoutAWord) {
  for_each(cast_options, [](const auto& option) {
    using Value = typename std::decay_t<decltype(option)>::Type;
    if constexpr (std::is_enum_v<Value>) {
      EXPECT_TRUE(option.allows(static_cast<Value>(option.words.size() - 1))) << option.name;
      EXPECT_FALSE(option.allows(static_cast<Value>(option.words.size()))) << option.name;
      EXPECT_FALSE(option.allows(static_cast<Value>(-1))) << option.name;
    } else if constexpr (std::is_same_v<Value, double>) {
      EXPECT_FALSE(option.allows(NAN)) << option.name;
      EXPECT_FALSE(option.allows(INFINITY)) << option.name;
      EXPECT_FALSE(option.allows(-INFINITY)) << option.name;
    }
  });
}

struct Values {
  std::string text = {};
  std::uint64_t count = 0;
};

TEST(Options, AValueIsNamedByItsKind) {
  EXPECT_EQ(value_name(option("x", &Values::text, {.kind = ValueKind::file})), "FILE");
  EXPECT_EQ(value_name(option("x", &Values::count, {.kind = ValueKind::size})), "SIZE");
  EXPECT_EQ(value_name(option("x", &Values::count)), "N");
  EXPECT_EQ(value_name(option("x", &Values::text)), "");
  EXPECT_EQ(value_name(option("x", &Values::text, {.kind = ValueKind::file, .metavar = "FILE.json"})), "FILE.json");
}

TEST(Options, SizesHaveUnits) {
  EXPECT_EQ(parse_size("5GB"), 5'000'000'000U);
  EXPECT_EQ(parse_size("5G"), 5'000'000'000U);
  EXPECT_EQ(parse_size("1.5 mib"), 1'572'864U);
  EXPECT_EQ(parse_size("2KiB"), 2048U);
  EXPECT_EQ(parse_size("7"), 7U);
  EXPECT_EQ(parse_size("7B"), 7U);
  for (const char* wrong : {"", "GB", "0", "-5GB", "5XB", "5GBB", "5 G B", "nan", "inf", "1e19", "0.5"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(parse_bits("4.5bits"), 4.5);
  EXPECT_EQ(parse_bits("32"), 32.0);
  for (const char* wrong : {"", "bits", "4.5bit", "0.9", "33", "nan", "4.5 bits"}) {
    EXPECT_EQ(parse_bits(wrong), std::nullopt) << wrong;
  }
}

// "0 up, 1 down, 2 nearest".
std::string numbered(const Words& words) {
  std::string text;
  int number = 0;
  for (const char* word : words) text += (text.empty() ? "" : ", ") + std::to_string(number++) + " " + word;
  return text;
}

TEST(Options, TheHeaderOfCSaysTheWords) {
  const std::string header = std::regex_replace(text_of("include/tensorcast/c_api.h"), std::regex("\\s+"), " ");
  for_each(cast_options, [&](const auto& option) {
    const std::regex comment(" (int32_t|uint64_t|double) " + std::string(option.name) + "; /\\*[^*]*" +
                             numbered(option.words));
    EXPECT_TRUE(std::regex_search(header, comment)) << option.name;
  });
  EXPECT_NE(header.find(numbered(promote_rules)), std::string::npos);
}

TEST(Options, TheExampleOfABindingHasTheNumbersOfAReport) {
  const std::string page = text_of("docs/bindings.md");
  for_each(cast_report, [&](const auto& number) {
    EXPECT_NE(page.find('"' + std::string(number.name) + '"'), std::string::npos) << number.name;
  });
}

TEST(Options, TheExampleOfABindingHasTheWords) {
  const std::string page = text_of("docs/bindings.md");
  for_each(cast_options, [&](const auto& option) {
    // The example's struct ends where that of the first release did.
    const tc_cast_options options = {};
    if (static_cast<const void*>(&(options.*option.c_member)) >= &options.executor) return;
    EXPECT_NE(page.find('"' + std::string(option.name) + '"'), std::string::npos) << option.name;
    if (option.words.size() == 0) return;
    std::string line = '"' + std::string(option.name) + "\": (";
    for (const char* word : option.words) line += (line.back() == '(' ? "\"" : ", \"") + std::string(word) + '"';
    EXPECT_NE(page.find(line + "),"), std::string::npos) << line;
  });
}

}  // namespace
}  // namespace tensorcast::options
