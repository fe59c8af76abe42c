// SPDX-License-Identifier: Apache-2.0
// AMD Quark's MX formats: weight, weight_scale of E8M0 bytes. The configuration names the elements, of a module or all.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "quantized/layout/config.hpp"
#include "quantized/layout/known_keys.hpp"
#include "quantized/layout/stored_scheme.hpp"
#include "quantized/names/pattern_set.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::quantized {
namespace {

constexpr auto weight_keys = joined(
    keys_of<"dtype qscheme scale_format">(KeyType::text), keys_of<"group_size">(KeyType::integer),
    keys_of<"ch_axis symmetric is_dynamic observer_cls round_method scale_type scale_calculation_mode is_scale_quant "
            "mx_element_dtype qat_spec zero_point_type block_size percentile enable_int4">(KeyType::any));
// Of weights that are decoded.
constexpr auto decoded_weight_keys =
    joined(keys_with_only<"ch_axis">(KeyType::integer, "-1"), keys_with_only<"symmetric">(KeyType::flag, "true"),
           keys_with_only<"is_dynamic is_scale_quant enable_int4">(KeyType::flag, "false"), all_other_keys);
constexpr auto spec_keys =
    joined(keys_of<"input_tensors output_tensors bias target_device">(KeyType::any),
           std::to_array<KnownKey>({{.name = "weight", .type = KeyType::object, .members = weight_keys}}));
constexpr auto export_keys = joined(keys_of<"kv_cache_group min_kv_scale weight_merge_groups">(KeyType::any),
                                    keys_with_only<"pack_method">(KeyType::text, "order reorder"),
                                    keys_with_only<"weight_format">(KeyType::text, "real_quantized"));
constexpr auto keys_of_quark = joined(
    keys_of<"algo_config quant_mode softmax_quant_spec kv_cache_quant_config kv_cache_group kv_cache_post_rope "
            "min_kv_scale pack_method weight_format weight_merge_groups version log_severity_level">(KeyType::any),
    std::to_array<KnownKey>(
        {{.name = "export", .type = KeyType::object, .members = export_keys},
         {.name = "global_quant_config", .type = KeyType::object, .decides = true, .members = spec_keys},
         {.name = "layer_quant_config", .type = KeyType::groups, .decides = true, .members = spec_keys},
         {.name = "layer_type_quant_config", .type = KeyType::groups, .decides = true, .members = spec_keys}}));

// The configuration calls a scheme by its element.
constexpr StoredScheme stored_by_quark[] = {
    {.scheme = "mxfp4", .word = "fp4", .coding = mx_coding(DType::float4_e2m1fn, 4)},
    {.scheme = "mxfp6", .word = "fp6_e2m3", .coding = mx_coding(DType::float6_e2m3fn, 6)},
    {.scheme = "mxfp6-e3m2", .word = "fp6_e3m2", .coding = mx_coding(DType::float6_e3m2fn, 6)}};

// What the configuration says of weights: of all, or of the modules that a glob names.
class WeightSpecs {
 public:
  explicit WeightSpecs(const Json& section) {
    if (const Json* all = object_in(section, "global_quant_config")) all_ = weights_in(*all);
    if (const Json* classes = object_in(section, "layer_type_quant_config")) {
      for (const auto& [name, spec] : classes->items()) of_classes_.emplace_back(lower_case(name), weights_in(spec));
    }
    const Json* own = object_in(section, "layer_quant_config");
    if (own == nullptr) return;
    std::vector<std::string> patterns;
    for (const auto& [glob, spec] : own->items()) {
      patterns.push_back(pattern_of_glob(glob));
      own_.push_back(weights_in(spec));
    }
    globs_ = PatternSet(std::move(patterns));
  }

  // A module's own words come before those for its class: "nn.Linear", "nn.Embedding". Errors: unsupported: globs that
  // match it say different things, or a class that may be its own does.
  [[nodiscard]] Result<const Json*> of(const std::string& module) const {
    const std::vector<std::size_t> matching = globs_.find_all(module);
    if (matching.empty()) return of_class(module);
    const Json& first = own_[matching.front()];
    const bool same = std::ranges::all_of(matching, [&](std::size_t glob) { return own_[glob] == first; });
    if (same) return &first;
    return unsupported("has patterns of layer_quant_config that match it and differ");
  }

 private:
  [[nodiscard]] Result<const Json*> of_class(const std::string& module) const {
    const bool embeds = tensor_kind(module + ".weight", 2) == TensorKind::embedding;
    const std::string_view own_class = embeds ? "embedding" : "linear", other = embeds ? "linear" : "embedding";
    const Json* found = &all_;
    for (const auto& [name, spec] : of_classes_) {
      if (name.find(own_class) != std::string::npos) found = &spec;
    }
    for (const auto& [name, spec] : of_classes_) {
      if (name.find(other) != std::string::npos || spec == *found) continue;
      return unsupported(
          fmt::format("has weights of the class \"{}\" in layer_type_quant_config, which may be its own", name));
    }
    return found;
  }

