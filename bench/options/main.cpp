// tensorcast_options_bench FILE.json [MIB [OPTION...]]: what each option costs, all pairs, as a ratio to the defaults
// in turns. Other work on the machine makes some pair look slow in every run: those above the option's goal are
// measured again when the option's other pairs are through, on five buffers in turn, and the median of all turns'
// ratios stands.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
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
  double goal = 1.1;  // at most this many times the time with the defaults
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
    {"scale 0.5", [](CastOptions& o) { o.scale = 0.5; }, 1.2},
    {"scale 0.1", [](CastOptions& o) { o.scale = 0.1; }, 1.2},
    {"report", [](CastOptions&) {}, 3.0, true},
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

struct Row {
  DType from, to;
  double ratio;
};

struct Turn {
  double usual, changed;  // seconds
};

// None where the pair does not have the option. Each stage has buffers of its own: which pages the system gives decides
// how the two share the caches, and may slow one of the two casts in every turn.
std::vector<Turn> turns_of(const Variant& variant, DType from, DType to, std::size_t bytes, int stages) {
  constexpr int turns_a_stage = 3;
  CastOptions options;
  variant.set(options);
  std::vector<Turn> turns;
  for (int at = 0; at < stages; ++at) {
    Stage stage(from, to, bytes);
    stage.run({}, false);
    if (stage.run(options, variant.report) < 0) return {};
    for (int turn = 0; turn < turns_a_stage; ++turn) {
      const double usual = stage.run({}, false);
      turns.push_back({usual, stage.run(options, variant.report)});
    }
  }
  return turns;
}

double ratio_of_best(const std::vector<Turn>& turns) {
  Turn best = turns.front();
  for (const Turn& turn : turns) {
    best.usual = std::min(best.usual, turn.usual);
    best.changed = std::min(best.changed, turn.changed);
  }
  return best.changed / best.usual;
}

double median_ratio(const std::vector<Turn>& turns) {
  std::vector<double> ratios;
  ratios.reserve(turns.size());
  for (const Turn& turn : turns) ratios.push_back(turn.changed / turn.usual);
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

std::vector<Row> rows_of(const Variant& variant, std::size_t bytes) {
  constexpr int stages = 1, stages_again = 5;
  std::vector<Row> rows;
  for (const DType from : all_dtypes()) {
    for (const DType to : all_dtypes()) {
      if (from == DType::string || to == DType::string || from == to) continue;
      const std::vector<Turn> measured = turns_of(variant, from, to, bytes, stages);
      if (!measured.empty()) rows.push_back({from, to, ratio_of_best(measured)});
    }
  }
  for (Row& row : rows) {
    if (row.ratio > variant.goal) row.ratio = median_ratio(turns_of(variant, row.from, row.to, bytes, stages_again));
  }
  return rows;
}

Json to_json(const std::vector<Row>& rows) {
  Json out = Json::array();
  for (const Row& row : rows) out.push_back({{"from", name(row.from)}, {"to", name(row.to)}, {"ratio", row.ratio}});
  return out;
}

Json measure(const Variant& variant, std::size_t bytes) {
  const std::vector<Row> rows = rows_of(variant, bytes);
  if (rows.empty()) return {};
  double logarithms = 0.0;
  for (const Row& row : rows) logarithms += std::log(row.ratio);
  const double mean = std::exp(logarithms / static_cast<double>(rows.size()));
  std::vector<Row> worst = rows;
  std::ranges::sort(worst, std::greater<>(), &Row::ratio);
  const double tenth = worst[worst.size() - 1 - worst.size() * 9 / 10].ratio;
  const auto within = std::ranges::count_if(rows, [&](const Row& row) { return row.ratio <= variant.goal; });
  const double greatest = worst.front().ratio;
  worst.resize(std::min<std::size_t>(worst.size(), 5));
  fmt::print(
      "{:<26} {:>4} pairs  geometric mean {:>6.2f}  nine of ten below {:>6.2f}  worst {:>7.2f}  within {:.1f} {:>4}\n",
      variant.name, rows.size(), mean, tenth, greatest, variant.goal, within);
  for (const Row& row : worst) fmt::print("  {:.2f} {} -> {}\n", row.ratio, name(row.from), name(row.to));
  std::fflush(stdout);
  return {{"option", variant.name}, {"pairs", rows.size()}, {"goal", variant.goal}, {"within_goal", within},
          {"mean", mean},           {"nine_of_ten", tenth}, {"worst", greatest},    {"worst_pairs", to_json(worst)},
          {"rows", to_json(rows)}};
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
