// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/file_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "convert/plan/loader_limits.hpp"
#include "convert/plan/plan_checks.hpp"
#include "convert/plan/respelled_plan.hpp"
#include "convert/select/output_names.hpp"
#include "convert/select/pattern_list.hpp"
#include "convert/select/renamed_modules.hpp"
#include "convert/select/tensor_selection.hpp"
#include "dtype/dtype_table.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/system_calls.hpp"
#include "quantized/layer/layer_decoder.hpp"
#include "quantized/layer/quantized_tensors.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "quantized/rewrite/quantizing_plan.hpp"
#include "tensorcast/tensor.hpp"

namespace tensorcast::file_conversion {
namespace {

using formats::Format;
using formats::TensorInfo;

// Returns the name of an unnamed array: that of its file.
std::string name_from_path(const std::string& path) {
  if (io::names_descriptor(path)) return "array";  // a file without a name
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.substr(0, std::max<std::size_t>(file.find('.', 1), 1));
}

// Reports whether `include` extracts one tensor of many.
bool extracts(const ConvertRequest& request, const Format& input, const Format& output) {
  return input.many_tensors && !output.many_tensors && !request.include.empty();
}

Error not_quantized(const std::string& tensor) {
  return of_tensor(tensor, unsupported("it cannot be quantized here, only in files and folders of tensors with names"));
}

// `tensors` is the number of tensors to write.
Result<void> check_count(const Format& output, std::size_t tensors, bool extracting) {
  if (output.many_tensors || tensors == 1) return {};
  if (extracting) {
    return unsupported(fmt::format("{} holds exactly one array, and `include` matches {}", output.name, tensors),
                       "`tcast inspect` lists the names; a pattern such as '^name$' matches one");
  }
  std::vector<std::string_view> names;
  for (const Format* format : formats::all_formats()) {
    if (format->many_tensors && format->create != nullptr) names.push_back(format->name);
  }
  return unsupported(fmt::format("{} holds exactly one array, and the input has {}", output.name, tensors),
                     fmt::format("{} can; `include` takes one out", fmt::join(names, ", ")));
}

Result<PlannedTensor> plan_tensor(const TensorInfo& source, Decision decision) {
  PlannedTensor planned{.target = source,
                        .from = source.dtype,
                        .bytes_in = source.bytes,
                        .reason = std::move(decision.reason),
                        .left = decision.left};
  if (decision.to == DType::undefined || (decision.to == source.dtype && decision.scale == 1.0)) return planned;
  planned.fate = Converted{.scale = decision.scale};
  planned.target.dtype = decision.to;
  planned.target.bytes = decision.to == DType::string ? 0 : storage_bytes(decision.to, source.count);
  if (planned.target.bytes == std::numeric_limits<std::size_t>::max()) {
    return of_tensor(source.name, out_of_range(fmt::format("{} elements of {} have more bytes than can be counted",
                                                           source.count, name(decision.to))));
  }
  return planned;
}

class Planner final : public TensorPlanner {
 public:
  Planner(const ConvertRequest& request, const Format& input_format, const Format& output_format, Selection selection,
          OutputNames written)
      : request_(request),
        input_(input_format),
        output_(output_format),
        extracting_(extracts(request, input_format, output_format)),
        selection_(std::move(selection)),
        written_(std::move(written)) {}

  [[nodiscard]] Result<void> check_patterns() const {
    const bool has_type = selection_.has_target();
    const bool has_patterns = !request_.include.empty() || !request_.exclude.empty();
    if (!has_type && has_patterns && !extracting_) {
      return invalid("there is no type to convert to",
                     "`to` names one for floating-point tensors, rules name one for tensors whose name matches");
    }
    return {};
  }

