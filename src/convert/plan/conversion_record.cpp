// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/conversion_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convert/plan/conversion_json.hpp"
#include "formats/metadata_text.hpp"
#include "quantized/layout/description_json.hpp"
#include "tensorcast/version.hpp"

namespace tensorcast::file_conversion {
namespace {

constexpr std::size_t max_conversion_record_bytes = std::size_t{1} << 20;

std::optional<ConversionRecord> find_conversion_record(const formats::Metadata& metadata) {
  const std::string* const text = formats::find_text(metadata, conversion_key);
  if (text == nullptr || text->size() > max_conversion_record_bytes) return std::nullopt;
  try {
    nlohmann::json json = nlohmann::json::parse(*text);
    if (!json.is_object()) return std::nullopt;
    ConversionRecord record;
    if (json.contains("recipes")) record.recipes = json.at("recipes").get<std::vector<std::string>>();
    if (json.contains("layouts")) record.layouts = json.at("layouts").get<std::vector<std::string>>();
    if (json.contains("options")) {
      nlohmann::json& options = json.at("options");
      record.weighs = options.is_object() && options.erase("importance") != 0;
      if (!read_conversion(options, record.request)) return std::nullopt;
    }
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

// The entries of scale_key; null: there are none, or they are not as ConversionRecorder writes them.
nlohmann::json scale_entries(const formats::Metadata& metadata) {
  const std::string* const text = formats::find_text(metadata, scale_key);
  if (text == nullptr) return nullptr;
  // Those of a large model name many tensors, so that memory has a bound and not the text.
  Result<nlohmann::json> entries = quantized::parse_description(*text, quantized::KeptValues::all);
  return entries && entries->is_array() ? *std::move(entries) : nlohmann::json();
}

// How many entries two lists begin with that are the same.
std::size_t count_common(const nlohmann::json& one, const nlohmann::json& two) {
  std::size_t count = 0;
  while (count < one.size() && count < two.size() && one[count] == two[count]) ++count;
  return count;
}

}  // namespace

void RecordedScales::add(const formats::Metadata& output, std::span<const formats::Metadata* const> sources,
                         std::span<const formats::TensorInfo> names) {
  const nlohmann::json entries = scale_entries(output);
  std::size_t known = 0;
  for (const formats::Metadata* source : sources) {
    known = std::max(known, count_common(entries, scale_entries(*source)));
  }
  for (std::size_t i = known; i < entries.size(); ++i) {
    const nlohmann::json& entry = entries[i];
    if (!entry.is_object() || !entry.contains("scale") || !entry.at("scale").is_number()) continue;
    const auto scale = entry.at("scale").get<double>();
    if (!entry.contains("tensors")) {
      for (const formats::TensorInfo& tensor : names) scales_[tensor.name] = scale;
    } else if (entry.at("tensors").is_array()) {
      for (const nlohmann::json& name : entry.at("tensors")) {
        if (name.is_string()) scales_[name.get<std::string>()] = scale;
      }
    }
  }
}

double RecordedScales::of(const std::string& name) const {
  const auto found = scales_.find(name);
  return found == scales_.end() ? 1.0 : found->second;
}

void ConversionRecorder::write_scales(formats::Metadata& metadata) const {
  if (scaled_.empty()) return;
  std::string record;
  for (const auto& [scale, names] : scaled_) {
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

void ConversionRecorder::add(const PlannedTensor& tensor) {
  casts_ = casts_ || tensor.casts();
  ++count_;
  if (tensor.scale() != 1.0) {
    auto entry = std::ranges::find(scaled_, tensor.scale(), [](const auto& pair) { return pair.first; });
    if (entry == scaled_.end()) entry = scaled_.insert(scaled_.end(), {tensor.scale(), {}});
    entry->second.push_back(tensor.target.name);
  }
  const NewWeight* const weight = tensor.new_weight();
  if (weight == nullptr || weight->recipe.empty()) return;
  recipes_.insert(fmt::format("{}:{}", weight->scheme, weight->recipe));
  layouts_.insert(weight->becomes.substr(0, weight->becomes.find(' ')));
}

void ConversionRecorder::write(formats::Metadata& metadata, const formats::Format& output,
                               const std::string& program) const {
  write_scales(metadata);
  if (!casts_ && recipes_.empty()) return;
  std::erase_if(metadata, [](const auto& entry) { return entry.first == conversion_key; });
  if (recipes_.empty() && request_.options == CastOptions{}) return;
  nlohmann::ordered_json json = {{"version", program.empty() ? version() : program}};
  if (!recipes_.empty()) {
    json["recipes"] = recipes_;
    json["layouts"] = layouts_;
  }
  nlohmann::ordered_json options = tensor_options_json(request_);
  if (options.contains("importance")) options["importance"] = true;  // the path is of this machine
  if (!options.empty()) json["options"] = std::move(options);
  // Loaders of transformers before 5 take metadata without the framework's name for an error, and none at all for fine.
  const bool had_none =
      std::ranges::all_of(metadata, [](const auto& entry) { return entry.first.starts_with("tensorcast."); });
  if (had_none && output.name == "safetensors") metadata.emplace(metadata.begin(), "format", "pt");
  // Where a plan.json that is read again has it: by its key.
  const auto place = std::ranges::find_if(metadata, [](const auto& entry) { return entry.first > conversion_key; });
  metadata.emplace(place, conversion_key, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void add_record(const formats::Metadata& metadata, std::optional<ConversionRecord>& record) {
  std::optional<ConversionRecord> found = find_conversion_record(metadata);
  if (!found) return;
  if (!record) {
    record = std::move(found);
    return;
  }
  for (std::string& recipe : found->recipes) {
    if (std::ranges::find(record->recipes, recipe) == record->recipes.end()) {
      record->recipes.push_back(std::move(recipe));
    }
  }
}

}  // namespace tensorcast::file_conversion
