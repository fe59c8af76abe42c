// SPDX-License-Identifier: Apache-2.0
#include "dtype/guarded.hpp"

#include <cerrno>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

namespace tensorcast {
namespace {

template <class Throw>
std::string words_of(Throw&& thrown) {
  const Result<int> result = guarded([&]() -> Result<int> {
    thrown();
    return 1;
  });
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::internal);
  return result.error().message;
}

TEST(Guarded, ReturnsWhatTheBodyReturns) {
  EXPECT_EQ(guarded([]() -> Result<int> { return 7; }).value(), 7);
  const Result<void> refused = guarded([]() -> Result<void> { return Error{.code = ErrorCode::io, .message = "no"}; });
  EXPECT_EQ(refused.error().code, ErrorCode::io);
}

TEST(Guarded, MakesErrorsOfExceptions) {
  EXPECT_EQ(words_of([] { throw std::bad_alloc(); }), "out of memory");
  EXPECT_EQ(words_of([] { std::vector<int>().reserve(std::vector<int>().max_size() + 1); }), "out of memory");
  EXPECT_EQ(words_of([] { throw std::runtime_error("no more threads than there are already"); }),
            "no more threads than there are already");
  EXPECT_EQ(words_of([] { throw std::system_error(EAGAIN, std::generic_category()); }),
            "cannot start a thread: the memory or the threads that are allowed are used up");
  EXPECT_THROW((void)guarded([]() -> Result<int> { throw 1; }), int);
}

TEST(Guarded, NamesTheFileOfAnException) {
  const Result<int> none = guarded("in.npy", []() -> Result<int> { throw std::bad_alloc(); });
  EXPECT_EQ(none.error().file, "in.npy");
  EXPECT_EQ(none.error().hint, "fewer `threads` need less memory");
  const Result<int> own = guarded("in.npy", []() -> Result<int> { return Error{.message = "no"}; });
  EXPECT_EQ(own.error().file, "") << "of errors, the body knows the file";
}

}  // namespace
}  // namespace tensorcast
