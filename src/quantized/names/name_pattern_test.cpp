// SPDX-License-Identifier: Apache-2.0
#include "quantized/names/name_pattern.hpp"

#include <gtest/gtest.h>

#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  const Result<NamePattern> compiled = NamePattern::compile(pattern);
  EXPECT_TRUE(compiled.ok()) << pattern;
  return compiled.ok() && compiled->matches(name);
}

TEST(NamePattern, IsSearchedNotAnchored) {
  EXPECT_TRUE(matches("norm", "layer.0.norm.weight"));
  EXPECT_FALSE(matches("^norm", "layer.0.norm.weight"));
  EXPECT_TRUE(matches(R"(^layer\.\d+\.(norm|bias))", "layer.12.bias"));
  EXPECT_TRUE(matches("^.$", "\xC3\xA9"));
  EXPECT_FALSE(matches("x", ""));
  EXPECT_TRUE(matches("", ""));
}

TEST(NamePattern, WhatItLacksIsNamed) {
  for (const std::string pattern : {"(?=a)b", "(?<!a)b", R"((a)\1)"}) {
    const Result<NamePattern> compiled = NamePattern::compile(pattern);
    ASSERT_FALSE(compiled.ok()) << pattern;
    EXPECT_EQ(compiled.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(compiled.error().hint, "RE2's syntax: no backreferences, no lookaround");
  }
}

// Each of these once took minutes or the whole stack.
TEST(NamePattern, PatternsMadeToHangOrCrashEndAtOnce) {
  const std::string name(100'000, 'a');
  EXPECT_FALSE(matches("(a*)*(a*)*(a*)*b", name));
  EXPECT_FALSE(matches("(a|a)*(a|aa)*(.*.*)*b", name));
  const std::string parentheses = std::string(20'000, '(') + std::string(20'000, ')');
  for (const std::string& pattern : {std::string("(a{0,30}){300}b"), std::string("((a{0,100}){0,100}){0,100}"),
                                     parentheses, std::string(1001, 'a')}) {
    EXPECT_EQ(check_pattern(pattern).error().code, ErrorCode::invalid_argument) << pattern.substr(0, 60);
  }
  EXPECT_TRUE(matches(std::string(500, '(') + std::string(500, ')'), name));
}

}  // namespace
}  // namespace tensorcast::file_conversion
