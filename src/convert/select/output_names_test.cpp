// SPDX-License-Identifier: Apache-2.0
#include "convert/select/output_names.hpp"

#include <gtest/gtest.h>

namespace tensorcast::file_conversion {
namespace {

OutputNames compiled(const OutputFilter& filter) {
  Result<OutputNames> names = OutputNames::compile(filter);
  EXPECT_TRUE(names.ok());
  return std::move(names).value();
}

TEST(OutputNames, DropIsStrongerThanOnly) {
  OutputNames names = compiled({.drop = {"bias"}, .only = {"^a\\.", "^b\\."}});
  EXPECT_TRUE(names.writes("a.weight"));
  EXPECT_FALSE(names.writes("a.bias"));
  EXPECT_FALSE(names.writes("c.weight"));
  EXPECT_FALSE(names.keeps_all());
  EXPECT_EQ(names.check_all_matched().error().message, "only 2 (\"^b\\.\") matches no tensor");
}

TEST(OutputNames, RenamesOneAfterAnother) {
  OutputNames names = compiled({.rename = {{"^module\\.", ""}, {"layers\\.(\\d+)", "h.\\1"}, {"h\\.0", "\\0\\\\"}}});
  EXPECT_EQ(names.new_name("module.layers.12.w").value(), "h.12.w");
  EXPECT_EQ(names.new_name("layers.0.w").value(), "h.0\\.w");
  EXPECT_EQ(names.new_name("other").value(), "other");
  EXPECT_TRUE(names.check_all_matched().ok());
}

TEST(OutputNames, WrongReplacementsAreErrors) {
  for (const Rename& rename : {Rename{"(", ""}, Rename{"a", "\\1"}, Rename{"a", "\\x"}}) {
    EXPECT_EQ(check_rename(rename).error().code, ErrorCode::invalid_argument) << rename.replacement;
  }
  EXPECT_TRUE(check_rename({"(a)", "\\1b"}).ok());
}

TEST(OutputNames, NamesStayWithinLimits) {
  OutputNames none = compiled({.rename = {{".*", ""}}});
  EXPECT_EQ(none.new_name("a").error().tensor, "a");
  OutputFilter doubling;
  for (int i = 0; i < 40; ++i) doubling.rename.push_back({"^(.*)$", "\\1\\1"});
  EXPECT_EQ(compiled(doubling).new_name("a").error().code, ErrorCode::invalid_argument);
}

TEST(OutputNames, MetadataOfTiedTensorsFollow) {
  OutputNames names = compiled({.drop = {"^c$"}, .rename = {{"^", "m."}}});
  const formats::Metadata metadata = {{"format", "pt"}, {"tied", "a"}, {"gone", "c"}};
  const formats::Metadata expected = {{"format", "pt"}, {"m.tied", "m.a"}};
  EXPECT_EQ(names.metadata_of(metadata, {"a", "b", "c"}).value(), expected);
}

TEST(OutputNames, EqualNamesNameBothTensors) {
  const Error error = check_names_differ({"a", "b", "c"}, {"x", "y", "x"}).error();
  EXPECT_EQ(error.tensor, "c");
  EXPECT_EQ(error.message, "\"a\" and this one would both be named \"x\"");
}

}  // namespace
}  // namespace tensorcast::file_conversion