  static Json weights_in(const Json& spec) {
    const Json* weights = spec.is_object() ? object_in(spec, "weight") : nullptr;
    return weights == nullptr ? Json::object() : *weights;
  }

  Json all_ = Json::object();
  PatternSet globs_;
  std::vector<Json> own_;
  std::vector<std::pair<std::string, Json>> of_classes_;
};

// Weights that were rotated while the model ran are not undone by decoding.
bool is_rotated(const Json& section) {
  const auto found = section.find("algo_config");
  if (found == section.end() || !found->is_structured()) return false;
  const std::string text = lower_case(found->dump(-1, ' ', true, Json::error_handler_t::replace));
  return text.find("rotation") != std::string::npos || text.find("quarot") != std::string::npos;
}

void complete_quark(const ModelTensors& tensors, const Json& spec, std::size_t scales, const Description& description,
                    LayerBuilder& builder) {
  std::string problem = key_problem(spec, decoded_weight_keys, description.source, tensors.accepted());
  if (!problem.empty()) builder.fail(std::move(problem));
  const std::string dtype = text_in(spec, "dtype");
  const StoredScheme* const stored = find_row(stored_by_quark, &StoredScheme::word, dtype);
  builder.layer().scheme = stored == nullptr ? dtype.empty() ? "Quark's" : dtype : std::string(stored->scheme);
  if (stored == nullptr || text_in(spec, "qscheme") != "per_group" || size_in(spec, "group_size") != stored->block() ||
      text_in(spec, "scale_format") != "e8m0") {
    return builder.fail(fmt::format(
        "{} names another scheme of Quark than MXFP4 and MXFP6, and these alone are decoded", description.source));
  }
  read_as(*stored, builder);
  builder.check_scales(scales, true, description.source);
}

void find_quark(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const WeightSpecs specs(description->section);
  const bool rotated = is_rotated(description->section) && !is_accepted(tensors.accepted(), "algo_config");
  for (const auto& [i, codes, module] : tensors.scaled_modules("weight_scale")) {
    LayerBuilder builder(tensors, "quark", tensor_of(module, "weight"), codes, i);
    if (const Result<const Json*> spec = specs.of(module)) {
      complete_quark(tensors, **spec, i, *description, builder);
    } else {
      builder.layer().scheme = "Quark's";
      builder.fail(fmt::format("{} {}", description->source, spec.error().message));
    }
    if (rotated) {
      builder.fail(fmt::format("{} has an algo_config that rotates weights, which is not undone; {}",
                               description->source, accept_hint("algo_config")));
    }
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

Json spec_of(const Layer& layer, bool dynamic) {
  return {{"dtype", find_row(stored_by_quark, &StoredScheme::scheme, layer.scheme)->word},
          {"is_dynamic", dynamic},
          {"qscheme", "per_group"},
          {"ch_axis", -1},
          {"group_size", 32},
          {"symmetric", nullptr},
          {"scale_format", "e8m0"},
          {"scale_calculation_mode", "even"},
          {"scale_type", "float"},
          {"round_method", "half_even"},
          {"mx_element_dtype", nullptr}};
}

// vLLM rounds the activations of such layers to the elements, too: it has no layers of MX weights alone.
Json specs_of(const Layer& layer) {
  return {{"weight", spec_of(layer, false)},
          {"input_tensors", spec_of(layer, true)},
          {"output_tensors", nullptr},
          {"bias", nullptr}};
}

void spell_quark(const LayerContent& content, WrittenLayer& written) {
  const StoredScheme* const stored = find_stored(stored_by_quark, content);
  if (stored == nullptr) return refuse_scheme(content, written, "mxfp4, mxfp6 and mxfp6-e3m2");
  spell_as(*stored, content, written);
}

void describe_quark(const WrittenModel& model, WrittenConfig& config) {
  const Layer& first = model.layers.front();
  Json own = Json::object();
  for (const Layer& layer : model.layers) {
    if (layer.scheme != first.scheme) own[module_of(layer.name)] = specs_of(layer);
  }
  const Json section = {{"quant_method", "quark"},
                        {"quant_mode", "eager_mode"},
                        {"global_quant_config", specs_of(first)},
                        {"layer_quant_config", std::move(own)},
                        {"layer_type_quant_config", Json::object()},
                        {"exclude", model.unquantized},
                        {"algo_config", nullptr},
                        {"export",
                         {{"kv_cache_group", Json::array()},
                          {"pack_method", "order"},
                          {"weight_format", "real_quantized"},
                          {"weight_merge_groups", nullptr}}}};
  config.section = section.dump();
}

}  // namespace

constinit const Spelling layouts::quark = {
    .name = "quark",
    .methods = {{.name = "quark", .list = "exclude", .rest_is_quantized = true}},
    .keys = keys_of_quark,
    .find = find_quark,
    .spell = spell_quark,
    .describe = describe_quark,
    .activations = DynamicActivations::always,
    .activations_schemes = "mxfp4 mxfp6 mxfp6-e3m2",
};

}  // namespace tensorcast::quantized
