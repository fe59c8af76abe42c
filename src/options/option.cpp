// SPDX-License-Identifier: Apache-2.0
#include "options/option.hpp"

#include "dtype/formatted.hpp"

namespace tensorcast::options {

std::string complaint(const Facts& facts, std::string_view name, std::int64_t value) {
  if (facts.words.size() != 0) return formatted("{} has no value {}", name, value);
  return formatted("{} {} does not exist; 1 to {} do, and 0 is the newest", name, value,
                   static_cast<std::int64_t>(facts.high));
}

std::string complaint(const Facts& facts, std::string_view name, double /*value*/) {
  if (facts.high == std::numeric_limits<double>::max()) return formatted("{} must be a finite number", name);
  return formatted("{} must be a number from {} to {}", name, facts.low, facts.high);
}

}  // namespace tensorcast::options
