// SPDX-License-Identifier: Apache-2.0
#include "convert/select/reason.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tensorcast::file_conversion {
namespace {

TEST(Reason, IsAFewWords) {
  EXPECT_EQ(Reason{}.text(), "`to`");
  EXPECT_EQ((Reason{TypeReason::rule, 2}.text()), "rule 2");
  EXPECT_EQ((Reason{TypeReason::smaller, 1000}.text()), "under 1000 elements");
  EXPECT_EQ((Reason{TypeReason::not_floating, 0, "integer"}.text()), "integer");
  EXPECT_EQ((Reason{TypeReason::foreign, 0, "{odd} {0}"}.text()), "{odd} {0}");
}

TEST(Reason, HasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(TypeReason::unfit); ++i) {
    const auto why = static_cast<TypeReason>(i);
    EXPECT_EQ(parse_reason(name(why)), why);
    EXPECT_TRUE(names.insert(name(why)).second) << name(why);
  }
  EXPECT_FALSE(parse_reason("--to").has_value());
  EXPECT_EQ(name(static_cast<TypeReason>(99)), "");
}

}  // namespace
}  // namespace tensorcast::file_conversion
