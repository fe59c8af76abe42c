// SPDX-License-Identifier: Apache-2.0
// Structs of other sizes: those of callers that were compiled with an older or a newer header.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "c_api/c_call.hpp"
#include "options/cast_options.hpp"
#include "options/promote_options.hpp"
#include "tensorcast/c_api.h"

namespace {

constexpr std::size_t first_cast_options = 56;     // of 0.1.0, whose layout never changes
constexpr std::size_t first_promote_options = 24;  // the first three fields

// What a caller has around its struct must stay as it is.
struct Guarded {
  alignas(8) unsigned char bytes[256];
  Guarded() { std::memset(bytes, 0xa5, sizeof bytes); }
  [[nodiscard]] bool untouched_from(std::size_t size) const {
    for (std::size_t i = size; i < sizeof bytes; ++i) {
      if (bytes[i] != 0xa5) return false;
    }
    return true;
  }
  template <class Struct>
  Struct* as() {
    return reinterpret_cast<Struct*>(bytes);
  }
};

TEST(Growth, LayoutsAreThoseOfTheFirstRelease) {
  EXPECT_EQ(offsetof(tc_cast_options, scale), 48u);
  EXPECT_EQ(offsetof(tc_cast_options, executor), first_cast_options);
  EXPECT_EQ(offsetof(tc_cast_options, first_element), 88u);
  EXPECT_EQ(offsetof(tc_promote_options, u64_integer_promotion_target), 16u);
}

TEST(Growth, InitWritesOnlyTheCallersBytes) {
  for (const std::size_t size : {first_cast_options, sizeof(tc_cast_options), sizeof(tc_cast_options) + 24}) {
    Guarded guarded;
    tc_cast_options_init_sized(guarded.as<tc_cast_options>(), size);
    EXPECT_TRUE(guarded.untouched_from(size)) << size;
    EXPECT_EQ(guarded.as<tc_cast_options>()->struct_size, size);
    EXPECT_EQ(guarded.as<tc_cast_options>()->scale, 1.0);
  }
  Guarded by_function, too_small;
  (tc_cast_options_init)(by_function.as<tc_cast_options>());
  EXPECT_TRUE(by_function.untouched_from(first_cast_options));
  tc_cast_options_init_sized(too_small.as<tc_cast_options>(), 8);
  EXPECT_TRUE(too_small.untouched_from(0));
  Guarded promotion;
  (tc_promote_options_init)(promotion.as<tc_promote_options>());
  EXPECT_TRUE(promotion.untouched_from(first_promote_options));
  EXPECT_EQ(promotion.as<tc_promote_options>()->u64_integer_promotion_target, TC_FLOAT32);
}

// What a definition sets is what the functions set. Padding is not compared.
TEST(Growth, InitializersAreTheDefaults) {
  tc_cast_options options = TC_CAST_OPTIONS_INIT, set;
  tc_cast_options_init(&set);
  EXPECT_EQ(options.struct_size, set.struct_size);
  EXPECT_EQ(options.executor, set.executor);
  EXPECT_EQ(options.executor_data, set.executor_data);
  EXPECT_EQ(options.threads, set.threads);
  EXPECT_EQ(options.first_element, set.first_element);
  tensorcast::options::for_each(tensorcast::options::cast_options, [&](const auto& option) {
    EXPECT_EQ(options.*option.c_member, set.*option.c_member) << option.name;
  });
  tc_promote_options promotion = TC_PROMOTE_OPTIONS_INIT, promotion_set;
  tc_promote_options_init(&promotion_set);
  EXPECT_EQ(promotion.struct_size, promotion_set.struct_size);
  tensorcast::options::for_each(tensorcast::options::promote_options, [&](const auto& option) {
    EXPECT_EQ(promotion.*option.c_member, promotion_set.*option.c_member) << option.name;
  });
  const tc_cast_report report = TC_CAST_REPORT_INIT;
  EXPECT_EQ(report.struct_size, sizeof report);
  EXPECT_EQ(report.snr_db, 0);
}

// The fields after those of the first release once needed another function to be read.
TEST(Growth, FieldsAreReadThatAreSetAfterInit) {
  static int calls = 0;
  tc_cast_options options;
  tc_cast_options_init(&options);
  options.executor = [](void*, std::size_t count, tc_task task, void* work) {
    ++calls;
    for (std::size_t i = 0; i < count; ++i) task(work, i);
  };
  const std::vector<float> source(std::size_t{1} << 22, 1.0f);
  std::vector<unsigned char> target(source.size());
  ASSERT_EQ(tc_cast(source.data(), TC_FLOAT32, target.data(), TC_UINT8, source.size(), &options), TC_OK);
  EXPECT_EQ(calls, 1);
  tc_promote_options promotion;
  tc_promote_options_init(&promotion);
  promotion.rules = TC_RULES_TORCH;
  tc_dtype common = 0;
  ASSERT_EQ(tc_promote(TC_INT32, 0, TC_FLOAT16, 0, &promotion, &common), TC_OK);
  EXPECT_EQ(common, TC_FLOAT16);
}

TEST(Growth, AStructOfZerosIsRefused) {
  const float source[2] = {1, 2};
  unsigned char target[2] = {7, 7};
  tc_cast_options options = {};
  options.struct_size = sizeof options;
  options.threads = 1;
  EXPECT_EQ(tc_cast(source, TC_FLOAT32, target, TC_UINT8, 2, &options), TC_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(tc_last_error(), "TC_CAST_OPTIONS_INIT"), nullptr) << tc_last_error();
  EXPECT_EQ(target[0], 7);
  tc_promote_options promotion = {};
  promotion.struct_size = sizeof promotion;
  tc_dtype common = 0;
  EXPECT_EQ(tc_promote(TC_INT64, 0, TC_UINT64, 0, &promotion, &common), TC_INVALID_ARGUMENT);
}

TEST(Growth, LayoutsWithoutASpellingAreFilled) {
  constexpr std::size_t first_layout = 72;
  EXPECT_EQ(offsetof(tc_quantized_layout, spelling), first_layout);
  const std::int64_t shape[2] = {2, 32};
  for (const std::size_t size : {first_layout, sizeof(tc_quantized_layout)}) {
    Guarded guarded;
    guarded.as<tc_quantized_layout>()->struct_size = size;
    ASSERT_EQ(tc_quantized_sizes("mxfp8", shape, 2, nullptr, guarded.as<tc_quantized_layout>()), TC_OK);
    EXPECT_EQ(guarded.as<tc_quantized_layout>()->codes_bytes, 64u);
    EXPECT_TRUE(guarded.untouched_from(size));
  }
}

TEST(Growth, ReportsOfOtherSizesAreFilled) {
  constexpr std::size_t first_report = 112;  // of 0.1.0
  EXPECT_EQ(offsetof(tc_cast_report, snr_db) + sizeof(double), first_report);
  const float source[2] = {1.5f, 1000.0f};
  unsigned char narrow[2];
  for (const std::size_t size : {first_report, sizeof(tc_cast_report), sizeof(tc_cast_report) + 24}) {
    Guarded guarded;
    auto* const report = guarded.as<tc_cast_report>();
    tc_cast_report_init_sized(report, size);
    ASSERT_EQ(tc_cast_with_report(source, TC_FLOAT32, narrow, TC_FLOAT8_E4M3FN, 2, nullptr, report), TC_OK);
    EXPECT_TRUE(guarded.untouched_from(size)) << size;
    EXPECT_EQ(report->struct_size, size);
    EXPECT_EQ(report->saturated, 1u);
  }
  Guarded newer;
  tc_cast_report_init_sized(newer.as<tc_cast_report>(), sizeof(tc_cast_report) + 24);
  newer.bytes[sizeof(tc_cast_report) + 1] = 1;
  EXPECT_EQ(tc_cast_with_report(source, TC_FLOAT32, narrow, TC_FLOAT8_E4M3FN, 2, nullptr, newer.as<tc_cast_report>()),
            TC_INVALID_ARGUMENT);
}

}  // namespace

