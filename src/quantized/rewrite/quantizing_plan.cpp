// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/quantizing_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "block/format/gguf_block.hpp"
#include "block/recipe/recipe.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/hadamard.hpp"
#include "quantized/names/module_name.hpp"
#include "quantized/rewrite/target_options.hpp"

namespace tensorcast::quantized {
namespace {

class QuantizingPlanner {
 public:
  QuantizingPlanner(const FoundLayers& found, std::span<const ChosenWeight> chosen, std::span<const TensorInfo> tensors,
                    const QuantizeRequest& request)
      : found_(found), chosen_(chosen.begin(), chosen.end()), tensors_(tensors), request_(request) {}

  Result<Respelling> run() {
    const bool was_checked = request_.targets.budget != 0.0;  // with the candidates
    TRY(was_checked ? Result<void>() : check_options());
    std::vector<std::string> schemes;
    for (const ChosenWeight& weight : chosen_) schemes.push_back(weight.scheme);
    writer_ = TRY(choose_spelling(schemes, request_));
    plan_.spelling = writer_->name;
    plan_.layers.resize(found_.layers.size());
    TRY(check_activations(schemes));
    beside_mxfp4_ = std::ranges::find(schemes, "mxfp4") != schemes.end();
    for (ChosenWeight& weight : chosen_) TRY(at_tensor(found_.layers[weight.layer].name, plan_layer(weight)));
    TRY(leave_unfit());
    share_scales();
    warn_of_transposed_weights();
    WrittenModel model;
    // The request has one rule of scales for all weights of the scheme.
    if (!rounded_up_.empty()) model.scale_format = "ue8m0";
    plan_.config =
        describe_layers(*writer_, found_, tensors_, plan_, request_.writes, request_.architecture, std::move(model));
    if (!plan_.config.refusal.empty()) {
      return of_tensor(plan_.config.refused_layer, unsupported(plan_.config.refusal));
    }
    return std::move(plan_);
  }

 private:
  // Options are for the schemes that have them; one must.
  [[nodiscard]] Result<void> check_options() const {
    const QuantizeTargets& targets = request_.targets;
    bool has_recipe = targets.recipe.empty();
    std::vector<std::string_view> schemes;
    for (const ChosenWeight& weight : chosen_) {
      has_recipe = has_recipe || find_quantize_recipe(weight.scheme, targets.recipe) != nullptr;
      schemes.push_back(weight.scheme);
    }
    TRY(check_scheme_options(targets, schemes));
    if (has_recipe) return {};
    const std::string& first = chosen_.front().scheme;
    return invalid(
        fmt::format("no recipe \"{}\" for {}; there are {}", targets.recipe, first, block::known_recipes(first)));
  }

  // A spelling has activations that are quantized while the model runs for some schemes, and must have for others.
  [[nodiscard]] Result<void> check_activations(std::span<const std::string> schemes) const {
    const Activations wanted = request_.targets.activations;
    const auto has = [&](DynamicActivations kind) {
      return std::ranges::find_if(
          schemes, [&, kind](const std::string& scheme) { return dynamic_activations(*writer_, scheme) == kind; });
    };
    const auto always = has(DynamicActivations::always);
    if (wanted == Activations::none && always != schemes.end()) {
      return unsupported(fmt::format("loaders of {} as {} quantize activations, too", *always, writer_->name),
                         "`spelling` compressed-tensors has weights alone");
    }
    if (wanted != Activations::dynamic || schemes.empty() || always != schemes.end() ||
        has(DynamicActivations::choice) != schemes.end()) {
      return {};
    }
    const BlockFormat* const format = find_block_format(schemes.front());
    return unsupported(fmt::format("{} as {} has no activations that are quantized while the model runs",
                                   schemes.front(), writer_->name),
                       format != nullptr && format->coding.global != GlobalScale::none
                           ? "a loader needs a calibrated scale of the activations of nvfp4; mxfp4 needs none"
                           : "`spelling` compressed-tensors has them for fp8, int8-channel, mxfp8, mxfp6 and mxfp4");
  }

  // Whether loaders quantize the inputs of a weight, where the spelling has a choice.
  [[nodiscard]] bool has_dynamic_activations(const ChosenWeight& weight, std::string_view recipe) const {
    if (dynamic_activations(*writer_, weight.scheme) != DynamicActivations::choice) return false;
    if (request_.targets.activations != Activations::automatic) {
      return request_.targets.activations == Activations::dynamic;
    }
    if (weight.recipe.empty() && request_.targets.recipe.empty()) return false;
    const std::string_view recipes = writer_->activations_recipes;
    return lists(recipes, weight.scheme) || lists(recipes, fmt::format("{}:{}", weight.scheme, recipe));
  }

