// SPDX-License-Identifier: Apache-2.0
#include "quantized/rewrite/quantizing_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layer/hadamard.hpp"
#include "quantized/names/joined_modules.hpp"
#include "quantized/rewrite/target_options.hpp"

namespace tensorcast::quantized {
namespace {

class QuantizingPlanner {
 public:
  QuantizingPlanner(const FoundLayers& found, std::span<const ChosenWeight> chosen, std::span<const TensorInfo> tensors,
                    const QuantizeRequest& request)
      : found_(found), chosen_(chosen), tensors_(tensors), request_(request) {}

  Result<Respelling> run() {
    const bool was_checked = request_.targets.budget != 0.0;  // with the candidates
    TRY(was_checked ? Result<void>() : check_options());
    std::vector<std::string> schemes;
    for (const ChosenWeight& weight : chosen_) schemes.push_back(weight.scheme);
    writer_ = TRY(choose_spelling(schemes, request_));
    plan_.spelling = writer_->name;
    plan_.layers.resize(found_.layers.size());
    beside_mxfp4_ = std::ranges::find(schemes, "mxfp4") != schemes.end();
    for (const ChosenWeight& weight : chosen_) TRY(at_tensor(found_.layers[weight.layer].name, plan_layer(weight)));
    share_scales();
    warn_of_transposed_weights();
    plan_.config =
        describe_layers(*writer_, found_, tensors_, plan_, request_.writes, request_.architecture, WrittenModel{});
    return std::move(plan_);
  }

 private:
  // Options are for the schemes that have them; one must.
  [[nodiscard]] Result<void> check_options() const {
    const QuantizeTargets& targets = request_.targets;
    std::string known;
    bool has_recipe = targets.recipe.empty();
    std::vector<std::string_view> schemes;
    for (const ChosenWeight& weight : chosen_) {
      has_recipe = has_recipe || find_quantize_recipe(weight.scheme, targets.recipe) != nullptr;
      schemes.push_back(weight.scheme);
    }
    TRY(check_scheme_options(targets, schemes));
    if (has_recipe) return {};
    for (const QuantizeRecipe& row : quantize_recipes()) {
      if (row.scheme == chosen_.front().scheme) known += (known.empty() ? "" : ", ") + std::string(row.recipe);
    }
    return invalid(fmt::format("no recipe \"{}\" for {}; there are {}", targets.recipe, chosen_.front().scheme, known));
  }

  Result<void> plan_layer(const ChosenWeight& weight) {
    RespelledLayer& plan = plan_.layers[weight.layer];
    PlannedWeight planned =
        TRY(plan_weight(found_.layers[weight.layer], weight, tensors_, request_, *writer_, beside_mxfp4_));
    plan.writer = writer_;
    plan.becomes = std::move(planned.becomes);
    plan.recipe = planned.quantizer.layout().recipe->recipe;
    plan.choice = weight.choice;
    const bool is_scaled = planned.quantizer.needs_maximum();
    if (is_scaled) scaled_.push_back(weight.layer);
    plan.passes = is_scaled ? 2 : 1;
    plan.quantizing = std::move(planned.quantizing);
    plan.sources.assign(planned.written.tensors.size(), found_.layers[weight.layer].codes());
    return {};
  }

