// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare/differences.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

namespace tensorcast::checkpoint {

Result<void> first_difference(std::vector<Error> differences, const std::string& folder) {
  if (differences.empty()) return {};
  Error first = std::move(differences.front());
  std::vector<std::string> others;
  for (const Error& each : std::span(differences).subspan(1)) {
    std::string name = each.file;
    if (name.starts_with(folder + "/")) name.erase(0, folder.size() + 1);
    if (each.file != first.file && std::ranges::find(others, name) == others.end()) others.push_back(std::move(name));
  }
  if (others.empty()) return first;
  const bool one = others.size() == 1;
  first.message += fmt::format("; {} {}, too: {}", one ? "another file" : "other files", one ? "differs" : "differ",
                               fmt::join(others, ", "));
  return first;
}

}  // namespace tensorcast::checkpoint