  Result<void> plan_layer(ChosenWeight& weight) {
    if (!weight.unfit.empty()) return {};
    const Layer& layer = found_.layers[weight.layer];
    RespelledLayer& plan = plan_.layers[weight.layer];
    Result<PlannedWeight> made = plan_weight(layer, weight, tensors_, request_, *writer_, beside_mxfp4_);
    if (!made && is_unfit(made.error(), layer, weight.scheme, request_, *writer_)) {
      weight.unfit = fmt::format("cannot be {}: {}", weight.scheme, made.error().message);
      unfit_errors_.emplace(weight.scheme, at_tensor(layer.name, std::move(made).error()));  // the first of a scheme
      return {};
    }
    if (!made) return std::move(made).error();
    PlannedWeight& planned = *made;
    plan.writer = writer_;
    plan.becomes = std::move(planned.becomes);
    plan.recipe = planned.layout->tensor.recipe->recipe;
    plan.becomes.dynamic_activations = has_dynamic_activations(weight, plan.recipe);
    plan.choice = weight.choice;
    const bool is_scaled = planned.layout->needs_maximum();
    if (is_scaled) scaled_.push_back(weight.layer);
    if (planned.layout->is_power_of_two) rounded_up_.push_back(weight.layer);
    plan.passes = is_scaled ? 2 : 1;
    plan.quantizing = std::move(planned.quantizing);
    plan.sources.assign(planned.written.tensors.size(), found_.layers[weight.layer].codes());
    return {};
  }

  // A scheme that fits none of its weights is an error.
  Result<void> leave_unfit() {
    leave_joined(chosen_, found_, *writer_);
    for (auto& [scheme, error] : unfit_errors_) {
      const auto count = [&](bool fits) {
        return std::ranges::count_if(chosen_, [&, &name = scheme](const ChosenWeight& weight) {
          return weight.scheme == name && weight.unfit.empty() == fits;
        });
      };
      if (count(true) != 0) continue;
      if (const auto others = count(false) - 1; others != 0) {
        error.message +=
            fmt::format("; {} other weight{} cannot have the scheme either", others, others == 1 ? "" : "s");
      }
      return std::move(error);
    }
    for (const ChosenWeight& weight : chosen_) {
      if (weight.unfit.empty()) continue;
      plan_.layers[weight.layer] = {};
      plan_.unfit.emplace(weight.layer, weight.unfit);
      std::erase(scaled_, weight.layer);
      std::erase(rounded_up_, weight.layer);
    }
    if (plan_.unfit.empty()) return {};
    if (request_.targets.strict_schemes) {
      return unsupported(unfit_text(plan_.unfit.size()),
                         "`exclude` leaves them as they are, and so does a conversion without `strict_schemes`");
    }
    constexpr std::size_t most_named = 8;  // for a reason
    plan_.warnings.push_back(fmt::format("{} weight{} as {}: {}", plan_.unfit.size(),
                                         plan_.unfit.size() == 1 ? " stays" : "s stay",
                                         plan_.unfit.size() == 1 ? "it is" : "they are", unfit_text(most_named)));
    return {};
  }

  // Names the weights by their reasons, and of each so many.
  [[nodiscard]] std::string unfit_text(std::size_t most_named) const {
    std::map<std::string, std::vector<std::string>> names;
    for (const auto& [layer, why] : plan_.unfit) names[why].push_back(fmt::format("\"{}\"", found_.layers[layer].name));
    std::vector<std::string> reasons;
    for (auto& [why, weights] : names) {
      const std::size_t more = weights.size() - std::min(weights.size(), most_named);
      weights.resize(weights.size() - more);
      if (more != 0) weights.push_back(fmt::format("{} more", more));
      reasons.push_back(fmt::format("{} {}", fmt::join(weights, ", "), why));
    }
    return fmt::format("{}", fmt::join(reasons, "; "));
  }

  // Loaders of these spellings join q, k and v, and gate and up, and have one tensor scale for the whole.
  void share_scales() {
    if (request_.targets.fuse == Fuse::never || !writer_->joins_scales) return;
    std::map<std::string, std::vector<std::size_t>> joined;
    for (const std::size_t layer : scaled_) {
      const LayerContent& becomes = plan_.layers[layer].becomes;
      const std::string whole = joined_module(becomes.name);
      if (!whole.empty()) joined[whole + " " + becomes.scheme].push_back(layer);
    }
    for (const auto& [name, members] : joined) {
      for (const std::size_t own : members) {
        for (const std::size_t other : members) {
          if (other != own) plan_.layers[own].siblings.push_back(other);
        }
      }
    }
  }

