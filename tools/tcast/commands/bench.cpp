// SPDX-License-Identifier: Apache-2.0
// tcast bench: measures conversions on this machine against memcpy of the same bytes.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "commands/measure.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "print/text_table.hpp"
#include "process/failure.hpp"
#include "process/terminal.hpp"
#include "tensorcast/target.hpp"

namespace tcast {
namespace {

using tensorcast::DType;
using tensorcast::Result;
using tensorcast::bench::Bench;
using tensorcast::bench::Effort;
using tensorcast::bench::Size;
using tensorcast::bench::Timing;

using Pair = std::pair<DType, DType>;

struct BenchArguments {
  std::vector<Pair> pairs;
  std::set<Size> sizes = {Size::l1, Size::l2, Size::memory};
  int threads = 1;
  tensorcast::CastOptions options = {};
  bool thorough = false;
  bool json = false;
  bool quiet = false;
};

constexpr const char* bench_examples = R"(Examples:
  tcast bench
  tcast bench --pairs f32:bf16,f32:e4m3fn --sizes memory --threads 0
  tcast bench --pairs f16:all --json
  tcast bench --pairs f32:e4m3fn --rounding stochastic
  tcast bench --pairs all --thorough
      every pair with more rounds: takes minutes
GB/s count bytes read and written. "x memcpy" is the time over that of a memcpy of as many bytes, timed in turns with it:
1.00x is as fast as copying, below 1 is faster.)";

// Returns the types that a benchmark can time: numeric and bool.
std::vector<DType> timed_types() {
  std::vector<DType> types;
  for (const DType dtype : tensorcast::all_dtypes()) {
    if (dtype != DType::string) types.push_back(dtype);
  }
  return types;
}

std::vector<Pair> usual_pairs() {
  using enum DType;
  std::vector<Pair> pairs;
  for (const DType other : {float16, bfloat16, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, float4_e2m1fn, int8, uint8,
                            int4, int32, boolean}) {
    pairs.emplace_back(float32, other);
    pairs.emplace_back(other, float32);
  }
  pairs.insert(pairs.end(), {{float64, float32},
                             {float64, float16},
                             {int64, int32},
                             {int64, float32},
                             {float16, bfloat16},
                             {bfloat16, float16},
                             {float16, float8_e4m3fn},
                             {float16, int8}});
  return pairs;
}

// Adds the pairs of "f32:f16", "f32:all" or "all"; returns an error message, or "".
std::string add_pairs(std::string_view text, std::vector<Pair>& pairs) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos && text != "all") {
    return fmt::format("\"{}\" is not a pair such as float32:float16", text);
  }
  std::string complaint;
  const auto side = [&](std::string_view name) -> std::vector<DType> {
    if (name == "all") return timed_types();
    const Result<DType> dtype = tensorcast::parse_dtype(name);
    if (!dtype) complaint = complaint_of(dtype);
    if (dtype && (*dtype == DType::string || !tensorcast::is_castable(*dtype))) {
      complaint = fmt::format("{} cannot be timed: its elements have no fixed size", name);
    }
    return dtype ? std::vector<DType>{*dtype} : std::vector<DType>{};
  };
  const std::vector<DType> sources = side(text.substr(0, colon));
  const std::vector<DType> targets = side(colon == std::string_view::npos ? text : text.substr(colon + 1));
  if (!complaint.empty()) return complaint;
  for (const DType from : sources) {
    for (const DType to : targets) {
      if (from != to || (sources.size() == 1 && targets.size() == 1)) pairs.emplace_back(from, to);
    }
  }
  return {};
}

// Shows on a terminal which pair is being timed.
void show_status(std::size_t done, std::size_t total, const Pair& pair) {
  if (!stderr_is_terminal()) return;
  std::fputs(fmt::format("\r\x1b[K{} of {}: {} to {}", done, total, tensorcast::name(pair.first),
                         tensorcast::name(pair.second))
                 .c_str(),
             stderr);
}

void clear_status() {
  if (stderr_is_terminal()) std::fputs("\r\x1b[K", stderr);
}

Json timing_json(const Timing& timing) {
  return {{"from", tensorcast::name(timing.from)},
          {"to", tensorcast::name(timing.to)},
          {"size", tensorcast::bench::name(timing.size)},
          {"count", timing.count},
          {"bytes", timing.bytes},
          {"ns", timing.ns},
          {"memcpy_ns", timing.memcpy_ns},
          {"gigabytes_per_second", timing.gigabytes_per_second()},
          {"times_memcpy", timing.ratio}};
}

