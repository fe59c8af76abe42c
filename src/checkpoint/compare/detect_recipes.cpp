// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/detect_recipes.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "block/encode/weight_layout.hpp"
#include "cast/conversion.hpp"
#include "checkpoint/source/opened_layers.hpp"
#include "convert/run/progress_meter.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "quantized/detect/recipe_trials.hpp"
#include "quantized/layer/decoded_reader.hpp"
#include "quantized/names/module_name.hpp"
#include "quantized/rewrite/importance.hpp"
#include "quantized/rewrite/quantizing.hpp"
#include "quantized/rewrite/target_options.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using checkpoint::OpenedLayers;
using formats::TensorInfo;

class Detection {
 public:
  Detection(const DetectRequest& request, OpenedLayers& input, OpenedLayers& original)
      : request_(request), input_(input), original_(original) {
    for (std::size_t i = 0; i < original.names.size(); ++i) places_.emplace(original.names[i], i);
    // A weight that was quantized already is decoded; its name may be that of its codes.
    if (!original.layers.empty()) decoded_.emplace(*original.stored, original.layers);
    for (std::size_t i = 0; i < original.layers.size(); ++i) {
      if (original.layers[i].problem.empty()) {
        places_.insert_or_assign(original.summaries[i].name, original.names.size() + i);
      }
    }
    for (const auto& [name, place] : places_) {
      const std::string key = quantized::joined_module(name);
      if (!key.empty()) joined_[key].push_back(place);
    }
  }

