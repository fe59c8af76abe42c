// SPDX-License-Identifier: Apache-2.0
// tcast info: describes this build and this machine.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <sys/utsname.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "command.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "process/digests.h"
#include "process/failure.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"

namespace tcast {
namespace {

constexpr const char* info_examples = R"(Examples:
  tcast info
  TENSORCAST_TARGET=avx2 tcast info
      the same machine, held to a lower instruction set
  tcast info --digest
      one line for reports: does this machine convert as all others do?)";

std::string cpu_model() {
#if defined(__APPLE__)
  char brand[256] = {};
  std::size_t size = sizeof brand - 1;
  return ::sysctlbyname("machdep.cpu.brand_string", brand, &size, nullptr, 0) == 0 ? brand : "unknown";
#else
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string part;  // ARM's CPUs have no name there
  for (std::string line; std::getline(cpuinfo, line);) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) return line.substr(colon + 2);
    if (line.starts_with("CPU implementer")) part = "implementer " + line.substr(colon + 2);
    if (line.starts_with("CPU part")) return part + " part " + line.substr(colon + 2);
  }
  return "unknown";
#endif
}

std::string system_name() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.machine) : "unknown";
}

struct Info {
  std::string system = system_name();
  std::string cpu = cpu_model();
  std::string target{tensorcast::name(tensorcast::active_target())};
  std::vector<std::string> supported;
  unsigned threads = std::thread::hardware_concurrency();
  const char* forced = std::getenv("TENSORCAST_TARGET");

  Info() {
    for (const tensorcast::Target each : tensorcast::supported_targets())
      supported.emplace_back(tensorcast::name(each));
  }
};

std::string info_text(const Info& info) {
  std::string text = fmt::format(
      "version            {}\n"
      "system             {}\n"
      "CPU                {}\n"
      "instruction set    {}\n"
      "supported          {}\n"
      "threads            {}\n"
      "TENSORCAST_TARGET  {}\n"
      "file formats       {}\n",
      tensorcast::version(), info.system, info.cpu, info.target, fmt::join(info.supported, " "), info.threads,
      info.forced == nullptr ? "not set" : printable(info.forced), fmt::join(tensorcast::file_formats(), " "));
  return text;
}

Json info_json(const Info& info) {
  return {{"version", tensorcast::version()},
          {"system", info.system},
          {"cpu", info.cpu},
          {"target", info.target},
          {"supported_targets", info.supported},
          {"threads", info.threads},
          {"tensorcast_target", info.forced == nullptr ? Json(nullptr) : Json(info.forced)},
          {"file_formats", tensorcast::file_formats()}};
}

// Converts 240 million numbers, and prints what came of it: a line, or the fields of info with two more.
int digest(const Info& info, bool as_json, bool quiet) {
  Digests found{};
  if (digest_casts(&found, nullptr) != TC_OK) return fail(tc_last_error());
  const bool right = found.casts == expected_digest_of_casts && found.words == expected_digest_of_words;
  const std::string text = fmt::format("{:016x} {:016x}", found.casts, found.words);
  if (as_json) {
    Json object = info_json(info);
    object["digest"] = text;
    object["digest_is_right"] = right;
    print(json_text(object));
  } else if (!quiet) {
    print(fmt::format("tensorcast {}, {}, {}, {}: digest {}, {}\n", tensorcast::version(), info.system, info.cpu,
                      info.target, text, right ? "right" : "WRONG"));
  }
  if (right) return exit_done;
  return fail(fmt::format("some conversions are wrong here: the digest must be {:016x} {:016x}",
                          expected_digest_of_casts, expected_digest_of_words),
              "TENSORCAST_TARGET=portable tcast info --digest tells whether the instruction set is at fault; please "
              "report both lines");
}

}  // namespace

void add_info(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("info", "Show version, CPU, instruction set and threads");
  command.footer(info_examples);
  struct Arguments {
    bool digest = false;
    bool json = false;
    bool quiet = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  command.add_flag("--digest", arguments->digest,
                   "one line: version, system, CPU, instruction set, and a digest of 240 million conversions, "
                   "which is the same on every machine; fails if it is not");
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] {
    work = [arguments] {
      const Info info;
      if (arguments->digest) return digest(info, arguments->json, arguments->quiet);
      if (arguments->json) {
        print(json_text(info_json(info)));
      } else if (!arguments->quiet) {
        print(info_text(info));
      }
      return exit_done;
    };
  });
}

}  // namespace tcast
