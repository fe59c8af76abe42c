// SPDX-License-Identifier: Apache-2.0
// tensorcast_rounding_bench: what the words of `rounding` cost, as ratios to nearest_even of the same pair in one run.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "codec/policy.hpp"
#include "commands/measure.hpp"
#include "tensorcast/cast.hpp"
#include "tensorcast/target.hpp"

namespace {

using namespace tensorcast;

struct Request {
  std::string pairs = ".*";
  std::size_t mib = 128;
  bench::Effort effort = {.rounds = 3, .burst_seconds = 0.0};
  bool shows_pairs = false;
  double scale = 1.0;
};

struct Word {
  Rounding rounding;
  const char* name;
};
constexpr Word words[] = {{Rounding::nearest_away, "nearest_away"},
                          {Rounding::toward_zero, "toward_zero"},
                          {Rounding::toward_positive, "toward_positive"},
                          {Rounding::toward_negative, "toward_negative"},
                          {Rounding::to_odd, "to_odd"},
                          {Rounding::stochastic, "stochastic"}};

// Reports whether the target lacks numbers of the source, so that words differ.
bool rounds(DType from, DType to) {
  return to != DType::string && from != DType::string && from != to &&
         codec::policy_of({.rounding = Rounding::to_odd}, from, to).rounding != Rounding::automatic;
}

// Buffers of `mib` together, with normally distributed numbers of standard deviation 8.
class Pair {
 public:
  Pair(DType from, DType to, const Request& request)
      : from_(from),
        to_(to),
        scale_(request.scale),
        count_((request.mib << 23) / static_cast<std::size_t>(bit_width(from) + bit_width(to)) / 64 * 64),
        src_(storage_bytes(from, count_)),
        dst_(storage_bytes(to, count_)) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal(0.0, 8.0);
    std::vector<double> numbers(1 << 16);
    for (double& x : numbers) x = normal(random);
    std::vector<std::byte> pattern(storage_bytes(from, numbers.size()));
    const std::int64_t shape[] = {1 << 16};
    cast({DType::float64, shape, std::as_bytes(std::span(numbers))}, {from, shape, pattern}).value();
    for (std::size_t i = 0; i < src_.size(); ++i) src_[i] = pattern[i % pattern.size()];
  }

  void cast_by(Rounding rounding) {
    const std::int64_t shape[] = {static_cast<std::int64_t>(count_)};
    cast({from_, shape, src_}, {to_, shape, dst_}, {.rounding = rounding, .scale = scale_}, {.threads = 1}).value();
  }

 private:
  DType from_, to_;
  double scale_;
  std::size_t count_;
  std::vector<std::byte> src_, dst_;
};

// The least time of each word over that of nearest_even.
std::vector<double> ratios_of(DType from, DType to, const Request& request) {
  Pair pair(from, to, request);
  // The first of each turn finds others' bytes in the cache, and is not counted.
  const auto nearest_even = [&] { pair.cast_by(Rounding::nearest_even); };
  std::vector<std::function<void()>> works = {nearest_even, nearest_even};
  for (const Word& word : words) works.emplace_back([&pair, &word] { pair.cast_by(word.rounding); });
  const bench::Samples samples = bench::time_in_turns(works, request.effort, bench::Clock::thread, false);
  std::vector<double> ratios;
  for (std::size_t i = 2; i < samples.size(); ++i)
    ratios.push_back(std::ranges::min(samples[i]) / std::ranges::min(samples[1]));
  return ratios;
}

void run(const Request& request) {
  const std::regex wanted(request.pairs);
  std::vector<double> logs(std::size(words), 0.0);
  int pairs = 0;
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      const std::string pair = fmt::format("{}->{}", name(from), name(to));
      if (!rounds(from, to) || !std::regex_search(pair, wanted)) continue;
      const std::vector<double> ratios = ratios_of(from, to, request);
      for (std::size_t i = 0; i < ratios.size(); ++i) logs[i] += std::log(ratios[i]);
      ++pairs;
      if (!request.shows_pairs) continue;
      fmt::print("{:<34} {:.2f}\n", pair, fmt::join(ratios, " "));
      std::fflush(stdout);
    }
  }
  fmt::print("{}, {} pairs, {} MiB, one thread: time over nearest_even's, geometric mean\n", name(active_target()),
             pairs, request.mib);
  for (std::size_t i = 0; i < std::size(words); ++i)
    fmt::print("{:<16} {:.2f}\n", words[i].name, std::exp(logs[i] / pairs));
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app(
      "What each word of rounding costs, as a ratio to nearest_even of the same pair, in turns. TENSORCAST_TARGET\n"
      "chooses the instruction set.");
  app.add_option("--pairs", request.pairs, "pairs to measure: a regular expression, searched in 'float32->int8'");
  app.add_option("--mib", request.mib, "source and target together")->capture_default_str();
  app.add_option("--rounds", request.effort.rounds, "times that each word is measured")->capture_default_str();
  app.add_option("--scale", request.scale, "the casts have it")->capture_default_str();
  app.add_flag("--show-pairs", request.shows_pairs,
               "also print each pair: away, zero, positive, negative, odd, stochastic");
  CLI11_PARSE(app, argc, argv);
  try {
    run(request);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tensorcast_rounding_bench: {}\n", error.what());
    return 1;
  }
}