  Result<void> plan(ModelToPlan& model, const std::function<void(PlannedTensor)>& add) override {
    const std::span<const TensorInfo> tensors = model.tensors;
    const quantized::FoundLayers& layers = model.layers;
    const quantized::Respelling& respelling = model.respelling;
    names_.clear();
    is_alone_ = tensors.size() == 1;
    if (!written_.keeps_all()) {
      for (const TensorInfo& tensor : tensors) names_.insert(tensor.name);
    }
    architecture_ = quantized::ModelArchitecture::of(model.texts);
    std::optional<Decisions> decided = TRY(change_layers(model));
    Decisions decisions = decided ? *std::move(decided) : TRY(decide_all(tensors, layers));
    const std::vector<QuantizedPart> quantized = find_quantized(tensors, model.claim);
    Renamed renamed;
    std::vector<std::size_t> copied_codes;  // that nothing describes
    std::vector<PlannedTensor> plan;        // of one tensor of the input
    for (std::size_t index = 0; index <= tensors.size(); ++index) {
      TRY(rename(plan, renamed));
      for (PlannedTensor& planned : plan) add(std::move(planned));
      planned_ += plan.size();
      plan.clear();
      if (index == tensors.size()) break;
      const std::optional<std::size_t> layer = layers.any() ? layers.layer_of[index] : std::nullopt;
      // Layers that do not change are as if nothing was respelled.
      if (layer && respelling.any() && respelling.layers[*layer].changes()) {
        if (!written_.writes(layers.layers[*layer].name)) continue;
        TRY(plan_respelled(tensors, index, layers.layers[*layer], *layer, respelling, output_, plan));
        continue;
      }
      const Decision unfit = unfit_decision(layer, respelling);
      if (const Decision* of_layer = unfit.left ? &unfit : decisions.of_layer(layer)) {
        if (of_layer->quantizes()) return not_quantized(layers.layers[*layer].name);
        if (!layers.layers[*layer].is_quantized()) {
          plan.push_back(TRY(plan_one(tensors[index], *of_layer)));
          plan.back().source = index;
          continue;
        }
        TRY(plan_layer(tensors, index, layers.layers[*layer], *layer, *of_layer, plan));
        continue;
      }
      if (!written_.writes(tensors[index].name)) continue;
      Decision decision = TRY(std::move(*decisions.tensors[index]));
      if (decision.quantizes()) return not_quantized(tensors[index].name);
      if (extracting_ && !decision.included) continue;
      if (!decision.included && leaves_out(tensors[index], model.warnings)) continue;
      PlannedTensor planned = TRY(plan_one(tensors[index], std::move(decision)));
      planned.source = index;
      planned.quantized = quantized[index].role != QuantizedRole::none;
      TRY(leave_quantized(planned, tensors, quantized, model.claim, layers));
      const bool are_codes = quantized[index].role == QuantizedRole::codes && !request_.raw_codes;
      if (are_codes && planned.reason.why == TypeReason::not_floating && !layer) copied_codes.push_back(index);
      plan.push_back(std::move(planned));
    }
    if (std::string warning = warning_of_mx_codes(tensors, quantized, copied_codes); !warning.empty()) {
      model.warnings.push_back(std::move(warning));
    }
    return check_names_differ(renamed.before, renamed.after);
  }

  [[nodiscard]] Result<void> check_all_planned() const override {
    TRY(selection_.check_all_matched());
    TRY(written_.check_all_matched());
    return check_count(output_, planned_, extracting_);
  }

  Result<formats::Metadata> metadata_of(const formats::Metadata& inputs, const NewDescription& description) override {
    formats::Metadata metadata = TRY(written_.metadata_of(inputs, names_));
    if (description.replaces) remove_config_texts(metadata);
    const quantized::WrittenConfig* const config = description.written;
    // Loaders of folders read config.json alone, unless the spelling has a key of its own in the files.
    if (config != nullptr && (!description.is_beside || !config->metadata_key.empty())) {
      add_config_text(*config, metadata);
    }
    return metadata;
  }

 private:
  [[nodiscard]] bool to_gguf() const noexcept { return output_.name == std::string_view("gguf"); }

  // What the request asks for each layer, and each tensor that is of none.
  struct Decisions {
    std::vector<std::optional<Decision>> layers;
    std::vector<std::optional<Result<Decision>>> tensors;  // an error matters if the tensor is written

