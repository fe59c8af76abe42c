// SPDX-License-Identifier: Apache-2.0
// tensorcast_bench: tensorcast::cast() of all pairs of types against memcpy of as many bytes; a table, and JSON.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "commands/measure.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"

namespace {

using namespace tensorcast;
using bench::Size;
using bench::Timing;
using Json = nlohmann::ordered_json;

struct Request {
  std::string pairs = ".*";
  std::vector<std::string> sizes = {"memory"};
  std::string variant = "plain";
  bench::Effort effort = {.rounds = 5};
  std::size_t mib = 128;
  int threads = 1;
  std::string json;
};

std::map<std::string, bench::Variant> variants() {
  return {{"plain", {}},
          {"report", {.report = true}},
          {"scale", {.options = {.scale = 0.1}}},
          {"strict", {.options = CastOptions::lossless_integers(), .numbers_fit = true}}};
}

// What /proc and /sys say after `key`.
std::string system_fact(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return line.substr(std::min(line.size(), line.find_first_not_of("\t :", key.size())));
  }
  return "unknown";
}

Json machine() {
  return {{"version", version()},
          {"cpu", system_fact("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"compiler", __VERSION__},
          {"target", name(active_target())},
          {"huge_pages", system_fact("/sys/kernel/mm/transparent_hugepage/enabled", "")}};
}

void print_row(const std::string& pair, const Timing& t) {
  fmt::print("{:<34} {:<7} {:>12.1f} ns {:>8.1f} GB/s {:>8.2f} ({:.2f} to {:.2f}) of memcpy's time\n", pair,
             name(t.size), t.ns, t.gigabytes_per_second(), t.ratio, t.ratios.low, t.ratios.high);
  std::fflush(stdout);
}

Json to_json(const Timing& t) {
  return {{"from", name(t.from)}, {"to", name(t.to)},          {"size", name(t.size)}, {"bytes", t.bytes},
          {"ns", t.ns},           {"median", t.ratios.median}, {"low", t.ratios.low},  {"high", t.ratios.high}};
}

Json measure(const Request& request) {
  const bench::Variant variant = [&] {
    bench::Variant chosen = variants().at(request.variant);
    chosen.execution.threads = request.threads;
    return chosen;
  }();
  bench::Effort effort = request.effort;
  effort.memory_bytes = request.mib << 20;
  bench::Bench bench(effort);
  const std::regex pairs(request.pairs);
  Json bits, copies = Json::array(), rows = Json::array();
  for (const DType dtype : all_dtypes()) {
    if (dtype != DType::string) bits[std::string(name(dtype))] = bit_width(dtype);
  }
  for (const Size size : bench::all_sizes) {
    if (std::ranges::count(request.sizes, name(size)) == 0) continue;
    const Timing copy = bench.time_memcpy(size);
    print_row("memcpy against itself", copy);
    copies.push_back(to_json(copy));
    for (const DType from : all_dtypes()) {
      for (const DType to : all_dtypes()) {
        const std::string pair = fmt::format("{}->{}", name(from), name(to));
        const bool is_text = from == DType::string || to == DType::string;
        if (is_text || from == to || !std::regex_search(pair, pairs)) continue;
        const Result<Timing> timing = bench.time_cast(from, to, size, variant);
        if (!timing) throw std::runtime_error(fmt::format("{}: {}", pair, timing.error().describe()));
        print_row(pair, *timing);
        rows.push_back(to_json(*timing));
      }
    }
  }
  return {{"machine", machine()},    {"variant", request.variant},  {"mib", request.mib},
          {"offset", effort.offset}, {"threads", request.threads},  {"rounds", effort.rounds},
          {"bits", std::move(bits)}, {"memcpy", std::move(copies)}, {"rows", std::move(rows)}};
}

void run(const Request& request) {
  const Json document = measure(request);
  if (request.json.empty()) return;
  std::ofstream out(request.json);
  out << document.dump() << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + request.json);
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  CLI::App app(
      "Times tensorcast::cast() against memcpy of as many bytes, in turns. TENSORCAST_TARGET chooses the\n"
      "instruction set.");
  app.add_option("--pairs", request.pairs, "pairs to measure: a regular expression, searched in 'float32->int8'");
  app.add_option("--size", request.sizes, "call (100 elements), l1 (4 Ki), l2 (16 Ki), memory (--mib)")
      ->delimiter(',')
      ->check(CLI::IsMember({"call", "l1", "l2", "memory"}))
      ->capture_default_str();
  app.add_option("--mib", request.mib, "source and target of the size 'memory' together")->capture_default_str();
  app.add_option("--offset", request.effort.offset, "bytes from a page to every buffer; malloc's large ones: 16")
      ->capture_default_str();
  app.add_option("--variant", request.variant, "options of the cast: scale is 0.1; strict allows errors, has none")
      ->check(CLI::IsMember({"plain", "report", "scale", "strict"}))
      ->capture_default_str();
  app.add_option("--threads", request.threads, "0: all cores; memcpy always has one")->capture_default_str();
  app.add_option("--rounds", request.effort.rounds, "times that each pair is measured")->capture_default_str();
  app.add_option("--json", request.json, "also write a JSON file");
  CLI11_PARSE(app, argc, argv);
  try {
    run(request);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tensorcast_bench: {}\n", error.what());
    return 1;
  }
}