  Result<std::vector<LayerRecipes>> run() {
    std::vector<std::string> names;
    for (const QuantizedLayer& layer : input_.summaries) names.push_back(layer.name);
    importance_ = TRY(quantized::open_importance(request_.importance, names));
    std::vector<std::size_t> originals;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < input_.layers.size(); ++i) {
      originals.push_back(original_of(i));
      if (found_[i].problem.empty()) bytes += 2 * weights().tensors()[originals[i]].bytes;
    }
    file_conversion::ProgressMeter meter(request_.on_progress, bytes);
    for (std::size_t i = 0; i < input_.layers.size(); ++i) {
      if (!found_[i].problem.empty()) continue;
      TRY(in_file(request_.input, at_tensor(found_[i].name, try_layer(i, originals[i], meter))));
    }
    return std::move(found_);
  }

 private:
  // The original's tensors, then its layers decoded.
  [[nodiscard]] formats::Reader& weights() { return decoded_ ? *decoded_ : *original_.stored; }

  // What is recorded for a layer of this scheme that was made of this tensor; nothing, if it is not known.
  [[nodiscard]] std::optional<quantized::RecordedRecipes> recorded_for(std::string_view scheme,
                                                                       std::size_t original) const {
    const std::optional<file_conversion::ConversionRecord>& record = input_.record;
    if (!request_.only_recorded || !record || record->recipes.empty()) return std::nullopt;
    quantized::RecordedRecipes recorded{
        .recipes = record->recipes, .options = options::options_for(record->request, scheme), .weighs = record->weighs};
    const std::size_t plain = original_.names.size();
    if (original >= plain && recorded.options.compute_dtype == DType::undefined) {
      const bool is_gguf = original_.layers[original - plain].coding.packing == BlockPacking::gguf;
      recorded.options.compute_dtype = is_gguf ? DType::float32 : DType::bfloat16;
    }
    return recorded;
  }

  // Returns the tensor that the layer was made of, or sets the problem.
  std::size_t original_of(std::size_t index) {
    const QuantizedLayer& summary = input_.summaries[index];
    LayerRecipes& found = found_.emplace_back();
    found.name = summary.name;
    found.spelling = summary.spelling;
    found.scheme = summary.scheme;
    found.tensors = summary.tensors;
    if (!summary.problem.empty() && !input_.layers[index].other_basis) {
      found.problem = summary.problem;
      return 0;
    }
    const auto place = places_.find(summary.name);
    if (place == places_.end()) {
      found.problem = "the original has no tensor of this name";
      return 0;
    }
    const TensorInfo& info = weights().tensors()[place->second];
    if (info.problem) {
      found.problem = info.problem->message;
    } else if (!quantized::is_plain_float(info.dtype)) {
      found.problem = "the original is not float32, bfloat16 or float16";
    } else if (info.shape != summary.shape) {
      found.problem = "the original has another shape";
    }
    return place->second;
  }

  Result<void> try_layer(std::size_t index, std::size_t original, file_conversion::ProgressMeter& meter) {
    const quantized::Layer& layer = input_.layers[index];
    quantized::PartReader reader(*input_.stored, layer);
    const std::string key = quantized::joined_module(found_[index].name);
    quantized::OriginalWeight weight{.dtype = weights().tensors()[original].dtype,
                                     .read = quantized::stored_numbers(weights(), original),
                                     .joined_maximum = {},
                                     .importance = {}};
    const std::optional<quantized::RecordedRecipes> recorded =
        recorded_for(quantized::scheme_of_recipes(layer), original);
    if (recorded) weight.recorded = &*recorded;
    if (importance_ != nullptr) weight.importance = TRY(importance_->read(importance_->find(found_[index].name)));
    if (!key.empty() && joined_[key].size() > 1) {
      weight.joined_maximum = [this, key](DType dtype) { return joined_maximum(key, dtype); };
    }
    const auto advance = [&](std::uint64_t bytes) { return meter.advance(bytes, found_[index].name); };
    return quantized::try_recipes(std::move(reader), weight, request_.execution, advance, found_[index]);
  }

  Result<std::optional<float>> joined_maximum(const std::string& key, DType dtype) {
    const auto known = maxima_.find({key, dtype});
    if (known != maxima_.end()) return known->second;
    float largest = 0.0f;
    for (const std::size_t tensor : joined_[key]) {
      largest = std::max(largest, TRY(maximum_of(tensor, dtype)));
    }
    return maxima_[{key, dtype}] = largest;
  }

  // 0 for types that are no weights.
  Result<float> maximum_of(std::size_t tensor, DType dtype) {
    const TensorInfo& info = weights().tensors()[tensor];
    if (!quantized::is_plain_float(info.dtype) || info.problem) return 0.0f;
    const Shape shape(std::vector<std::int64_t>{static_cast<std::int64_t>(info.count)});
    const block::SharedLayout layout = TRY(block::WeightLayout::make(
        info.dtype, shape, "fp8-tensor", {.compute_dtype = dtype, .nonfinite = NonFiniteWeights::tool}));
    return quantized::largest_magnitude(*layout, quantized::stored_numbers(weights(), tensor), request_.execution);
  }

  const DetectRequest& request_;
  OpenedLayers& input_;
  OpenedLayers& original_;
  std::shared_ptr<const quantized::ImportanceFile> importance_;
  std::optional<quantized::DecodedReader> decoded_;
  std::map<std::string, std::size_t> places_;                         // of weights()
  std::unordered_map<std::string, std::vector<std::size_t>> joined_;  // tensors of weights()
  std::map<std::pair<std::string, DType>, float> maxima_;
  std::vector<LayerRecipes> found_;
};

}  // namespace

std::string RecipeTrial::search() const { return quantized::search_text(clip, uses_importance); }

std::vector<std::string> LayerRecipes::ways() const {
  std::vector<std::string> ways;
  for (const RecipeTrial& trial : trials) {
    if (!trial.fits()) continue;
    const std::string search = trial.search();
    std::string way(trial.recipe);
    if (!search.empty()) way += " with " + search;
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
  }
  return ways;
}

std::vector<std::string_view> LayerRecipes::recipes() const {
  std::vector<std::string_view> names;
  for (const RecipeTrial& trial : trials) {
    if (trial.fits() && std::ranges::find(names, trial.recipe) == names.end()) names.push_back(trial.recipe);
  }
  return names;
}

Result<std::vector<LayerRecipes>> detect_recipes(const DetectRequest& request) {
  return guarded(request.input, [&]() -> Result<std::vector<LayerRecipes>> {
    TRY(check_execution(request.execution));
    OpenedLayers input = TRY(checkpoint::open_layers(request.input));
    if (input.layers.empty()) {
      const bool known = !input.refusal.empty();
      return in_file(request.input,
                     invalid(known ? input.refusal : "there are no quantized layers whose recipe could be found"));
    }
    OpenedLayers original = TRY(checkpoint::open_layers(request.original, {.skip_files = request.skip_files}));
    return Detection(request, input, original).run();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