    // Null: there is none.
    [[nodiscard]] const Decision* of_layer(std::optional<std::size_t> layer) const {
      return layer && *layer < layers.size() && layers[*layer] ? &*layers[*layer] : nullptr;
    }
  };

  // Plans the layers that get another spelling, or are quantized. Returns what was decided for the latter.
  Result<std::optional<Decisions>> change_layers(ModelToPlan& model) {
    if (model.reader == nullptr) return std::optional<Decisions>();
    if (!request_.respell.empty()) TRY(respell(model));
    if (!selection_.quantizes()) return std::optional<Decisions>();
    return std::optional(TRY(quantize(model)));
  }

  Result<void> respell(ModelToPlan& model) {
    const auto writes = [this](const std::string& name) { return written_.writes(name); };
    model.respelling =
        TRY(quantized::plan_respelling(model.layers, model.texts, *model.reader,
                                       {.spelling = request_.respell, .exact = request_.exact, .writes = writes}));
    LoaderLimits limits(request_, model.respelling.spelling, architecture_);
    return limits.check(model.respelling, model.layers, model.tensors, writes);
  }

  // Weights that are quantized become layers.
  Result<Decisions> quantize(ModelToPlan& model) {
    quantized::FoundLayers& layers = model.layers;
    Decisions decisions = TRY(decide_all(model.tensors, layers));
    quantized::QuantizeRequest wanted{.targets = request_,
                                      .to_gguf = to_gguf(),
                                      .writes = [this](const std::string& name) { return written_.writes(name); },
                                      .architecture = architecture_};
    const bool is_free = request_.budget != 0.0 && wanted.targets.spelling.empty() && !to_gguf();
    if (is_free) wanted.targets.spelling = "compressed-tensors";
    const auto writer = choose_spelling(schemes_of(decisions), wanted);  // plan_quantizing() tells its error
    LoaderLimits limits(request_, writer ? (*writer)->name : "", architecture_);
    TRY(respect_loaders(model.tensors, layers, decisions, limits));
    std::vector<quantized::ChosenWeight> chosen = TRY(choose_weights(model.tensors, decisions, layers));
    if (chosen.empty()) {
      model.not_quantized = limits.first_left().message.empty() ? why_none_chosen(model.tensors) : limits.first_left();
      return decisions;
    }
    std::vector<std::string> names;
    for (const quantized::ChosenWeight& weight : chosen) names.push_back(layers.layers[weight.layer].name);
    wanted.importance = TRY(quantized::open_importance(wanted.targets.importance, names));
    if (request_.budget != 0.0) {
      wanted.why_not_loaded = [&](const quantized::Layer& layer, std::string_view scheme) {
        return limits.why_not(quantized::loaded_weight(layer, scheme));
      };
      TRY(choose_within_budget(chosen, layers, *model.reader, wanted, request_, model.memory));
      for (const quantized::ChosenWeight& weight : chosen) {
        if (!weight.choice.empty()) limits.warn(quantized::loaded_weight(layers.layers[weight.layer], weight.scheme));
      }
    }
    model.respelling = TRY(quantized::plan_quantizing(layers, chosen, model.tensors, wanted));
    for (std::string& warning : limits.warnings()) model.respelling.warnings.push_back(std::move(warning));
    return decisions;
  }

  [[nodiscard]] static std::vector<std::string> schemes_of(const Decisions& decisions) {
    std::vector<std::string> schemes;
    for (const auto& each : decisions.layers) schemes.push_back(each ? each->scheme : "");
    for (const auto& each : decisions.tensors) schemes.push_back(each && *each ? (*each)->scheme : "");
    return schemes;
  }

  Result<Decisions> decide_all(std::span<const TensorInfo> tensors, const quantized::FoundLayers& layers) {
    std::vector<std::optional<Decision>> of_layers = TRY(decide_layers(tensors, layers));
    Decisions all{.layers = std::move(of_layers), .tensors = {}};
    all.tensors.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (layers.any() && all.of_layer(layers.layer_of[i]) != nullptr) continue;
      auto& decision = all.tensors[i].emplace(selection_.decide(tensors[i], is_optimizer_state(tensors[i])));
      if (decision) keep_float32(tensors[i], *decision);
    }
    return all;
  }

