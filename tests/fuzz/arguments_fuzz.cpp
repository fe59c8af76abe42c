// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary lines as the arguments of tcast, without running the command.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "flags/convert_rules.hpp"

// The fuzzer has a main of its own.
#define main tcast_main
#include "main.cpp"
#undef main

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The output of help and errors is not checked.
  static const bool quiet = std::freopen("/dev/null", "w", stdout) != nullptr;
  static_cast<void>(quiet);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words = {"tcast"};
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  tcast::Work work;
  static_cast<void>(
      tcast::parse_command_line(tcast::prepared_arguments(static_cast<int>(arguments.size()), arguments.data()), work));
  for (const std::string& word : words) static_cast<void>(tcast::parse_rule(word));
  return 0;
}
