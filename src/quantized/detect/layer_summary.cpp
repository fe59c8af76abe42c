// SPDX-License-Identifier: Apache-2.0
#include "quantized/detect/layer_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "quantized/layer/part_reader.hpp"
#include "quantized/layer/quantized_tensors.hpp"
#include "quantized/layout/loaders.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::uint64_t most_scale_bytes = std::uint64_t{256} << 20;
constexpr std::size_t block_elements = std::size_t{1} << 16;

struct ScaleCounts {
  std::uint64_t nan = 0, zero = 0, infinite = 0, negative = 0;
};

class Remarks {
 public:
  Remarks(const FoundLayers& found, formats::Reader& reader)
      : found_(found), reader_(reader), bytes_(block_elements * sizeof(float)), values_(block_elements) {}

  ScaleRemarks run() {
    if (!found_.refusal.empty()) remarks_.warnings.push_back(found_.refusal);
    if (found_.refusal.empty()) find_other_codes();
    say(found_.excluded,
        fmt::format("codes, but {} lists such layers as not quantized: loaders take the codes for weights, or fail",
                    found_.source));
    for (std::size_t i = 0; i < found_.layers.size(); ++i) {
      const Layer& layer = found_.layers[i];
      if (!layer.problem.empty()) continue;
      if (const std::optional<std::size_t> global = layer.find(PartRole::global_scale); global) look(i, *global, true);
      if (const std::optional<std::size_t> scales = layer.find(PartRole::scales); scales) look(i, *scales, false);
    }
    compare_joined();
    say(nan_, "scales that are NaN: all weights of their blocks are NaN");
    say(zero_global_,
        "a scale of the whole tensor that is zero or infinite, as of experts that no calibration reached");
    if (!negative_.empty()) remarks_.notes.push_back(sentence(negative_, "scales that are negative"));
    if (unread_ > 0) remarks_.notes.push_back(fmt::format("the scales of {} layers were not looked at", unread_));
    add_recipe_remarks(found_, reader_, remarks_);
    return std::move(remarks_);
  }

 private:
  // Codes of no layer, beside a tensor that decodes them by its name, such as "a.descale".
  void find_other_codes() {
    const std::vector<file_conversion::QuantizedPart> parts = file_conversion::find_quantized(reader_.tensors(), "");
    std::vector<std::string> others;
    std::string scales;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool in_layer = found_.any() && found_.layer_of[i];
      if (in_layer || parts[i].role != file_conversion::QuantizedRole::codes || parts[i].partner.empty()) continue;
      if (others.empty()) scales = parts[i].partner;
      others.push_back(reader_.tensors()[i].name);
    }
    say(others, fmt::format("codes that \"{}\" scales, in a spelling that is not decoded", scales));
  }

  // Counts what is odd in a tensor of scales, and remembers a scale of a whole tensor.
  void look(std::size_t index, std::size_t tensor, bool global) {
    const Layer& layer = found_.layers[index];
    const TensorInfo& info = reader_.tensors()[tensor];
    DType type = info.dtype;
    if (!global && type == DType::uint8) {
      if (layer.coding.element == DType::undefined) return;  // codes of scales
      type = layer.coding.scale == DType::float8_e4m3fn ? DType::float8_e4m3fn : DType::float8_e8m0fnu;
    }
    if (info.bytes > most_scale_bytes - read_) {
      ++unread_;
      return;
    }
    read_ += info.bytes;
    const std::optional<ScaleCounts> counts = count(tensor, info, type);
    if (!counts) return;
    if (info.count == 1) tensor_scales_[index] = values_[0];
    const std::string& name = info.name;
    if (counts->nan > 0) nan_.push_back(name);
    if (counts->negative > 0) negative_.push_back(name);
    if (global && counts->zero + counts->infinite > 0) zero_global_.push_back(name);
  }

  std::optional<ScaleCounts> count(std::size_t tensor, const TensorInfo& info, DType type) {
    ScaleCounts counts;
    for (std::uint64_t first = 0; first < info.count; first += block_elements) {
      const std::size_t elements = std::min<std::uint64_t>(block_elements, info.count - first);
      const auto bytes = std::span(bytes_).first(storage_bytes(type, elements));
      if (!reader_.read(tensor, storage_bytes(type, first), bytes)) return std::nullopt;
      const auto numbers = std::span(values_).first(elements);
      if (!to_float(type, bytes, numbers)) return std::nullopt;
      for (const float value : numbers) {
        counts.nan += std::isnan(value) ? 1 : 0;
        counts.zero += value == 0.0f ? 1 : 0;
        counts.infinite += std::isinf(value) ? 1 : 0;
        counts.negative += value < 0.0f ? 1 : 0;
      }
    }
    return counts;
  }

  void compare_joined() {
    std::map<std::string, std::vector<std::size_t>> groups;
    for (const auto& [index, value] : tensor_scales_) {
      const std::string whole = joined_module(found_.layers[index].name);
      if (!whole.empty()) groups[whole].push_back(index);
    }
    std::vector<std::string> different;
    for (const auto& [key, members] : groups) {
      const bool same = std::ranges::all_of(
          members, [&](std::size_t index) { return tensor_scales_[index] == tensor_scales_[members[0]]; });
      if (!same) different.push_back(found_.layers[members[0]].name);
    }
    say(different,
        "another tensor scale than the layers that loaders join with them (gate and up; q, k and v), of "
        "which some loaders use the first for all");
  }

  void say(const std::vector<std::string>& names, std::string_view what) {
    if (!names.empty()) remarks_.warnings.push_back(sentence(names, what));
  }

  static std::string sentence(const std::vector<std::string>& names, std::string_view what) {
    return fmt::format("{} {} {}", first_of(names[0], names.size() - 1), names.size() > 1 ? "have" : "has", what);
  }

  const FoundLayers& found_;
  formats::Reader& reader_;
  std::vector<std::byte> bytes_;
  std::vector<float> values_;
  std::uint64_t read_ = 0;
  std::size_t unread_ = 0;
  std::map<std::size_t, float> tensor_scales_;  // by layer
  std::vector<std::string> nan_, negative_, zero_global_;
  ScaleRemarks remarks_;
};