  // `left` if a weight stays as it is because it cannot have its scheme.
  static Decision unfit_decision(std::optional<std::size_t> layer, const quantized::Respelling& respelling) {
    const auto why = layer ? respelling.unfit.find(*layer) : respelling.unfit.end();
    if (why == respelling.unfit.end()) return {};
    return {.reason = {TypeReason::unfit, 0, why->second}, .left = true};
  }

  // Leaves float32 to tensors that the model keeps in it, unless a rule names them.
  void keep_float32(const TensorInfo& tensor, Decision& decision) const {
    if (decision.reason.why != TypeReason::to || bit_width(tensor.dtype) < bit_width(DType::float32)) return;
    const std::string_view keeper = architecture_.keeps_float32(tensor.name, decision.to);
    if (keeper.empty()) return;
    decision.to = DType::float32;
    decision.reason = {TypeReason::kept_float32, 0, std::string(keeper)};
  }

  // Leaves weights that loaders of the layout would not take.
  Result<void> respect_loaders(std::span<const TensorInfo> tensors, const quantized::FoundLayers& layers,
                               Decisions& decisions, LoaderLimits& limits) {
    for (std::size_t i = 0; i < decisions.layers.size(); ++i) {
      if (!decisions.layers[i] || !written_.writes(layers.layers[i].name)) continue;
      const quantized::Layer& layer = layers.layers[i];
      TRY(limits.apply(quantized::decoded_info(layer), {.is_transposed = layer.is_transposed()}, true,
                       *decisions.layers[i]));
    }
    const auto is_fused = [&](const TensorInfo& tensor) { return quantized::are_transposed_experts(tensor, tensors); };
    const bool has_fused = std::ranges::any_of(tensors, is_fused);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      std::optional<Result<Decision>>& decision = decisions.tensors[i];
      if (!decision || !*decision || !written_.writes(tensors[i].name)) continue;
      const quantized::LoadedWeight weight{.is_transposed = is_fused(tensors[i]), .beside_fused_experts = has_fused};
      TRY(limits.apply(tensors[i], weight, false, **decision));
    }
    return {};
  }

