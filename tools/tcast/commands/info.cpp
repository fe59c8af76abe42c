// SPDX-License-Identifier: Apache-2.0
// tcast info: describes this build and this machine.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "command.hpp"
#include "flags/options.hpp"
#include "print/report_json.hpp"
#include "process/printable.hpp"
#include "process/terminal.hpp"
#include "tensorcast/target.hpp"
#include "tensorcast/version.hpp"

namespace tcast {
namespace {

constexpr const char* info_examples = R"(Examples:
  tcast info
  TENSORCAST_TARGET=avx2 tcast info
      the same machine, held to a lower instruction set)";

std::string cpu_model() {
#if defined(__APPLE__)
  char brand[256] = {};
  std::size_t size = sizeof brand - 1;
  return ::sysctlbyname("machdep.cpu.brand_string", brand, &size, nullptr, 0) == 0 ? brand : "unknown";
#else
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
#endif
}

struct Info {
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

std::string plain_text(const Info& info) {
  std::string text = fmt::format(
      "version            {}\n"
      "CPU                {}\n"
      "instruction set    {}\n"
      "supported          {}\n"
      "threads            {}\n"
      "TENSORCAST_TARGET  {}\n"
      "file formats       {}\n",
      tensorcast::version(), info.cpu, info.target, fmt::join(info.supported, " "), info.threads,
      info.forced == nullptr ? "not set" : printable(info.forced), fmt::join(tensorcast::file_formats(), " "));
  return text;
}

Json json(const Info& info) {
  return {{"version", tensorcast::version()},
          {"cpu", info.cpu},
          {"target", info.target},
          {"supported_targets", info.supported},
          {"threads", info.threads},
          {"tensorcast_target", info.forced == nullptr ? Json(nullptr) : Json(info.forced)},
          {"file_formats", tensorcast::file_formats()}};
}

}  // namespace

void add_info(CLI::App& app, Work& work) {
  CLI::App& command = *app.add_subcommand("info", "Show version, CPU, instruction set and threads");
  command.footer(info_examples);
  struct Arguments {
    bool json = false;
    bool quiet = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  add_json(command, arguments->json);
  add_quiet(command, arguments->quiet);
  command.callback([arguments, &work] {
    work = [arguments] {
      const Info info;
      if (arguments->json) {
        print(json_text(json(info)));
      } else if (!arguments->quiet) {
        print(plain_text(info));
      }
      return exit_done;
    };
  });
}

}  // namespace tcast