  // GPT-2's Conv1D.
  void warn_of_transposed_weights() {
    std::map<std::string_view, const TensorInfo*> vectors;
    for (const TensorInfo& tensor : tensors_) {
      if (tensor.shape.size() == 1 && tensor.name.ends_with(".bias")) vectors.emplace(tensor.name, &tensor);
    }
    for (const ChosenWeight& weight : chosen_) {
      const Layer& layer = found_.layers[weight.layer];
      if (!weight.unfit.empty() || layer.is_quantized() || layer.shape.size() != 2 || layer.shape[0] == layer.shape[1])
        continue;
      const auto bias = vectors.find(tensor_of(module_of(layer.name), "bias"));
      if (bias == vectors.end() || bias->second->shape[0] != layer.shape[1]) continue;
      plan_.warnings.push_back(fmt::format(
          "\"{}\" lies as [inputs, outputs], as its bias says: its blocks run along the outputs, and loaders "
          "of {} take linear layers only",
          layer.name, plan_.spelling));
      return;
    }
  }

  const FoundLayers& found_;
  std::vector<ChosenWeight> chosen_;
  std::span<const TensorInfo> tensors_;
  const QuantizeRequest& request_;
  const Spelling* writer_ = nullptr;
  bool beside_mxfp4_ = false;                  // as in LayerContent
  std::vector<std::size_t> scaled_;            // layers with a scale of the tensor
  std::vector<std::size_t> rounded_up_;        // layers whose float32 scales are powers of two
  std::map<std::string, Error> unfit_errors_;  // the first of each scheme
  Respelling plan_;
};

// Experts in one tensor of their module, "experts.down_proj", not in one of its weight.
bool are_unnamed_experts(const std::string& name, std::size_t rank) {
  return rank > 2 && tensor_kind(name, rank) == TensorKind::expert && !name.ends_with("weight");
}

// Checks that a spelling can have experts as they lie.
Result<void> check_name(const Layer& layer, const std::string& scheme, const Spelling& writer) {
  const bool transposed = layer.is_transposed();
  const bool has_name =
      transposed ? writer.has_transposed_experts : !are_unnamed_experts(layer.name, layer.shape.size());
  if (writer.is_of_gguf || has_name) return {};
  const std::string hint = "`exclude` leaves the tensor as it is";
  if (!transposed) {
    return of_tensor(
        layer.name,
        unsupported(fmt::format("its experts are in one tensor whose name does not end in \"weight\": {} has "
                                "no name for their scales",
                                writer.name),
                    hint));
  }
  return of_tensor(
      layer.name,
      unsupported(fmt::format("its experts lie as [experts, inputs, outputs], which {} has no names for", writer.name),
                  (scheme == layouts::gpt_oss.methods[0].name ? "" : "`to` mxfp4 with ") +
                      ("`spelling` gpt-oss can; " + hint)));
}

// Groups of the default size, or smaller ones if only these divide the inputs: loaders take no shorter last group.
std::int64_t fitting_group_size(const Layer& layer) {
  for (const std::int64_t size : {64, 32}) {
    if (!layer.shape.empty() && layer.shape.back() % 128 != 0 && layer.shape.back() % size == 0) return size;
  }
  return 0;
}

// Names the spellings that can have what one refuses.
Error refused_layer(const LayerContent& content, const WrittenLayer& written) {
  std::string others;
  for (const Spelling& writer : all_writers()) {
    if (writer.is_of_gguf || !spell(writer, content).ok()) continue;
    others += (others.empty() ? "`spelling` " : " or ") + std::string(writer.name);
  }
  Error error = unsupported(written.refusal, "`exclude` leaves the tensor as it is");
  if (!others.empty()) {
    error.hint = others + " can; " + error.hint;
  } else if (content.scheme == "mxfp8-e5m2") {
    error.message = "no loader of files reads mxfp8-e5m2, so no spelling has it";
    error.hint = "mxfp8 can be written; tc.quantize() of Python makes the codes and scales of mxfp8-e5m2";
  }
  return error;
}

// `layouts`: "q4_k is a layout".
Error no_gguf(const std::string& layouts) {
  return unsupported(layouts + " of GGUF, and the output is no GGUF",
                     "make a GGUF of the model with llama.cpp first, and name a .gguf file as the output");
}

Error cannot_rotate(std::int64_t size, const Layer& layer, const Quantizing& quantizing) {
  if (!is_rotation_size(size) || size > max_rotated_columns) {
    return unsupported(fmt::format("`convrot` rotates groups of 4, 16, 64, 256, 1024 or {} inputs, not of {}",
                                   max_rotated_columns, size));
  }
  if (!is_rotated(quantizing.scheme)) {
    return unsupported(fmt::format("`convrot` is of int8-channel, and the weight becomes {}", quantizing.scheme));
  }
  if (layer.shape.empty() || layer.shape.back() % size != 0) {
    return unsupported(
        fmt::format("`convrot` rotates groups of {} inputs, and the inputs of a weight of {} are no multiple", size,
                    shape_text(layer.shape)),
        "a smaller group fits, or `exclude` leaves the weight");
  }
  return unsupported("`convrot` rotates weights in their own type, and `compute_dtype` names another");
}

}  // namespace

std::uint64_t PlannedWeight::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const WrittenTensor& tensor : written.tensors) sum += tensor.info.bytes;
  return sum;
}