  // Chooses the weights that are quantized, and makes plain ones layers.
  Result<std::vector<quantized::ChosenWeight>> choose_weights(std::span<const TensorInfo> tensors,
                                                              const Decisions& decisions,
                                                              quantized::FoundLayers& layers) {
    std::vector<quantized::ChosenWeight> chosen;
    std::string kept;  // a layer that stays in its spelling
    for (std::size_t i = 0; i < layers.layers.size(); ++i) {
      const Decision* decision = decisions.of_layer(i);
      if (decision == nullptr || !written_.writes(layers.layers[i].name)) continue;
      if (decision->quantizes()) chosen.push_back({i, decision->scheme, decision->recipe});
      if (!decision->changes()) kept = layers.layers[i].name;
    }
    layers.layer_of.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (layers.layer_of[i] || !written_.writes(tensors[i].name)) continue;
      const Result<Decision>& decision = *decisions.tensors[i];
      if (!decision) return decision.error();
      if (decision->quantizes()) {
        chosen.push_back({add_weight(layers, tensors, i), decision->scheme, decision->recipe});
      }
    }
    if (!chosen.empty() && !kept.empty() && !to_gguf()) {
      return of_tensor(kept, unsupported("it is quantized and would stay as it is, while others get another scheme, "
                                         "and a model's configuration has one spelling",
                                         "a rule can make it bfloat16; `drop` leaves it out"));
    }
    return chosen;
  }

  Error why_none_chosen(std::span<const TensorInfo> tensors) {
    for (const TensorInfo& tensor : tensors) {
      if (tensor.problem != nullptr && written_.writes(tensor.name)) return *tensor.problem;
    }
    return invalid("no tensor is a weight that can be quantized",
                   "a rule such as '.*=nvfp4' names tensors whatever their kind; `tcast inspect` lists them");
  }

  // Decides for the weight of each layer, whose tensors then follow it. Layers are left to their names and types if
  // codes are converted as numbers, or nothing is.
  Result<std::vector<std::optional<Decision>>> decide_layers(std::span<const TensorInfo> tensors,
                                                             const quantized::FoundLayers& layers) {
    std::vector<std::optional<Decision>> decisions(layers.layers.size());
    if (request_.raw_codes || !selection_.has_target() || extracting_) return decisions;
    for (std::size_t i = 0; i < layers.layers.size(); ++i) {
      const quantized::Layer& layer = layers.layers[i];
      if (!layer.is_quantized()) continue;  // a weight that was chosen
      TensorInfo weight = quantized::decoded_info(layer);
      Decision decision = TRY(selection_.decide(weight, false));
      keep_float32(weight, decision);
      // A pattern may name the tensors that are there.
      for (const quantized::Part& part : layer.parts) {
        if (selection_.excludes(tensors[part.tensor].name))
          decision = {.reason = {TypeReason::excluded}, .included = false};
      }
      if (decision.changes() && !layer.problem.empty()) {
        return of_tensor(layer.problem_tensor,
                         unsupported(layer.problem, fmt::format("`exclude` '{}' leaves this kind of layer as it is",
                                                                pattern_of_layer(layer.name))));
      }
      decisions[i] = std::move(decision);
    }
    return decisions;
  }

  // Plans one tensor of a layer: at its codes, the weight; or each of its tensors as it is.
  Result<void> plan_layer(std::span<const TensorInfo> tensors, std::size_t index, const quantized::Layer& layer,
                          std::size_t place, const Decision& decision, std::vector<PlannedTensor>& plan) {
    if (!written_.writes(layer.name)) return {};
    if (decision.to != DType::undefined) {
      if (index != layer.codes()) return {};
      PlannedTensor planned = TRY(plan_one(quantized::decoded_info(layer), decision));
      if (!planned.left) {
        planned.fate = Decoded{
            .layer = place, .scheme = fmt::format("{} {}", layer.spelling, layer.scheme), .scale = planned.scale()};
        planned.source = index;
        planned.quantized = true;
        planned.bytes_in = 0;
        for (const quantized::Part& part : layer.parts) planned.bytes_in += tensors[part.tensor].bytes;
        plan.push_back(std::move(planned));
        return {};
      }
      return of_tensor(layer.name, unsupported(planned.reason.text()));
    }
    PlannedTensor planned = TRY(plan_one(tensors[index], {.reason = decision.reason, .left = decision.left}));
    planned.source = index;
    planned.quantized = true;
    planned.fate = Copied{.layer = place};
    plan.push_back(std::move(planned));
    return {};
  }

  // Names of all tensors, if some are renamed.
  struct Renamed {
    std::vector<std::string> before, after;
  };

  Result<void> rename(std::vector<PlannedTensor>& plan, Renamed& renamed) {
    if (request_.filter.rename.empty()) return {};
    for (PlannedTensor& tensor : plan) {
      std::string name = TRY(written_.new_name(tensor.target.name));
      renamed.before.push_back(tensor.target.name);
      renamed.after.push_back(name);
      if (name == tensor.target.name || !output_.named_tensors) continue;
      tensor.source_name = std::exchange(tensor.target.name, std::move(name));
    }
    return {};
  }

  // What cannot be read, or has a type that the output cannot hold and casts do not know, is left out of the output if
  // it is not asked for.
  bool leaves_out(const TensorInfo& tensor, std::vector<std::string>& warnings) const {
    std::string reason;
    if (tensor.problem) {
      reason = "it cannot be read: " + tensor.problem->message;
    } else if (const Result<void> held = check_holds(output_, input_, tensor); !held && !tensor.foreign_dtype.empty()) {
      reason = held.error().message;
    } else {
      return false;
    }
    warnings.push_back(fmt::format("tensor \"{}\" is not asked for and not written: {}", tensor.name, reason));
    return true;
  }

  Result<PlannedTensor> plan_one(const TensorInfo& source, Decision decision) {
    if (source.problem) return *source.problem;
    if (output_.demanded_type != nullptr && decision.reason.why == TypeReason::to && output_.can_hold(request_.to)) {
      if (const DType demanded = output_.demanded_type(source); demanded != DType::undefined) {
        decision.reason = {TypeReason::demanded, 0, fmt::format("{} in {}", name(demanded), output_.name)};
        decision.to = demanded;
      }
    }
    PlannedTensor planned = TRY(plan_tensor(source, std::move(decision)));
    TensorInfo& target = planned.target;
    if (planned.casts()) TRY(check_options(source, planned));
    if (planned.casts() && output_.objection != nullptr && !request_.allow_odd) {
      if (std::string objection = output_.objection(target); !objection.empty()) {
        target = source;
        planned.fate = Copied{};
        planned.left = true;
        planned.reason = {TypeReason::unaligned, 0, std::move(objection)};
      }
    }
    TRY(check_holds(output_, input_, target));
    // "" may be one of the keys of a dict.
    if (output_.named_tensors && target.name.empty() && is_alone_) target.name = name_from_path(request_.input);
    return planned;
  }

  // Scales are not applied, so codes and what decodes them must stay as they are. With `raw_codes` the codes alone are
  // converted, unless a configuration would then be wrong.
  Result<void> leave_quantized(PlannedTensor& planned, std::span<const TensorInfo> tensors,
                               std::span<const QuantizedPart> parts, const std::string& claim,
                               const quantized::FoundLayers& layers) const {
    const TensorInfo& source = tensors[planned.source];
    const QuantizedPart& part = parts[planned.source];
    const bool in_layer = layers.any() && layers.layer_of[planned.source];
    if (planned.reason.why == TypeReason::not_floating && !claim.empty() && !in_layer && layers.refusal.empty() &&
        !request_.raw_codes && is_weight_of_integers(source)) {
      return of_tensor(
          source.name,
          parse_error(fmt::format("{}, and these codes have no scales", claim),
                      "the scales are missing or are of another type; `exclude` leaves the codes as they are"));
    }
    if (!planned.casts() || part.role == QuantizedRole::none) return {};
    if (request_.raw_codes && part.role == QuantizedRole::codes) return {};
    if (part.guessed && planned.reason.why == TypeReason::rule) return {};
    // Such as the scales of a cache of keys and values, which belong to no weight.
    const bool beside = layers.any() && !in_layer;
    if (part.role == QuantizedRole::decoder && (request_.raw_codes || beside) && planned.reason.why == TypeReason::to) {
      planned.target = source;
      planned.fate = Copied{};
      planned.reason = {TypeReason::decodes_codes};
      return {};
    }
    std::string message;
    if (part.role == QuantizedRole::decoder) {
      const std::string codes = part.partner.empty() ? "quantized weights" : fmt::format("\"{}\"", part.partner);
      message = fmt::format("it decodes the codes of {}, and rounding it would damage them", codes);
    } else if (part.partner.empty()) {
      message = fmt::format("its values are codes{}, and quantized tensors are not decoded",
                            claim.empty() ? std::string() : ": " + claim);
    } else {
      message = fmt::format("its values are codes that \"{}\" scales, and scales are not applied", part.partner);
    }
    std::string hint =
        fmt::format("`exclude` '{}' leaves what is quantized as it is", pattern_of_quantized(tensors, parts));
    if (!layers.refusal.empty()) message = layers.refusal;
    hint += "; `raw_codes` converts the codes alone";
    return of_tensor(source.name, unsupported(std::move(message), std::move(hint)));
  }

  Result<void> check_options(const TensorInfo& source, const PlannedTensor& planned) {
    const DType to = planned.target.dtype;
    if (!checked_.emplace(source.dtype, to, planned.scale()).second) return {};
    return of_tensor(source.name, check_pair(source.dtype, to, options_of(request_, planned)));
  }

  const ConvertRequest& request_;
  const Format& input_;
  const Format& output_;
  bool extracting_;
  bool is_alone_ = true;     // the input has one tensor
  std::size_t planned_ = 0;  // tensors of the output
  Selection selection_;
  OutputNames written_;
  quantized::ModelArchitecture architecture_;           // of the model that was planned last
  std::unordered_set<std::string> names_;               // of all its tensors, if they matter
  std::set<std::tuple<DType, DType, double>> checked_;  // types and scales
};

