// SPDX-License-Identifier: Apache-2.0
// How calls run: on how many threads, on whose, and of which part of a tensor.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "dtype/platform.hpp"
#include "tensorcast/c_api.h"

#if defined(__GLIBC__)
#include <pthread.h>
#endif

namespace {

#if TENSORCAST_HAS_EXCEPTIONS && TENSORCAST_HAS_THREADS
tc_status cast_by(tc_executor executor) {
  static std::vector<double> source(std::size_t{1} << 20);
  static std::vector<float> target(source.size());
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.executor = executor;
  return tc_cast(source.data(), TC_FLOAT64, target.data(), TC_FLOAT32, source.size(), &options);
}

TEST(CApi, NothingThatAPoolThrowsPasses) {
  EXPECT_EQ(cast_by([](void*, size_t, tc_task, void*) { throw std::runtime_error("the pool is closed"); }),
            TC_INTERNAL);
  EXPECT_STREQ(tc_last_error(), "the pool is closed");
  EXPECT_EQ(cast_by([](void*, size_t, tc_task, void*) { throw 7; }), TC_INTERNAL);
  EXPECT_STREQ(tc_last_error(), "a callback threw what is no std::exception");
}

#if defined(__GLIBC__)
TEST(CApi, APoolMayEndItsThread) {
  pthread_t thread;
  bool returned = false;
  const auto body = [](void* returned_of_thread) -> void* {
    cast_by([](void*, size_t, tc_task, void*) { pthread_exit(nullptr); });
    *static_cast<bool*>(returned_of_thread) = true;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, &returned), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_FALSE(returned);
}
#endif
#endif

// Also by calls that start no threads.
TEST(CApi, ThreadsBelowZeroAreRefusedByEveryCall) {
  const float source[1] = {1.0f}, scale[1] = {2.0f};
  const int64_t shape[1] = {1}, strides[1] = {4}, offsets[2] = {0, 1};
  uint8_t target[8];
  char* text = nullptr;
  int64_t* ends = nullptr;
  tc_prepared_cast prepared = TC_PREPARED_CAST_INIT;
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.threads = -1;
  const auto is_refused = [](tc_status status) {
    EXPECT_EQ(status, TC_INVALID_ARGUMENT);
    EXPECT_STREQ(tc_last_error_message(), "threads is 0 (all cores) or more, not -1");
  };
  is_refused(tc_cast(source, TC_FLOAT32, target, TC_UINT8, 1, &options));
  is_refused(tc_cast_strided(source, TC_FLOAT32, strides, target, TC_UINT8, nullptr, shape, 1, &options));
  is_refused(tc_cast_scaled(source, TC_FLOAT32, nullptr, target, TC_UINT8, nullptr, scale, TC_FLOAT32, nullptr, shape,
                            1, &options));
  is_refused(tc_cast_from_strings("7", offsets, target, TC_UINT8, 1, &options));
  is_refused(tc_cast_to_strings(source, TC_FLOAT32, 1, &text, &ends, &options));
  is_refused(tc_prepare_cast(TC_FLOAT32, TC_UINT8, &options, &prepared));
}

// Stochastic rounding depends on the place, which a program that has pieces tells.
TEST(CApi, PiecesHaveTheRandomBitsOfTheWhole) {
  constexpr std::size_t count = 96, half = 40;
  const std::vector<float> source(count, 0.3f), scales(count, 1.0f);
  std::vector<uint8_t> whole(count), pieces(count);
  std::string text;
  std::vector<int64_t> offsets = {0};
  for (std::size_t i = 0; i < count; ++i) text += "0.3", offsets.push_back(static_cast<int64_t>(text.size()));
  using Cast = tc_status (*)(const float*, const float*, const char*, const int64_t*, uint8_t*, std::size_t,
                             const tc_cast_options*);
  const Cast casts[] = {[](auto* from, auto*, auto*, auto*, auto* to, auto n, auto* options) {
                          return tc_cast(from, TC_FLOAT32, to, TC_FLOAT8_E4M3FN, n, options);
                        },
                        [](auto* from, auto*, auto*, auto*, auto* to, auto n, auto* options) {
                          tc_cast_report report = TC_CAST_REPORT_INIT;
                          return tc_cast_with_report(from, TC_FLOAT32, to, TC_FLOAT8_E4M3FN, n, options, &report);
                        },
                        [](auto* from, auto*, auto*, auto*, auto* to, auto n, auto* options) {
                          const int64_t shape[1] = {static_cast<int64_t>(n)}, repeats[1] = {0};
                          return tc_cast_strided(from, TC_FLOAT32, repeats, to, TC_FLOAT8_E4M3FN, nullptr, shape, 1,
                                                 options);
                        },
                        [](auto* from, auto* scales, auto*, auto*, auto* to, auto n, auto* options) {
                          const int64_t shape[1] = {static_cast<int64_t>(n)};
                          return tc_cast_scaled(from, TC_FLOAT32, nullptr, to, TC_FLOAT8_E4M3FN, nullptr, scales,
                                                TC_FLOAT32, nullptr, shape, 1, options);
                        },
                        [](auto*, auto*, auto* text, auto* offsets, auto* to, auto n, auto* options) {
                          return tc_cast_from_strings(text, offsets, to, TC_FLOAT8_E4M3FN, n, options);
                        }};
  for (const Cast cast : casts) {
    tc_cast_options options = TC_CAST_OPTIONS_INIT;
    options.rounding = TC_ROUNDING_STOCHASTIC;
    options.seed = 5;
    const auto run = [&](std::size_t first, std::size_t n, uint8_t* to) {
      options.first_element = first;
      return cast(source.data() + first, scales.data() + first, text.data(), offsets.data() + first, to + first, n,
                  &options);
    };
    ASSERT_EQ(run(0, count, whole.data()), TC_OK) << tc_last_error();
    ASSERT_EQ(run(0, half, pieces.data()), TC_OK);
    ASSERT_EQ(run(half, count - half, pieces.data()), TC_OK);
    EXPECT_EQ(pieces, whole);
  }
}

TEST(CApi, CallsThatKnowThePlaceRefuseOne) {
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.first_element = 8;
  tc_prepared_cast prepared = TC_PREPARED_CAST_INIT;
  EXPECT_EQ(tc_prepare_cast(TC_FLOAT32, TC_UINT8, &options, &prepared), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "tc_cast_options.first_element is 8, and this function takes none");
  char* json = nullptr;
  EXPECT_EQ(tc_explain("1", TC_UNDEFINED, TC_UINT8, &options, &json), TC_INVALID_ARGUMENT);
}

}  // namespace
