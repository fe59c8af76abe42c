// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/scale_record.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tensorcast::file_conversion {

void record_scale(std::span<const PlannedTensor* const> tensors, formats::Metadata& metadata) {
  std::vector<std::pair<double, nlohmann::json>> named;  // in the order of the tensors
  for (const PlannedTensor* tensor : tensors) {
    if (tensor->scale() == 1.0) continue;
    auto entry = std::ranges::find(named, tensor->scale(), [](const auto& pair) { return pair.first; });
    if (entry == named.end()) entry = named.insert(named.end(), {tensor->scale(), nlohmann::json::array()});
    entry->second.push_back(tensor->target.name);
  }
  if (named.empty()) return;
  std::string record;
  for (const auto& [scale, names] : named) {
    record += fmt::format("{}{{\"scale\": {}", record.empty() ? "" : ", ", scale);
    if (names.size() != tensors.size()) {
      record += ", \"tensors\": " + names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
    record += "}";
  }
  const auto known = std::ranges::find(metadata, scale_key, [](const auto& pair) { return pair.first; });
  if (known == metadata.end()) {
    metadata.emplace_back(scale_key, "[" + record + "]");
  } else if (known->second.ends_with("]")) {
    known->second.replace(known->second.size() - 1, 1, ", " + record + "]");
  } else {
    known->second = "[" + record + "]";
  }
}

}  // namespace tensorcast::file_conversion