// The metadata of a single file are not rewritten.
Result<void> check_names_in_metadata(const Plan& plan) {
  std::vector<quantized::ConfigText> texts;
  std::vector<std::pair<std::string, std::string>> names;
  add_config_texts(plan.metadata, texts);
  for (const PlannedTensor& tensor : plan.tensors) names.emplace_back(tensor.name(), tensor.target.name);
  const NewEntries entries = TRY(new_entries(texts, names));
  if (entries.empty()) return {};
  return unsupported(
      fmt::format("the file's metadata name the module \"{}\" as quantized or not, and `rename` does not "
                  "rename it there",
                  entries.begin()->first),
      "put the file into a folder and convert the folder, whose metadata follow");
}

// The description in a file's metadata goes once what it describes is decoded, so layers that stay could not be found.
Result<void> check_layers_described(std::span<const PlannedTensor> tensors, const formats::Metadata& metadata) {
  if (!std::ranges::any_of(tensors, &PlannedTensor::decodes)) return {};
  const auto found = std::ranges::find_if(tensors, &PlannedTensor::in_layer);
  formats::Metadata others = metadata;
  remove_config_texts(others);
  if (found == tensors.end() || others.size() == metadata.size()) return {};
  return of_tensor(found->name(), unsupported("some layers would be decoded and some not, as this one, and the file's "
                                              "metadata describe all of them as quantized",
                                              "decode all of them, or none"));
}

}  // namespace