Result<void> check_scheme_options(const QuantizeTargets& targets, std::span<const std::string_view> schemes) {
  const char *missing = "", *hint = "";
  options::for_each(options::quantize_targets, [&](const auto& option) {
    const options::OneScheme& only = option.only_with;
    const bool is_used = std::ranges::any_of(schemes, [&](std::string_view scheme) { return only.allows(scheme); });
    if (*missing != '\0' || is_used || !option.is_given(targets)) return;
    missing = only.name;
    hint = only.hint;
  });
  if (*missing == '\0') return {};
  std::vector<std::string> names;
  options::for_each(options::quantize_targets, [&](const auto& option) {
    if (std::string_view(option.only_with.name) == missing) names.push_back(fmt::format("`{}`", option.name));
  });
  return invalid(
      fmt::format("{} {} of use with {} only", fmt::join(names, " and "), names.size() == 1 ? "is" : "are", missing),
      hint);
}

bool is_unfit(const Error& error, const Layer& layer, const std::string& scheme, const QuantizeRequest& request,
              const Spelling& writer) {
  // A weight that is quantized already cannot stay so, beside others of another spelling.
  const bool may_stay = request.to_gguf || !layer.is_quantized();
  return error.code == ErrorCode::unsupported && may_stay && check_name(layer, scheme, writer);
}

void leave_joined(std::span<ChosenWeight> weights, const FoundLayers& found, const Spelling& writer) {
  if (!writer.joins_weights) return;
  std::map<std::string, std::string_view> unfit;  // by the whole
  for (const ChosenWeight& weight : weights) {
    const std::string& name = found.layers[weight.layer].name;
    if (!weight.unfit.empty()) unfit.emplace(one_scheme_module(name), name);
  }
  unfit.erase("");
  for (ChosenWeight& weight : weights) {
    const auto joined =
        weight.unfit.empty() ? unfit.find(one_scheme_module(found.layers[weight.layer].name)) : unfit.end();
    if (joined != unfit.end())
      weight.unfit = fmt::format("loaders join it with \"{}\", which cannot be quantized", joined->second);
  }
}

