// tensorcast_bench: every kernel, and the public cast, against memcpy; a table, and JSON for bench/results.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "kernels/kernel.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"
#include "throughput/measure.hpp"

namespace {

using namespace tensorcast;
using bench::Size;
using bench::Timing;
using Json = nlohmann::ordered_json;

struct Request {
  std::string pairs = ".*";
  std::string target = std::string(name(active_target()));
  std::vector<std::string> sizes = {"l1", "l2", "memory"};
  std::vector<std::string> paths = {"kernel"};
  int threads = 1;
  std::string json;
  bool quick = false;
  bool huge_pages = false;
};

struct Row {
  Timing timing;
  std::string path;  // "kernel", "cast" or "memcpy"
  std::string algorithm;
  const kernels::Kernel* kernel = nullptr;  // null: memcpy
  int measured = 1;
};

constexpr double looks_slow = 1.15;  // of memcpy's time, in memory

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t value = line.find(": ");
    if (line.starts_with("model name") && value != std::string::npos) return line.substr(value + 2);
  }
  return "unknown";
}

void print_heading() {
  fmt::print("{:<34} {:<7} {:<7} {:>11} {:>9} {:>8} {:>10}  {}\n", "pair", "path", "size", "ns", "el/ns", "GB/s",
             "x memcpy", "algorithm");
}

void print_row(const Row& row) {
  const Timing& t = row.timing;
  const std::string pair = row.path == "memcpy" ? "memcpy" : fmt::format("{} -> {}", name(t.from), name(t.to));
  fmt::print("{:<34} {:<7} {:<7} {:>11.1f} {:>9.2f} {:>8.1f} {:>10.2f}  {}\n", pair, row.path, name(t.size), t.ns,
             t.elements_per_ns(), t.gigabytes_per_second(), t.ratio, row.algorithm);
  std::fflush(stdout);
}

Json to_json(const Row& row) {
  const Timing& t = row.timing;
  return {{"from", name(t.from)},
          {"to", name(t.to)},
          {"path", row.path},
          {"algorithm", row.algorithm},
          {"size", name(t.size)},
          {"threads", t.threads},
          {"count", t.count},
          {"bytes", t.bytes},
          {"ns", t.ns},
          {"memcpy_ns", t.memcpy_ns},
          {"elements_per_ns", t.elements_per_ns()},
          {"gigabytes_per_second", t.gigabytes_per_second()},
          {"times_memcpy", t.ratio},
          {"measured", row.measured}};
}

Result<Timing> time(bench::Bench& bench, const kernels::Kernel& kernel, const std::string& path, Size size,
                    int threads) {
  if (path == "cast") return bench.time_cast(kernel.from, kernel.to, size, threads);
  const codec::Policy policy;
  return bench.time(kernel.from, kernel.to, size, [&](const std::byte* src, std::byte* dst, std::size_t count) {
    kernel.run(src, dst, count, policy);
  });
}

// Other work on the machine makes some pair look slow in every run. Once all are through, these are measured twice
// again, and the median stands.
void measure_slow_ones_again(bench::Bench& bench, std::vector<Row>& rows, int threads) {
  for (Row& row : rows) {
    if (row.kernel == nullptr || row.timing.size != Size::memory || row.timing.ratio <= looks_slow) continue;
    std::vector<Timing> timings = {row.timing};
    for (int again = 0; again < 2; ++again) {
      if (const Result<Timing> timing = time(bench, *row.kernel, row.path, row.timing.size, threads)) {
        timings.push_back(*timing);
      }
    }
    std::ranges::sort(timings, {}, &Timing::ratio);
    row.timing = timings[timings.size() / 2];
    row.measured = static_cast<int>(timings.size());
    print_row(row);
  }
}

std::vector<Row> measure(const Request& request, Target target, const std::vector<Size>& sizes) {
  bench::Effort effort = request.quick ? bench::Effort::Quick() : bench::Effort{};
  effort.huge_pages = request.huge_pages;
  bench::Bench bench(effort);
  std::vector<Row> rows;
  const auto add = [&](Row row) {
    print_row(row);
    rows.push_back(std::move(row));
  };
  print_heading();
  for (const Size size : sizes) add({bench.time_memcpy(size), "memcpy", "memcpy", nullptr});

  const std::regex pairs(request.pairs);
  for (const kernels::Kernel& kernel : kernels::kernels(target)) {
    if (!std::regex_search(fmt::format("{}->{}", name(kernel.from), name(kernel.to)), pairs)) continue;
    for (const std::string& path : request.paths) {
      for (const Size size : sizes) {
        const Result<Timing> timing = time(bench, kernel, path, size, request.threads);
        if (!timing) continue;
        const bool is_cast = path == "cast";
        add({*timing, path, is_cast ? fmt::format("threads: {}", request.threads) : std::string(kernel.algorithm),
             &kernel});
      }
    }
  }
  if (!request.quick) measure_slow_ones_again(bench, rows, request.threads);
  return rows;
}

int run(const Request& request) {
  std::optional<Target> target;
  for (const Target supported : supported_targets()) {
    if (name(supported) == request.target) target = supported;
  }
  if (!target) {
    fmt::print(stderr, "tensorcast_bench: this CPU has no target {}\n", request.target);
    return 1;
  }
  std::vector<Size> sizes;
  for (const Size size : bench::all_sizes) {
    if (std::ranges::count(request.sizes, name(size)) != 0) sizes.push_back(size);
  }
  const std::vector<Row> rows = measure(request, *target, sizes);
  if (request.json.empty()) return 0;

  Json document = {{"version", version()},    {"cpu", cpu_model()},      {"cores", std::thread::hardware_concurrency()},
                   {"compiler", __VERSION__}, {"target", name(*target)}, {"rows", Json::array()}};
  for (const Row& row : rows) document["rows"].push_back(to_json(row));
  std::ofstream out(request.json);
  out << document.dump(1) << '\n';
  if (!out.flush()) {
    fmt::print(stderr, "tensorcast_bench: cannot write {}\n", request.json);
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app("Times conversions against memcpy of as many bytes, in turns.");
  app.add_option("--pairs", request.pairs, "pairs to measure: a regular expression, searched in 'float32->int8'");
  app.add_option("--target", request.target, "instruction set of the kernels")->capture_default_str();
  app.add_option("--size", request.sizes, "call (100 elements), l1 (4 Ki), l2 (16 Ki), memory")
      ->delimiter(',')
      ->check(CLI::IsMember({"call", "l1", "l2", "memory"}))
      ->capture_default_str();
  app.add_option("--path", request.paths, "kernel: the kernel itself; cast: the public function")
      ->delimiter(',')
      ->check(CLI::IsMember({"kernel", "cast"}))
      ->capture_default_str();
  app.add_option("--threads", request.threads, "of the public function; 0: all cores")->capture_default_str();
  app.add_option("--json", request.json, "also write a JSON file");
  app.add_flag("--huge-pages", request.huge_pages,
               "memory in huge pages, as NumPy's arrays are: memcpy is faster there");
  app.add_flag("--quick", request.quick, "fewer rounds, less memory");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(request);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tensorcast_bench: {}\n", error.what());
    return 1;
  }
}
