// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/scale_record.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tensorcast::file_conversion {

void ScaleRecorder::add(const PlannedTensor& tensor) {
  ++count_;
  if (tensor.scale() == 1.0) return;
  auto entry = std::ranges::find(names_, tensor.scale(), [](const auto& pair) { return pair.first; });
  if (entry == names_.end()) entry = names_.insert(names_.end(), {tensor.scale(), {}});
  entry->second.push_back(tensor.target.name);
}

void ScaleRecorder::write(formats::Metadata& metadata) const {
  if (names_.empty()) return;
  std::string record;
  for (const auto& [scale, names] : names_) {
    record += fmt::format("{}{{\"scale\": {}", record.empty() ? "" : ", ", scale);
    if (names.size() != count_) {
      record +=
          ", \"tensors\": " + nlohmann::json(names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