Result<PlannedWeight> plan_weight(const Layer& layer, const ChosenWeight& weight, std::span<const TensorInfo> tensors,
                                  const QuantizeRequest& request, const Spelling& writer, bool beside_mxfp4) {
  const QuantizeTargets& targets = request.targets;
  const bool has_recipe = find_quantize_recipe(weight.scheme, targets.recipe) != nullptr;
  Quantizing quantizing{.scheme = weight.scheme,
                        .gguf = request.to_gguf,
                        .numbers = layer.is_quantized() ? DType::float32 : tensors[layer.codes()].dtype,
                        .options = options::options_for(targets, weight.scheme),
                        .importance = {}};
  if (request.importance != nullptr) quantizing.importance = request.importance->find(layer.name);
  QuantizeOptions& options = quantizing.options;
  if (!weight.recipe.empty() || !has_recipe) options.recipe = weight.recipe;
  const QuantizeRecipe* const usual = find_quantize_recipe(weight.scheme);
  const bool has_groups = usual != nullptr && block::recipe_of(*usual).option == block::RecipeOption::group;
  if (has_groups && options.group_size == 0) options.group_size = fitting_group_size(layer);
  TRY(check_name(layer, weight.scheme, writer));
  if (request.to_gguf && block::gguf_block_of(weight.scheme) == tensorcast::GgufBlock::none) {
    return unsupported(fmt::format("GGUF has no {}", weight.scheme));
  }
  // As if the weight was converted to the type that models are trained in, and then quantized.
  if (layer.is_quantized() && targets.compute_dtype == DType::undefined) {
    options.compute_dtype = layer.coding.packing == BlockPacking::gguf ? DType::float32 : DType::bfloat16;
  }
  if (request.to_gguf) {
    const std::int64_t block = block_size(block::gguf_block_of(weight.scheme)).elements;
    const std::int64_t columns = layer.shape.empty() ? 1 : layer.shape.back();
    if (columns % block != 0) {
      return unsupported(fmt::format("{} columns are no whole blocks of {}", columns, block),
                         "`exclude` leaves the tensor as it is");
    }
  }
  const auto rotation = static_cast<std::int64_t>(targets.convrot);
  if (!can_rotate(rotation, quantizing, Shape(layer.shape))) {
    return of_tensor(layer.name, cannot_rotate(rotation, layer, quantizing));
  }
  const Shape shape(shape_to_quantize(layer));
  Result<block::SharedLayout> made = layout_of(quantizing, shape, request.importance.get());
  if (!made) {
    Error error = std::move(made).error();
    if (request.to_gguf && error.hint.empty()) error.hint = "`exclude` leaves the tensor as it is";
    return error;
  }
  const QuantizedTensor& layout = (*made)->tensor;
  if (!options.recipe.empty()) options.recipe = layout.recipe->recipe;  // which outlives the request
  if (layout.coding.gguf != tensorcast::GgufBlock::none && !request.to_gguf) {
    return no_gguf(fmt::format("{} is a layout", weight.scheme));
  }
  LayerContent becomes = content_of(layout, layer.name, !options.symmetric);
  becomes.beside_mxfp4 = beside_mxfp4;
  becomes.deviations.rotation = rotation;
  becomes.exact_scales = exact_scales_of(layout, quantizing.compute());
  WrittenLayer written = spell(writer, becomes);
  if (!written.ok()) return refused_layer(becomes, written);
  return PlannedWeight{.quantizing = std::move(quantizing),
                       .layout = *std::move(made),
                       .becomes = std::move(becomes),
                       .written = std::move(written)};
}

std::string_view usual_spelling(const QuantizeRecipe& recipe) {
  return recipe.scheme == "mxfp6-e3m2" ? "quark" : recipe.spelling;  // compressed-tensors has E2M3 alone
}

Result<const Spelling*> choose_spelling(std::span<const std::string> schemes, const QuantizeRequest& request) {
  std::string spelling = request.targets.spelling;
  if (spelling.empty() && request.to_gguf) spelling = "gguf";
  for (const std::string& scheme : schemes) {
    const QuantizeRecipe* recipe = find_quantize_recipe(scheme);
    if (recipe == nullptr) continue;  // the quantizer says so
    const std::string_view usual = usual_spelling(*recipe);
    if (spelling.empty()) spelling = find_writer(usual) ? usual : "compressed-tensors";
    const Spelling* const writer = find_writer(spelling);
    const bool is_of_gguf = writer != nullptr && writer->is_of_gguf;
    if (request.targets.spelling.empty() && spelling != usual && !is_of_gguf) {
      spelling = "compressed-tensors";  // it can mix most
      break;
    }
  }
  const Result<const Spelling*> writer = writer_named(spelling);
  if (!writer || (*writer)->is_of_gguf == request.to_gguf) return writer;
  if (!request.to_gguf) return no_gguf("these are layouts");
  return unsupported(fmt::format("GGUF has no layout of \"{}\"", spelling), "leave `spelling` out");
}

bool are_transposed_experts(const TensorInfo& tensor, std::span<const TensorInfo> tensors) {
  if (!are_unnamed_experts(tensor.name, tensor.shape.size())) return false;
  const std::string bias = tensor.name + "_bias";
  return std::ranges::any_of(tensors, [&](const TensorInfo& other) {
    return other.name == bias && other.shape.size() == 2 && other.shape.back() == tensor.shape.back();
  });
}

std::size_t add_weight(FoundLayers& found, std::span<const TensorInfo> tensors, std::size_t index) {
  const TensorInfo& tensor = tensors[index];
  Layer layer;
  layer.name = tensor.name;
  layer.shape = tensor.shape;
  layer.deviations.is_plain = true;
  layer.coding.transposed = are_transposed_experts(tensor, tensors);
  layer.parts.push_back({.role = PartRole::codes, .tensor = index});
  found.layers.push_back(std::move(layer));
  found.layer_of[index] = found.layers.size() - 1;
  return found.layers.size() - 1;
}

Result<Respelling> plan_quantizing(const FoundLayers& found, std::span<const ChosenWeight> chosen,
                                   std::span<const TensorInfo> tensors, const QuantizeRequest& request) {
  return QuantizingPlanner(found, chosen, tensors, request).run();
}

}  // namespace tensorcast::quantized