Result<std::unique_ptr<TensorPlanner>> TensorPlanner::create(const ConvertRequest& request, const Format& input_format,
                                                             const Format& output_format) {
  TRY(check_request(request));
  Selection selection = TRY(Selection::compile(request, input_format));
  OutputNames written = TRY(OutputNames::compile(request.filter));
  auto planner =
      std::make_unique<Planner>(request, input_format, output_format, std::move(selection), std::move(written));
  TRY(planner->check_patterns());
  return std::unique_ptr<TensorPlanner>(std::move(planner));
}

Result<std::vector<PlannedTensor>> TensorPlanner::plan(ModelToPlan& model) {
  std::vector<PlannedTensor> tensors;
  tensors.reserve(model.tensors.size());
  TRY(plan(model, [&](PlannedTensor planned) { tensors.push_back(std::move(planned)); }));
  return tensors;
}

ModelToPlan model_of(const OpenedInput& input) {
  return {.tensors = input.reader->tensors(),
          .reader = input.reader.get(),
          .claim = input.claim,
          .texts = input.configs,
          .layers = layers_of(input)};
}

Result<Plan> make_plan(const ConvertRequest& request, const OpenedInput& input, const Format& output_format) {
  const auto planner = TRY(TensorPlanner::create(request, *input.format, output_format));
  ModelToPlan model = model_of(input);
  Plan plan{.tensors = TRY(planner->plan(model)), .layout = {}};
  if (model.not_quantized) return *std::move(model.not_quantized);
  TRY(planner->check_all_planned());
  plan.layout = TRY(layout_of(output_format, plan.tensors));
  const bool is_respelled = model.respelling.any();
  if (!is_respelled) TRY(check_layers_described(plan.tensors, input.reader->metadata()));
  const bool replaces = is_respelled || std::ranges::any_of(plan.tensors, &PlannedTensor::decodes);
  plan.metadata = TRY(planner->metadata_of(
      input.reader->metadata(), {.replaces = replaces, .written = is_respelled ? &model.respelling.config : nullptr}));
  if (!request.filter.rename.empty()) TRY(check_names_in_metadata(plan));
  plan.warnings = std::move(model.warnings);
  plan.respelling = std::move(model.respelling);
  plan.layers = std::move(model.layers.layers);
  return plan;
}

}  // namespace tensorcast::file_conversion