// A struct as it is in a later release, which added two fields at different times.
struct Grown {
  std::size_t struct_size;
  std::int64_t first;
  std::int64_t second;
  std::int64_t third;
};
template <>
struct tensorcast::c_api::Growth<Grown> {
  static constexpr const char* name = "Grown";
  static constexpr std::array sizes = {offsetof(Grown, second), offsetof(Grown, third)};
};

namespace {

TEST(Growth, EachReleaseHasTheFieldsThatItKnew) {
  using namespace tensorcast::c_api;
  const Grown defaults = {sizeof(Grown), 1, 2, 3};
  for (const std::size_t size : {std::size_t{16}, std::size_t{24}, std::size_t{32}, std::size_t{56}}) {
    Guarded guarded;
    auto* const caller = guarded.as<Grown>();
    write_struct(caller, size, Grown{0, 10, 20, 30});
    EXPECT_TRUE(guarded.untouched_from(size)) << size;
    const tensorcast::Result<Grown> read = read_struct(defaults, caller);
    ASSERT_TRUE(read.ok()) << size;
    EXPECT_EQ(read->first, 10);
    EXPECT_EQ(read->second, size >= 24 ? 20 : 2);
    EXPECT_EQ(read->third, size >= 32 ? 30 : 3);
  }
  Grown small = {15, 0, 0, 0};
  EXPECT_FALSE(read_struct(defaults, &small).ok());
  EXPECT_FALSE(fill_struct(&small, defaults).ok());
}

tc_status cast_with(const tc_cast_options* options, unsigned char* narrow) {
  const float source[2] = {1.5f, 300.0f};
  return tc_cast(source, TC_FLOAT32, narrow, TC_UINT8, 2, options);
}

TEST(Growth, AnOlderAndANewerStructAreRead) {
  unsigned char narrow[2] = {};
  for (const std::size_t size : {first_cast_options, sizeof(tc_cast_options), sizeof(tc_cast_options) + 24}) {
    Guarded guarded;
    auto* const options = guarded.as<tc_cast_options>();
    tc_cast_options_init_sized(options, size);
    EXPECT_EQ(cast_with(options, narrow), TC_OK) << size << ": " << tc_last_error();
    options->out_of_range = TC_RANGE_ERROR;
    EXPECT_EQ(cast_with(options, narrow), TC_OUT_OF_RANGE) << size;
    EXPECT_EQ(tc_last_error_element(), 1);
  }
}

// A struct of a caller whose header ends before first_element, and what lies behind it.
TEST(Growth, AFieldBehindTheCallersStructIsNotRead) {
  const std::vector<float> source(64, 1.03f);
  std::vector<unsigned char> old(64), whole(64), later(64);
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.rounding = TC_ROUNDING_STOCHASTIC;
  const auto cast = [&](std::vector<unsigned char>& narrow) {
    return tc_cast(source.data(), TC_FLOAT32, narrow.data(), TC_FLOAT8_E4M3FN, 64, &options);
  };
  ASSERT_EQ(cast(whole), TC_OK);
  options.first_element = 64;
  ASSERT_EQ(cast(later), TC_OK);
  options.struct_size = offsetof(tc_cast_options, first_element);
  ASSERT_EQ(cast(old), TC_OK);
  EXPECT_EQ(old, whole);
  EXPECT_NE(later, whole);
}

TEST(Growth, UnknownFieldsThatAreSetAreRefused) {
  unsigned char narrow[2] = {};
  Guarded guarded;
  auto* const options = guarded.as<tc_cast_options>();
  tc_cast_options_init_sized(options, sizeof(tc_cast_options) + 24);
  guarded.bytes[sizeof(tc_cast_options) + 9] = 1;
  EXPECT_EQ(cast_with(options, narrow), TC_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(tc_last_error_message(), "does not know"), nullptr);
  for (const std::size_t size : {std::size_t{0}, first_cast_options - 1, std::size_t{1} << 20}) {
    options->struct_size = size;
    EXPECT_EQ(cast_with(options, narrow), TC_INVALID_ARGUMENT) << size;
  }

  Guarded promotion;
  tc_promote_options_init_sized(promotion.as<tc_promote_options>(), sizeof(tc_promote_options) + 8);
  tc_dtype common = 0;
  EXPECT_EQ(tc_promote(TC_INT8, 0, TC_INT16, 0, promotion.as<tc_promote_options>(), &common), TC_OK);
  EXPECT_EQ(common, TC_INT16);
  promotion.bytes[sizeof(tc_promote_options)] = 1;
  EXPECT_EQ(tc_promote(TC_INT8, 0, TC_INT16, 0, promotion.as<tc_promote_options>(), &common), TC_INVALID_ARGUMENT);
  promotion.as<tc_promote_options>()->struct_size = first_promote_options - 1;
  EXPECT_EQ(tc_promote(TC_INT8, 0, TC_INT16, 0, promotion.as<tc_promote_options>(), &common), TC_INVALID_ARGUMENT);
}

TEST(CApi, ReportsAddUp) {
  const float source[3] = {1.5f, 1000.0f, 1e-9f};
  unsigned char narrow[3];
  tc_cast_report report;
  tc_cast_report_init(&report);
  ASSERT_EQ(tc_cast_with_report(source, TC_FLOAT32, narrow, TC_FLOAT8_E4M3FN, 3, nullptr, &report), TC_OK);
  ASSERT_EQ(tc_cast_with_report(source, TC_FLOAT32, narrow, TC_FLOAT8_E4M3FN, 3, nullptr, &report), TC_OK);
  EXPECT_EQ(report.count, 6u);
  EXPECT_EQ(report.saturated, 2u);
  EXPECT_EQ(report.underflowed_to_zero, 2u);
  EXPECT_EQ(report.max_abs_error, 552.0);
  report.struct_size = 3;
  EXPECT_EQ(tc_cast_with_report(source, TC_FLOAT32, narrow, TC_FLOAT8_E4M3FN, 3, nullptr, &report),
            TC_INVALID_ARGUMENT);
}

TEST(CApi, StridesFactsAndPromotion) {
  const float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  std::int8_t transposed[3][2];
  const std::int64_t shape[2] = {3, 2}, strides[2] = {4, 12};
  ASSERT_EQ(tc_cast_strided(matrix, TC_FLOAT32, strides, transposed, TC_INT8, nullptr, shape, 2, nullptr), TC_OK);
  EXPECT_EQ(transposed[2][1], 6);
  EXPECT_EQ(transposed[1][0], 2);
  EXPECT_EQ(tc_cast_strided(matrix, TC_FLOAT32, strides, transposed, TC_INT8, nullptr, nullptr, 2, nullptr),
            TC_INVALID_ARGUMENT);

  const float scales[3] = {2, 10, 100};  // a scale for each row of the transposed matrix
  const std::int64_t of_rows[2] = {4, 0};
  ASSERT_EQ(tc_cast_scaled(matrix, TC_FLOAT32, strides, transposed, TC_INT8, nullptr, scales, TC_FLOAT32, of_rows,
                           shape, 2, nullptr),
            TC_OK);
  EXPECT_EQ(transposed[0][1], 8);
  EXPECT_EQ(transposed[1][0], 20);
  EXPECT_EQ(tc_cast_scaled(matrix, TC_FLOAT32, strides, transposed, TC_INT8, nullptr, scales, TC_INT8, of_rows, shape,
                           2, nullptr),
            TC_INVALID_ARGUMENT);

  tc_dtype_facts facts = {};
  facts.struct_size = sizeof facts;
  ASSERT_EQ(tc_dtype_get_facts(TC_FLOAT8_E4M3FN, &facts), TC_OK);
  EXPECT_EQ(facts.largest, 448.0);
  EXPECT_STREQ(facts.name, "float8_e4m3fn");
  EXPECT_EQ(tc_dtype_get_facts(99, &facts), TC_INVALID_ARGUMENT);
  std::size_t types = 0;
  while (tc_dtype_at(types) != TC_UNDEFINED) ++types;
  EXPECT_EQ(types, 32u);
  EXPECT_STREQ(tc_dtype_spelling(TC_FLOAT32, 0), "float32");
  EXPECT_EQ(tc_dtype_spelling(TC_FLOAT32, 100), nullptr);

  const std::int8_t a[2] = {1, -2};
  const float b[1] = {0.5f};
  tc_dtype common = 0;
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(tc_promote_tensors(a, TC_INT8, 2, 0, b, TC_FLOAT32, 1, 0, nullptr, nullptr, &common, &first, &second),
            TC_OK)
      << tc_last_error();
  EXPECT_EQ(common, TC_FLOAT32);
  EXPECT_EQ(static_cast<float*>(first)[1], -2.0f);
  EXPECT_EQ(static_cast<float*>(second)[0], 0.5f);
  tc_free(first);
  tc_free(second);
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.rounding = TC_ROUNDING_TO_ODD;
  EXPECT_EQ(tc_promote_tensors(a, TC_INT8, 2, 0, b, TC_FLOAT32, 1, 0, nullptr, &options, &common, &first, &second),
            TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "promotions have no rounding");
}

TEST(CApi, TheLastErrorHasParts) {
  unsigned char narrow[2];
  EXPECT_EQ(tc_cast(nullptr, TC_FLOAT32, narrow, TC_UINT8, 2, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_last_error_code(), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "the source buffer is null");
  EXPECT_STREQ(tc_last_error_hint(), "");
  EXPECT_STREQ(tc_last_error_tensor(), "");
  EXPECT_EQ(tc_last_error_element(), -1);
  EXPECT_EQ(tc_dtype_parse("fp8"), TC_UNDEFINED);
  EXPECT_STRNE(tc_last_error_hint(), "");
}

// A pool that runs tasks at once, and counts them.
void run_backward(void* data, std::size_t count, tc_task task, void* work) {
  *static_cast<std::size_t*>(data) += count;
  while (count-- > 0) task(work, count);
}

TEST(CApi, ACallersPoolRunsLargeCasts) {
  const std::vector<float> source(std::size_t{1} << 20, 2.0f);
  std::vector<std::uint8_t> target(source.size());
  std::size_t tasks = 0;
  tc_cast_options options;
  tc_cast_options_init_sized(&options, sizeof options);
  options.executor = run_backward;
  options.executor_data = &tasks;
  ASSERT_EQ(tc_cast(source.data(), TC_FLOAT32, target.data(), TC_UINT8, source.size(), &options), TC_OK);
  EXPECT_GT(tasks, 1u);
  EXPECT_EQ(target.front() + target.back(), 4);
}

}  // namespace
