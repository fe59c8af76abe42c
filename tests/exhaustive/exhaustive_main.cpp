// SPDX-License-Identifier: Apache-2.0
// exhaustive [--quick | --stride N] [--target NAME] [--to DTYPE] [--threads N]
// Every float32 to every type of 16 bits or fewer (and the wider integers), on every target of this CPU, under every
// option that matters; then dense neighbourhoods of the 64-bit sources and all other pairs. Prints a table in Markdown.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "samples.hpp"
#include "sweep.hpp"

namespace oracle {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  unsigned stride = 1;  // tests one of `stride` blocks of float32 codes; above 1, fewer codes of other pairs too
  std::string target;
  std::string to;
  unsigned threads = std::max(1U, std::thread::hardware_concurrency());
};

struct NamedOptions {
  std::string name;
  tc_cast_options options;
};

// The options that affect float32 to `to` if no element fails.
std::vector<NamedOptions> sweeps_of(Type to) {
  std::vector<NamedOptions> sweeps;
  const auto add = [&](const std::string& name, auto change) {
    tc_cast_options options = default_options();
    change(options);
    sweeps.push_back({name, options});
  };
  if (is_float8(to)) {
    add("saturate", [](auto&) {});
    add("no saturate", [](auto& o) { o.saturate = 0; });
    if (is_fnuz(to)) add("saturate, opset 23", [](auto& o) { o.opset = 23; });
    add("saturate finite", [](auto& o) { o.saturate = 0, o.out_of_range = 2; });
  } else if (to == e8m0) {
    static constexpr const char* modes[] = {"up", "down", "nearest"};
    for (int mode = 0; mode < 3; ++mode) {
      add(std::string(modes[mode]) + ", saturate", [&](auto& o) { o.round_mode = mode; });
      add(std::string(modes[mode]) + ", no saturate", [&](auto& o) { o.round_mode = mode, o.saturate = 0; });
    }
    add("down, saturate finite", [](auto& o) { o.round_mode = 1, o.saturate = 0, o.out_of_range = 2; });
  } else if (to == e2m1) {
    add("newest opset", [](auto&) {});
    add("opset 23", [](auto& o) { o.opset = 23; });
  } else if (is_integer(to) && info(to).bits > 16) {
    add("wrap, trunc", [](auto& o) { o.out_of_range = 1; });
    add("saturate, nearest", [](auto& o) { o.out_of_range = 2, o.rounding = 1; });
  } else if (is_integer(to)) {
    for (const int rounding : {0, 1}) {
      const std::string suffix = rounding == 0 ? ", trunc" : ", nearest";
      add("wrap" + suffix, [&](auto& o) { o.out_of_range = 1, o.rounding = rounding; });
      add("saturate" + suffix, [&](auto& o) { o.out_of_range = 2, o.rounding = rounding; });
    }
  } else {
    add("", [](auto&) {});
    if (to == f16 || to == bf16) add("saturate finite", [](auto& o) { o.out_of_range = 2; });
  }
  return sweeps;
}

class Session {
 public:
  explicit Session(Arguments arguments) : arguments_(std::move(arguments)) {}

  int run() {
    const auto start = Clock::now();
    std::vector<tensorcast::Target> targets;
    for (const tensorcast::Target target : tensorcast::supported_targets()) {
      if (arguments_.target.empty() || arguments_.target == tensorcast::name(target)) targets.push_back(target);
    }
    for (const tensorcast::Target target : targets) {
      print_heading(std::string(tensorcast::name(target)));
      sweep_all_float32(target);
    }
    print_heading("All targets");
    sweep_wide_sources(targets);
    sweep_other_pairs(targets);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::printf("\n%llu comparisons, %llu wrong, %.0f seconds with %u threads.\n",
                static_cast<unsigned long long>(compared_), static_cast<unsigned long long>(mismatches_), seconds,
                arguments_.threads);
    return mismatches_ == 0 && compared_ != 0 ? 0 : 1;
  }

 private:
  [[nodiscard]] bool wanted(Type to) const { return arguments_.to.empty() || arguments_.to == info(to).name; }