std::vector<std::string> timing_cells(const Timing& timing) {
  return {fmt::format("{:.1f}", timing.gigabytes_per_second()), fmt::format("{:.2f}x", timing.ratio)};
}

int bench(const BenchArguments& arguments) {
  Bench bench(arguments.thorough ? Effort{} : Effort::Quick());
  const std::string target(tensorcast::name(tensorcast::active_target()));

  std::vector<Column> columns = {{"from"}, {"to"}};
  for (const Size size : arguments.sizes) {
    columns.push_back({fmt::format("{} GB/s", tensorcast::bench::name(size)), Align::right});
    columns.push_back({"x memcpy", Align::right});
  }
  Table table(std::move(columns));
  Json timings = Json::array();
  Json copies = Json::array();

  std::vector<std::string> first_row = {"memcpy", ""};
  for (const Size size : arguments.sizes) {
    const Timing timing = bench.time_memcpy(size);
    const std::vector<std::string> cells = timing_cells(timing);
    first_row.insert(first_row.end(), cells.begin(), cells.end());
    copies.push_back({{"size", tensorcast::bench::name(size)},
                      {"gigabytes_per_second", timing.gigabytes_per_second()},
                      {"times_memcpy", timing.ratio}});
  }
  table.add_row(std::move(first_row));

  const tensorcast::CastOptions& options = arguments.options;
  const bool is_strict =
      options.out_of_range == tensorcast::OutOfRange::error || options.invalid == tensorcast::Invalid::error;
  const tensorcast::bench::Variant variant{
      .options = options, .execution = {.threads = arguments.threads}, .numbers_fit = is_strict};
  for (std::size_t i = 0; i < arguments.pairs.size(); ++i) {
    const Pair& pair = arguments.pairs[i];
    show_status(i + 1, arguments.pairs.size(), pair);
    std::vector<std::string> row = {std::string(tensorcast::name(pair.first)),
                                    std::string(tensorcast::name(pair.second))};
    for (const Size size : arguments.sizes) {
      const Result<Timing> timing = bench.time_cast(pair.first, pair.second, size, variant);
      if (!timing) {
        clear_status();
        return fail(timing.error());
      }
      const std::vector<std::string> cells = timing_cells(*timing);
      row.insert(row.end(), cells.begin(), cells.end());
      timings.push_back(timing_json(*timing));
    }
    table.add_row(std::move(row));
  }
  clear_status();

  if (arguments.json) {
    print(json_text({{"target", target},
                     {"threads", arguments.threads},
                     {"options", options_json(arguments.options)},
                     {"memcpy", std::move(copies)},
                     {"timings", std::move(timings)}}));
  } else if (!arguments.quiet) {
    const std::string threads = arguments.threads == 0
                                    ? "all cores"
                                    : fmt::format("{} thread{}", arguments.threads, arguments.threads == 1 ? "" : "s");
    print(fmt::format("{}\n{}, {}\n", table.to_string(), target, threads));
  }
  return exit_done;
}

}  // namespace

void add_bench(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("bench", "Measure the throughput of conversions against memcpy");
  command.footer(bench_examples);
  const auto arguments = std::make_shared<BenchArguments>();

  add_read_all(command, "--pairs", arguments->pairs, "pairs to time (default: the usual ones)", add_pairs)
      ->delimiter(',')
      ->option_text("FROM:TO,...|all");
  add_read_all(command, "--sizes", arguments->sizes,
               "call: 100 elements; l1, l2: inside the caches; memory (default l1,l2,memory)",
               [](const std::string& text, std::set<Size>& sizes) {
                 for (const Size size : tensorcast::bench::all_sizes) {
                   if (tensorcast::bench::name(size) != text) continue;
                   sizes.insert(size);
                   return std::string();
                 }
                 return fmt::format("\"{}\" is not one of call, l1, l2, memory", text);
               })
      ->delimiter(',')
      ->option_text("call,l1,l2,memory");
  add_threads(command, arguments->threads);
  command.add_flag("--thorough", arguments->thorough, "more rounds and larger buffers, for numbers to publish");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  add_cast_options(command, arguments->options);
  command.callback([arguments, &work] {
    if (arguments->pairs.empty()) arguments->pairs = usual_pairs();
    work = [arguments] { return bench(*arguments); };
  });
}

}  // namespace tcast
