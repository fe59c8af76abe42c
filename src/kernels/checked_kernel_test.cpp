// SPDX-License-Identifier: Apache-2.0
// Kernels that look at their source: they convert as those that do not, and never overlook a number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "dtype/dtype_table.hpp"
#include "kernels/kernel.hpp"

namespace tensorcast::kernels {
namespace {

constexpr std::size_t count = 1003;

template <class Number>
std::vector<std::byte> bytes_of_numbers(const std::vector<double>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(Number));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<Number>(numbers[i]);
    std::memcpy(bytes.data() + i * sizeof number, &number, sizeof number);
  }
  return bytes;
}

// Reports what the kernel says of the numbers, whose codes must be those of Kernel::run.
bool finds_outside(const Kernel& kernel, const std::vector<double>& numbers, const Interval& accepted,
                   const codec::Policy& policy) {
  const std::vector<std::byte> source =
      kernel.from == DType::float64 ? bytes_of_numbers<double>(numbers) : bytes_of_numbers<float>(numbers);
  std::vector<std::byte> wanted(storage_bytes(row(kernel.to), numbers.size())), found(wanted.size());
  kernel.run(source.data(), wanted.data(), numbers.size(), policy);
  const bool finds = kernel.checked(source.data(), found.data(), numbers.size(), policy, accepted);
  EXPECT_EQ(found, wanted) << name(kernel.from) << " to " << name(kernel.to);
  return finds;
}

void expect_right(const Kernel& kernel, const Interval& accepted, const codec::Policy& policy) {
  std::mt19937_64 random(1);
  // Far enough from the nearer end to be surely inside; of intervals with hardly a negative number, positive.
  const bool has_signs = accepted.low <= -1.0;
  const double end = 0.99 * (has_signs ? std::min(-accepted.low, accepted.high) : accepted.high);
  std::uniform_real_distribution<double> inner(has_signs ? -end : 0.0, end);
  std::vector<double> numbers(count);
  for (double& x : numbers) x = inner(random);
  EXPECT_FALSE(finds_outside(kernel, numbers, accepted, policy));
  const bool is_double = kernel.from == DType::float64;
  const auto past = [&](double end, double way) {
    return is_double ? std::nextafter(end, way) : std::nextafter(static_cast<float>(end), static_cast<float>(way));
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double wrong[] = {past(accepted.low, -infinity), past(accepted.high, infinity), infinity, -infinity,
                          std::numeric_limits<double>::quiet_NaN()};
  for (const double x : wrong) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{77}, count - 1}) {
      std::vector<double> spoiled = numbers;
      spoiled[place] = x;
      EXPECT_TRUE(finds_outside(kernel, spoiled, accepted, policy)) << x << " at " << place;
    }
  }
}

TEST(CheckedKernels, FindEveryNumberOutside) {
  std::size_t tested = 0;
  for (const Target target : supported_targets()) {
    for (const Kernel& kernel : kernels(target)) {
      if (kernel.checked == nullptr) continue;
      for (const Interval& accepted : {Interval{-128.75, 127.25}, Interval{-3.0, 1e6}, Interval{-0.5, 255.25},
                                       Interval{0.0, 65535.0}, Interval{-0x1.fffffep127, 0x1.fffffep127}}) {
        expect_right(kernel, accepted, {});
        if (family(kernel.to) != Family::integer) continue;
        expect_right(kernel, accepted, {.range = codec::RangeRule::saturate});
        expect_right(kernel, accepted, {.rounding = Rounding::nearest_even});
      }
      ++tested;
    }
  }
  EXPECT_EQ(tested, supported_targets().size() * (2 * 8 + 3 + 2));
}

TEST(CheckedKernels, LeaveWhatTheyLimitToTheScan) {
  for (const Kernel& kernel : kernels(active_target())) {
    if (kernel.from != DType::float32 || kernel.to != DType::float16) continue;
    const std::vector<double> numbers(5, 1.0);
    EXPECT_TRUE(finds_outside(kernel, numbers, {-2.0, 2.0}, {.range = codec::RangeRule::saturate}));
  }
}

}  // namespace
}  // namespace tensorcast::kernels
