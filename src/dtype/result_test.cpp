// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tensorcast/error.hpp"

namespace tensorcast {
namespace {

Result<std::string> text(bool works) {
  if (works) return "abc";  // converts to std::string
  return Error{.code = ErrorCode::parse, .message = "no text", .file = "f"};
}

TEST(Result, ValueOrTakesTheOtherInPlaceOfAnError) {
  EXPECT_EQ(text(true).value_or("x"), "abc");
  EXPECT_EQ(text(false).value_or("x"), "x");
  const Result<std::string> named = text(false);
  EXPECT_EQ(named.value_or("y"), "y");
}

TEST(Result, AndThenAndTransformPassErrorsOn) {
  const auto length = [](const std::string& word) -> Result<std::size_t> { return word.size(); };
  EXPECT_EQ(text(true).and_then(length).value(), 3u);
  EXPECT_EQ(text(false).and_then(length).error().message, "no text");
  EXPECT_EQ(text(true).transform([](std::string word) { return word + "d"; }).value(), "abcd");
  EXPECT_EQ(text(false).transform([](std::string word) { return word; }).error().code, ErrorCode::parse);
  EXPECT_TRUE(text(true).transform([](const std::string&) {}).ok());
  EXPECT_EQ(text(false).or_else([](const Error& error) -> Result<std::string> { return error.message; }).value(),
            "no text");
}

// Counts how many are alive.
struct Counted {
  explicit Counted(int n) : number(n) { ++alive; }
  Counted(const Counted& other) : number(other.number) { ++alive; }
  Counted(Counted&& other) noexcept : number(other.number) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }
  int number;
  static inline int alive = 0;
};

TEST(Result, IsCopiedMovedAndAssignedInEveryState) {
  {
    Result<Counted> one = Counted(1);
    Result<Counted> two = Counted(2);
    Result<Counted> wrong = Error{.message = "a message that is long enough for memory of its own"};
    Result<Counted> copy = one;
    EXPECT_EQ(copy->number, 1);
    copy = two;
    EXPECT_EQ(copy->number, 2);
    copy = wrong;
    EXPECT_EQ(copy.error().message, wrong.error().message);
    wrong = std::move(one);
    EXPECT_EQ(wrong->number, 1);
    Result<Counted>& same = wrong;
    wrong = same;
    wrong = std::move(same);
    EXPECT_EQ(wrong->number, 1);
    const Result<Counted> moved = std::move(copy);
    EXPECT_FALSE(moved.ok());
  }
  EXPECT_EQ(Counted::alive, 0);
  using Owner = Result<std::unique_ptr<int>>;
  static_assert(std::is_nothrow_move_assignable_v<Owner> && !std::is_copy_constructible_v<Owner>);
  static_assert(!std::is_copy_assignable_v<Owner> && std::is_copy_assignable_v<Result<std::string>>);
  Owner owner = Error{};
  owner = std::make_unique<int>(3);
  EXPECT_EQ(**owner, 3);
}

TEST(Result, OfVoidComposesToo) {
  const Result<void> good, bad = Error{.message = "x"};
  EXPECT_EQ(good.transform([] { return 3; }).value(), 3);
  EXPECT_EQ(good.and_then([] { return Result<int>(4); }).value(), 4);
  EXPECT_EQ(bad.transform([] { return 3; }).error().message, "x");
  EXPECT_NO_THROW(good.value());
  EXPECT_THROW(bad.value(), BadResultAccess);
}

TEST(Result, AccessWithoutAValueThrowsTheError) {
  EXPECT_THROW((void)*text(false), BadResultAccess);
  Result<std::string> named = text(false);
  EXPECT_THROW((void)named->size(), BadResultAccess);
  EXPECT_THROW((void)text(true).error(), BadResultAccess);
  try {
    (void)text(false).value();
    FAIL();
  } catch (const BadResultAccess& misuse) {
    EXPECT_STREQ(misuse.what(), "the Result has no value but an error: f: no text");
    EXPECT_EQ(misuse.error().file, "f");
    EXPECT_EQ(misuse.error().message, "no text");
  }
}

TEST(Result, OfATemporaryIsTheValueItself) {
  for (const char c : *text(true)) EXPECT_NE(c, '\0');  // the string lives as long as the loop
  const std::string& kept = text(true).value();
  EXPECT_EQ(kept, "abc");
  const Result<std::unique_ptr<int>> made = std::make_unique<int>(5);
  EXPECT_EQ(**made, 5);
}

TEST(Result, ConvertsToAResultOfAWiderType) {
  const Result<int> narrow = 7;
  const Result<double> wide = narrow;
  EXPECT_EQ(*wide, 7.0);
}

TEST(ErrorCode, HasANameForEachNumber) {
  EXPECT_EQ(name(ErrorCode::out_of_range), "out_of_range");
  EXPECT_EQ(name(ErrorCode::cancelled), "cancelled");
  EXPECT_EQ(name(static_cast<ErrorCode>(99)), "unknown");
}

}  // namespace
}  // namespace tensorcast
