// tensorcast_options_bench FILE.json [MIB [OPTION...]]: what each option costs, all pairs, as a ratio to the defaults
// in turns.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tensorcast/cast.hpp"

namespace {

using namespace tensorcast;
using Json = nlohmann::ordered_json;

struct Variant {
  std::string name;
  std::function<void(CastOptions&)> set;
  bool report = false;
};

const std::vector<Variant> variants = {
    {"saturate off", [](CastOptions& o) { o.saturate = false; }},
    {"out_of_range wrap", [](CastOptions& o) { o.out_of_range = OutOfRange::wrap; }},
    {"out_of_range saturate", [](CastOptions& o) { o.out_of_range = OutOfRange::saturate; }},
    {"out_of_range error", [](CastOptions& o) { o.out_of_range = OutOfRange::error; }},
    {"int_rounding nearest_even", [](CastOptions& o) { o.int_rounding = IntRounding::nearest_even; }},
    {"opset 19", [](CastOptions& o) { o.opset = 19; }},
    {"opset 24", [](CastOptions& o) { o.opset = 24; }},
    {"scale 0.5", [](CastOptions& o) { o.scale = 0.5; }},
    {"scale 0.1", [](CastOptions& o) { o.scale = 0.1; }},
    {"report", [](CastOptions&) {}, true},
};

double seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

constexpr std::size_t pattern_count = std::size_t{1} << 16;

class Stage {
 public:
  Stage(DType from, DType to, std::size_t bytes) : from_(from), to_(to) {
    const auto bits = static_cast<std::size_t>(bit_width(from) + bit_width(to));
    count_ = bytes * 8 / bits / pattern_count * pattern_count;
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal(0.0, 8.0);
    std::vector<double> numbers(pattern_count);
    for (double& number : numbers) number = normal(random);
    std::vector<std::byte> pattern(storage_bytes(from, pattern_count));
    const std::int64_t shape = pattern_count;
    if (from == DType::float64) {
      std::memcpy(pattern.data(), numbers.data(), pattern.size());
    } else {
      static_cast<void>(cast({DType::float64, {&shape, 1}, std::as_bytes(std::span<const double>(numbers))},
                             {from, {&shape, 1}, pattern}));
    }
    src_.resize(storage_bytes(from, count_));
    for (std::size_t at = 0; at < src_.size(); at += pattern.size()) {
      std::memcpy(src_.data() + at, pattern.data(), pattern.size());
    }
    dst_.assign(storage_bytes(to, count_), std::byte{1});
  }

  // Negative where the pair does not have the option, or where it refuses these numbers.
  double run(const CastOptions& options, bool with_report) {
    const auto shape = static_cast<std::int64_t>(count_);
    CastReport report;
    const TensorView src{from_, {&shape, 1}, src_};
    const MutableTensorView dst{to_, {&shape, 1}, dst_};
    const double start = seconds();
    const Result<void> done = with_report ? cast(src, dst, options, report) : cast(src, dst, options);
    return done ? seconds() - start : -1.0;
  }

 private:
  DType from_, to_;
  std::size_t count_;
  std::vector<std::byte> src_, dst_;
};

Json measure(const Variant& variant, std::size_t bytes) {
  Json rows = Json::array();
  std::vector<double> ratios;
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      if (from == DType::string || to == DType::string || from == to) continue;
      Stage stage(from, to, bytes);
      CastOptions options;
      variant.set(options);
      stage.run({}, false);
      if (stage.run(options, variant.report) < 0) continue;
      double usual = std::numeric_limits<double>::infinity();
      double changed = usual;
      for (int round = 0; round < 3; ++round) {
        usual = std::min(usual, stage.run({}, false));
        changed = std::min(changed, stage.run(options, variant.report));
      }
      ratios.push_back(changed / usual);
      rows.push_back({{"from", name(from)}, {"to", name(to)}, {"ratio", changed / usual}});
    }
  }
  if (ratios.empty()) return {};
  double logarithms = 0.0;
  for (const double ratio : ratios) logarithms += std::log(ratio);
  std::sort(ratios.begin(), ratios.end());
  const double mean = std::exp(logarithms / static_cast<double>(ratios.size()));
  const double tenth = ratios[ratios.size() * 9 / 10];
  fmt::print("{:<26} {:>4} pairs  geometric mean {:>6.2f}  nine of ten below {:>6.2f}  worst {:>7.2f}\n", variant.name,
             ratios.size(), mean, tenth, ratios.back());
  std::fflush(stdout);
  return {{"option", variant.name}, {"pairs", ratios.size()}, {"mean", mean},
          {"nine_of_ten", tenth},   {"worst", ratios.back()}, {"rows", rows}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: tensorcast_options_bench FILE.json [MIB [OPTION...]]\n");
    return 2;
  }
  const std::size_t bytes = (argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 64UL) << 20;
  Json document = {{"bytes", bytes}, {"options", Json::array()}};
  const std::span<char*> asked(argv + std::min(argc, 3), argv + argc);
  for (const Variant& variant : variants) {
    const bool is_asked =
        std::any_of(asked.begin(), asked.end(), [&](const char* name) { return variant.name == name; });
    if (asked.empty() || is_asked) document["options"].push_back(measure(variant, bytes));
  }
  std::ofstream out(argv[1]);
  out << document.dump(1) << '\n';
  if (!out.flush()) {
    fmt::print(stderr, "tensorcast_options_bench: cannot write {}\n", argv[1]);
    return 1;
  }
}