// What a configuration may say otherwise than ours does, as that embeddings are quantized, is no fault; and published
// models of DeepSeek have shorter last blocks.
bool is_fault(WeightTrait trait) {
  return trait != WeightTrait::embedding && trait != WeightTrait::no_fused_expert &&
         trait != WeightTrait::short_last_block;
}

// A sentence for each limit of loaders that layers go beyond.
std::vector<std::string> loader_warnings(const FoundLayers& found) {
  std::map<const LoaderLimit*, std::vector<std::string>> beyond;
  for (const Layer& layer : found.layers) {
    if (!layer.problem.empty()) continue;
    for (const LoaderLimit* limit : limits_of(layer.spelling, loaded_weight(layer, layer.scheme), found.architecture)) {
      if (is_fault(limit->trait)) beyond[limit].push_back(layer.name);
    }
  }
  std::vector<std::string> warnings;
  for (const LoaderLimit& limit : all_limits()) {
    const auto row = beyond.find(&limit);
    if (row == beyond.end()) continue;
    warnings.push_back(fmt::format("{}: known loaders do not take it: {}",
                                   first_of(row->second.front(), row->second.size() - 1), text_of(limit)));
  }
  return warnings;
}

}  // namespace

std::vector<QuantizedLayer> summary_of(const FoundLayers& found, std::span<const TensorInfo> tensors,
                                       const std::string& prefix) {
  std::vector<QuantizedLayer> summaries;
  summaries.reserve(found.layers.size());
  for (const Layer& layer : found.layers) {
    QuantizedLayer& summary = summaries.emplace_back();
    summary.name = prefix + layer.name;
    summary.spelling = layer.spelling;
    summary.scheme = layer.scheme;
    summary.shape = layer.shape;
    summary.block_rows = std::max<std::int64_t>(layer.block_rows, 0);
    summary.block_columns = std::max<std::int64_t>(layer.block_columns, 0);
    for (const Part& part : layer.parts) summary.tensors.push_back(prefix + tensors[part.tensor].name);
    summary.problem = layer.problem;
    if (!layer.problem.empty()) summary.problem_tensor = prefix + layer.problem_tensor;
  }
  return summaries;
}

std::string problem_warning(const FoundLayers& found) {
  const auto is_wrong = [](const Layer& layer) { return !layer.problem.empty(); };
  const auto first = std::ranges::find_if(found.layers, is_wrong);
  if (first == found.layers.end()) return {};
  const auto count = std::ranges::count_if(found.layers, is_wrong);
  const std::string others = count > 1 ? fmt::format(" ({} more are not decoded)", count - 1) : std::string();
  return fmt::format("not decoded: {}: {}{}", first->problem_tensor, first->problem, others);
}

ScaleRemarks scale_remarks(const FoundLayers& found, formats::Reader& reader) {
  ScaleRemarks remarks = Remarks(found, reader).run();
  for (std::string& warning : loader_warnings(found)) remarks.warnings.push_back(std::move(warning));
  return remarks;
}

}  // namespace tensorcast::quantized