  [[nodiscard]] bool sampled() const { return arguments_.stride > 1; }

  static void print_heading(const std::string& heading) {
    std::printf("\n### %s\n\n| conversion | options | compared | wrong | seconds |\n|---|---|---:|---:|---:|\n",
                heading.c_str());
  }

  void sweep_all_float32(tensorcast::Target target) {
    for (const Type to : numeric_types()) {
      if (to == f32 || to == f64 || !wanted(to)) continue;
      for (const NamedOptions& named : sweeps_of(to)) {
        const auto start = Clock::now();
        const SweepResult result = sweep_float32(target, to, named.options, arguments_.stride, arguments_.threads);
        print("float32", info(to).name, named.name, result, start);
      }
    }
  }

  void sweep_wide_sources(std::span<const tensorcast::Target> targets) {
    for (const Type from : {f64, i64, u64}) {
      const auto start = Clock::now();
      SweepResult sum;
      for (const Type to : numeric_types()) {
        if (to == from || !wanted(to)) continue;
        const std::vector<std::uint64_t> codes = neighbourhood_codes(from, to, sampled() ? 5000 : 400000);
        merge(sum, compare_codes(targets, from, codes, to, default_options()));
      }
      print(info(from).name, "all", "neighbourhoods of every threshold", sum, start);
    }
  }

  void sweep_other_pairs(std::span<const tensorcast::Target> targets) {
    const auto start = Clock::now();
    SweepResult sum;
    for (const Type from : numeric_types()) {
      for (const Type to : numeric_types()) {
        if (from == to || !wanted(to)) continue;
        std::vector<std::uint64_t> codes = boundary_codes(from, to, 1.0, !sampled());
        if (sampled()) codes = thinned(codes, 1000);
        for (const NamedOptions& named : sweeps_of(to)) {
          if (named.options.opset != 0 && info(from).first_opset > named.options.opset) continue;
          merge(sum, compare_codes(targets, from, codes, to, named.options));
        }
      }
    }
    print("all", "all", "boundaries, all codes up to 16 bits", sum, start);
  }

  static void merge(SweepResult& sum, const SweepResult& part) {
    sum.compared += part.compared;
    if (sum.mismatches == 0) sum.first_mismatch = part.first_mismatch;
    sum.mismatches += part.mismatches;
  }

  void print(const char* from, const char* to, const std::string& options, const SweepResult& result,
             Clock::time_point start) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    std::printf("| %s to %s | %s | %llu | %llu | %.1f |\n", from, to, options.c_str(),
                static_cast<unsigned long long>(result.compared), static_cast<unsigned long long>(result.mismatches),
                seconds);
    if (result.mismatches != 0) std::fprintf(stderr, "  WRONG: %s\n", result.first_mismatch.c_str());
    std::fflush(stdout);
    compared_ += result.compared;
    mismatches_ += result.mismatches;
  }

  Arguments arguments_;
  std::uint64_t compared_ = 0;
  std::uint64_t mismatches_ = 0;
};

bool parse_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const auto value = [&](const char* name) {
      return std::strcmp(argv[i], name) == 0 && i + 1 < argc ? argv[++i] : nullptr;
    };
    if (std::strcmp(argv[i], "--quick") == 0) {
      arguments.stride = 61;
    } else if (const char* stride = value("--stride")) {
      arguments.stride = static_cast<unsigned>(std::max(1, std::atoi(stride)));
    } else if (const char* target = value("--target")) {
      arguments.target = target;
    } else if (const char* to = value("--to")) {
      arguments.to = to;
    } else if (const char* threads = value("--threads")) {
      arguments.threads = static_cast<unsigned>(std::max(1, std::atoi(threads)));
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace oracle

int main(int argc, char** argv) {
  oracle::Arguments arguments;
  if (!oracle::parse_arguments(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: exhaustive [--quick | --stride N] [--target NAME] [--to DTYPE] [--threads N]\n");
    return 2;
  }
  return oracle::Session(arguments).run();
}
