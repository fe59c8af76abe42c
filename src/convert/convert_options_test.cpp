// SPDX-License-Identifier: Apache-2.0
#include "convert/convert_options.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "options/option_testing.hpp"
#include "options/option_text.hpp"

namespace tensorcast::options {
namespace {

template <class Struct>
std::size_t listed() {
  std::size_t count = 0;
  for_each(request_options, [&](const auto& option) {
    count += std::is_same_v<typename std::decay_t<decltype(option)>::Owner, Struct> ? 1 : 0;
  });
  return count;
}

TEST(RequestOptions, EveryMemberIsListed) {
  EXPECT_EQ(listed<TensorTargets>() + 1, member_count<TensorTargets>()) << "all but its base";
  EXPECT_EQ(listed<QuantizeTargets>(), member_count<QuantizeTargets>());
  EXPECT_EQ(listed<OutputFilter>(), member_count<OutputFilter>());
  EXPECT_EQ(listed<TensorSelection>() + 1, member_count<TensorSelection>()) << "all but `filter`";
  EXPECT_EQ(listed<ConversionSettings>() + 1, member_count<ConversionSettings>()) << "all but `options`";
}

TEST(RequestOptions, EachHasANameAndASentence) {
  std::set<std::string_view> names;
  for_each(request_options, [&](const auto& option) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    if (option.flag != nullptr || option.in_python) {
      EXPECT_GT(std::string_view(option.help).size(), 10U) << option.name;
    }
    ConvertRequest request;
    if constexpr (std::is_arithmetic_v<typename std::decay_t<decltype(option)>::Type>) {
      EXPECT_EQ(value_of(request, option), option.usual()) << option.name;
      EXPECT_TRUE(option.allows(option.usual())) << option.name;
    }
  });
}

TEST(RequestOptions, EachFlagOfCIsListedOnce) {
  std::multiset<int> flags;
  for_each(request_options, [&](const auto& option) {
    if (option.c_flag != 0) flags.insert(option.c_flag);
  });
  // The last two are values of on_loss.
  EXPECT_EQ(flags, (std::multiset<int>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(TC_CONVERT_TELL_LOSS, 9);
  EXPECT_EQ(TC_CONVERT_FAIL_LOSS, 10);
}

}  // namespace
}  // namespace tensorcast::options
