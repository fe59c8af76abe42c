#include "convert/scale_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace tensorcast::conversion {

void record_scale(std::span<const PlannedTensor* const> tensors, formats::Metadata& metadata) {
  double scale = 1.0;
  std::size_t scaled = 0;
  nlohmann::json names = nlohmann::json::array();
  for (const PlannedTensor* tensor : tensors) {
    if (tensor->scale == 1.0) continue;
    scale = tensor->scale;
    ++scaled;
    names.push_back(tensor->target.name);
  }
  if (scaled == 0) return;
  std::string entry = fmt::format("{{\"scale\": {}", scale);
  if (scaled != tensors.size()) {
    entry += ", \"tensors\": " + names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  entry += "}";
  const auto known = std::ranges::find(metadata, scale_key, [](const auto& pair) { return pair.first; });
  if (known == metadata.end()) {
    metadata.emplace_back(scale_key, "[" + entry + "]");
  } else if (known->second.ends_with("]")) {
    known->second.replace(known->second.size() - 1, 1, ", " + entry + "]");
  } else {
    known->second = "[" + entry + "]";
  }
}

}  // namespace tensorcast::conversion