  // Loaders of these spellings join q, k and v, and gate and up, and have one tensor scale for the whole.
  void share_scales() {
    const bool joins = plan_.spelling == "compressed-tensors" || plan_.spelling == "modelopt";
    if (request_.targets.fuse == Fuse::never || !joins) return;
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
      if (layer.is_quantized() || layer.shape.size() != 2 || layer.shape[0] == layer.shape[1]) continue;
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
  std::span<const ChosenWeight> chosen_;
  std::span<const TensorInfo> tensors_;
  const QuantizeRequest& request_;
  const SpellingWriter* writer_ = nullptr;
  bool beside_mxfp4_ = false;        // as in LayerContent
  std::vector<std::size_t> scaled_;  // layers with a scale of the tensor
  Respelling plan_;
};

// Experts in one tensor of their module, "experts.down_proj", not in one of its weight.
bool are_unnamed_experts(const std::string& name, std::size_t rank) {
  return rank > 2 && tensor_kind(name, rank) == TensorKind::expert && !name.ends_with("weight");
}

// Why a spelling cannot have experts as they lie; a message that is empty: it can.
Error cannot_name(const Layer& layer, const std::string& scheme, const SpellingWriter& writer) {
  const bool transposed = is_stored_transposed(layer);
  const bool gpt_oss = writer.name == "gpt-oss", gguf = writer.name == "gguf";
  if (gguf || (!transposed && !are_unnamed_experts(layer.name, layer.shape.size())) || (transposed && gpt_oss))
    return {};
  Error error{.code = ErrorCode::unsupported, .tensor = layer.name};
  if (transposed) {
    error.message =
        fmt::format("its experts lie as [experts, inputs, outputs], which {} has no names for", writer.name);
    error.hint = scheme == "mxfp4" ? "`spelling` gpt-oss can; `exclude` leaves the tensor as it is"
                                   : "`to` mxfp4 with `spelling` gpt-oss can; `exclude` leaves the tensor as it is";
  } else {
    error.message = fmt::format(
        "its experts are in one tensor whose name does not end in \"weight\": {} has no name "
        "for their scales",
        writer.name);
    error.hint = "`exclude` leaves the tensor as it is";
  }
  return error;
}

// Groups of the default size, or smaller ones if only these divide the inputs: loaders take no shorter last group.
std::int64_t group_size_of(const Layer& layer) {
  for (const std::int64_t size : {64, 32}) {
    if (!layer.shape.empty() && layer.shape.back() % 128 != 0 && layer.shape.back() % size == 0) return size;
  }
  return 0;
}

// Names the spellings that can have what one refuses.
Error refused(const LayerContent& content, const WrittenLayer& written) {
  std::string others;
  for (const SpellingWriter& writer : all_writers()) {
    if (writer.name == "gguf" || !spell(writer, content).ok()) continue;
    others += (others.empty() ? "`spelling` " : " or ") + std::string(writer.name);
  }
  Error error{
      .code = ErrorCode::unsupported, .message = written.refusal, .hint = "`exclude` leaves the tensor as it is"};
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
  Error error{.code = ErrorCode::unsupported, .tensor = layer.name};
  if (!is_rotation_size(size) || size > max_rotated_columns) {
    error.message = fmt::format("`convrot` rotates groups of 4, 16, 64, 256, 1024 or {} inputs, not of {}",
                                max_rotated_columns, size);
  } else if (quantizing.scheme != "int8-channel") {
    error.message = fmt::format("`convrot` is of int8-channel, and the weight becomes {}", quantizing.scheme);
  } else if (layer.shape.empty() || layer.shape.back() % size != 0) {
    error.message =
        fmt::format("`convrot` rotates groups of {} inputs, and the inputs of a weight of {} are no multiple", size,
                    shape_text(layer.shape));
    error.hint = "a smaller group fits, or `exclude` leaves the weight";
  } else {
    error.message = "`convrot` rotates weights in their own type, and `compute_dtype` names another";
  }
  return error;
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

Result<void> QuantizeRequest::open_importance(const FoundLayers& found, std::span<const ChosenWeight> chosen) {
  if (targets.importance.empty() || chosen.empty()) return {};
  importance = std::make_shared<const ImportanceFile>(TRY(ImportanceFile::open(targets.importance)));
  const bool is_used = std::ranges::any_of(chosen, [&](const ChosenWeight& weight) {
    return !importance->find(found.layers[weight.layer].name).file.empty();
  });
  if (is_used) return {};
  return no_importance(targets.importance, found.layers[chosen[0].layer].name);
}

ImportanceEntry QuantizeRequest::importance_of(const std::string& weight) const {
  return importance == nullptr ? ImportanceEntry{} : importance->find(weight);
}

Result<PlannedWeight> plan_weight(const Layer& layer, const ChosenWeight& weight, std::span<const TensorInfo> tensors,
                                  const QuantizeRequest& request, const SpellingWriter& writer, bool beside_mxfp4) {
  const QuantizeTargets& targets = request.targets;
  const bool has_recipe = find_quantize_recipe(weight.scheme, targets.recipe) != nullptr;
  Quantizing quantizing{.scheme = weight.scheme,
                        .gguf = request.to_gguf,
                        .numbers = layer.is_quantized() ? DType::float32 : tensors[layer.codes()].dtype,
                        .options = options::options_for(targets, weight.scheme),
                        .importance = request.importance_of(layer.name)};
  QuantizeOptions& options = quantizing.options;
  if (!weight.recipe.empty() || !has_recipe) options.recipe = weight.recipe;
  if (weight.scheme == "int4-group" && options.group_size == 0) options.group_size = group_size_of(layer);
  if (Error error = cannot_name(layer, weight.scheme, writer); !error.message.empty()) return error;
  if (request.to_gguf && find_block_format(weight.scheme, "gguf") == nullptr) {
    return unsupported(fmt::format("GGUF has no {}", weight.scheme));
  }
  // As if the weight was converted to the type that models are trained in, and then quantized.
  if (layer.is_quantized() && targets.compute_dtype == DType::undefined) {
    options.compute_dtype = layer.coding.packing == Packing::gguf ? DType::float32 : DType::bfloat16;
  }
  const auto rotation = static_cast<std::int64_t>(targets.convrot);
  if (!can_rotate(rotation, quantizing, Shape(layer.shape))) return cannot_rotate(rotation, layer, quantizing);
  const Shape shape(shape_to_quantize(layer));
  Result<block::Quantizer> made = quantizer_of(quantizing, shape, request.importance.get());
  if (!made) {
    Error error = std::move(made).error();
    if (request.to_gguf && error.hint.empty()) error.hint = "`exclude` leaves the tensor as it is";
    return error;
  }
  block::Quantizer& quantizer = *made;
  if (!options.recipe.empty()) options.recipe = quantizer.layout().recipe->recipe;  // which outlives the request
  if (quantizer.layout().coding.gguf != tensorcast::GgufBlock::none && !request.to_gguf) {
    return no_gguf(fmt::format("{} is a layout", weight.scheme));
  }
  LayerContent becomes = content_of(quantizer.layout(), layer.name, !options.symmetric);
  becomes.beside_mxfp4 = beside_mxfp4;
  becomes.rotation = rotation;
  becomes.exact_scales = exact_scales_of(quantizer.layout(), quantizing.compute());
  WrittenLayer written = spell(writer, becomes);
  if (!written.ok()) return refused(becomes, written);
  return PlannedWeight{.quantizing = std::move(quantizing),
                       .quantizer = *std::move(made),
                       .becomes = std::move(becomes),
                       .written = std::move(written)};
}

std::string_view usual_spelling(const QuantizeRecipe& recipe) {
  return recipe.scheme == "mxfp6-e3m2" ? "quark" : recipe.spelling;  // compressed-tensors has E2M3 alone
}

Result<const SpellingWriter*> choose_spelling(std::span<const std::string> schemes, const QuantizeRequest& request) {
  std::string spelling = request.targets.spelling;
  if (spelling.empty() && request.to_gguf) spelling = "gguf";
  for (const std::string& scheme : schemes) {
    const QuantizeRecipe* recipe = find_quantize_recipe(scheme);
    if (recipe == nullptr) continue;  // the quantizer says so
    const std::string_view usual = usual_spelling(*recipe);
    if (spelling.empty()) spelling = find_writer(usual) ? usual : "compressed-tensors";
    if (request.targets.spelling.empty() && spelling != usual && spelling != "gguf") {
      spelling = "compressed-tensors";  // it can mix most
      break;
    }
  }
  const Result<const SpellingWriter*> writer = writer_named(spelling);
  if (!writer || ((*writer)->name == "gguf") == request.to_gguf) return writer;
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
  layer.coding.packing = Packing::numbers;
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
