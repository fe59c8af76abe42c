// SPDX-License-Identifier: Apache-2.0
#include "flags/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tcast {
namespace {

bool is_negative_number(std::string_view text) {
  if (!text.starts_with('-')) return false;
  text.remove_prefix(1);
  if (text.empty()) return false;
  if (std::isdigit(static_cast<unsigned char>(text[0])) != 0) return true;
  if (text[0] == '.') return text.size() > 1 && std::isdigit(static_cast<unsigned char>(text[1])) != 0;
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word == "inf" || word == "infinity" || word == "nan";
}

}  // namespace

std::vector<std::string> prepared_arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto command =
      std::find_if(arguments.begin(), arguments.end(), [](const std::string& word) { return !word.starts_with('-'); });
  const bool takes_numbers = command != arguments.end() && *command == "explain";
  for (std::string& word : arguments) {
    if (word == "--") break;
    if (takes_numbers && is_negative_number(word)) {
      word.insert(0, " ");  // parsers of numbers skip it
    } else if (word.starts_with("--")) {
      const auto end = std::min(word.find('='), word.size());
      std::replace(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(end), '_', '-');
    }
  }
  return arguments;
}

}  // namespace tcast
