// SPDX-License-Identifier: Apache-2.0
#include "commands/output_paths.hpp"

#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "dtype/errors.hpp"

namespace tcast {
namespace {

constexpr std::size_t longest_stem = 100;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

std::string stem_of(const std::string& name) {
  std::string stem = name.substr(0, longest_stem);
  for (char& c : stem) {
    if (!is_letter_or_digit(c) && c != '.' && c != '-') c = '_';
  }
  if (stem.empty()) return "output";
  if (stem.front() == '.' || stem.front() == '-') stem.front() = '_';  // a hidden file, or an option of other commands
  return stem;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

std::vector<std::string> output_file_names(std::span<const std::string> names, const std::string& extension) {
  std::vector<std::string> files;
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> last_numbers;  // last number of each stem, so that no number is tried twice
  for (const std::string& name : names) {
    const std::string stem = stem_of(name);
    std::string candidate = stem;
    int& number = last_numbers.try_emplace(lower(stem), 1).first->second;
    while (!taken.insert(lower(candidate)).second) candidate = fmt::format("{}-{}", stem, ++number);
    files.push_back(candidate + extension);
  }
  return files;
}

tensorcast::Result<std::vector<std::string>> outputs_in(const std::string& folder, std::span<const std::string> inputs,
                                                        const std::string& extension) {
  std::vector<std::string> outputs;
  std::unordered_map<std::string, std::string> taken;  // the input of each output
  for (const std::string& input : inputs) {
    std::filesystem::path name = std::filesystem::path(input).filename();
    if (!extension.empty()) name.replace_extension(extension);
    const std::string output = (std::filesystem::path(folder) / name).string();
    const auto [other, is_new] = taken.try_emplace(output, input);
    if (!is_new) {
      return tensorcast::invalid(fmt::format("{} and {} would both become {}", other->second, input, output),
                                 "convert them into different folders");
    }
    outputs.push_back(output);
  }
  return outputs;
}

}  // namespace tcast
