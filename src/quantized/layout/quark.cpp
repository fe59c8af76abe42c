// SPDX-License-Identifier: Apache-2.0
// AMD Quark's MX formats: weight, weight_scale of E8M0 bytes. The configuration names the elements, of a module or all.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "quantized/layout/config.hpp"
#include "quantized/layout/spelling.hpp"
#include "quantized/names/name_list.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t block = 32;

struct Elements {
  std::string_view dtype, scheme;
  Element element;
};
constexpr Elements known[] = {
    {"fp4", "mxfp4", Element::e2m1}, {"fp6_e2m3", "mxfp6", Element::e2m3}, {"fp6_e3m2", "mxfp6-e3m2", Element::e3m2}};

// What the configuration says of weights: of all, or of the modules that a pattern names.
class WeightSpecs {
 public:
  explicit WeightSpecs(const Json& section) {
    if (const Json* all = object_in(section, "global_quant_config")) all_ = weights_in(*all);
    const Json* own = object_in(section, "layer_quant_config");
    if (own == nullptr) return;
    for (const auto& [pattern, spec] : own->items()) own_.emplace_back(NameList({pattern}), weights_in(spec));
  }

  [[nodiscard]] const Json& of(const std::string& module) const {
    const auto found = std::ranges::find_if(own_, [&](const auto& entry) { return entry.first.has(module); });
    return found == own_.end() ? all_ : found->second;
  }

 private:
  static Json weights_in(const Json& spec) {
    const Json* weights = spec.is_object() ? object_in(spec, "weight") : nullptr;
    return weights == nullptr ? Json::object() : *weights;
  }

  Json all_ = Json::object();
  std::vector<std::pair<NameList, Json>> own_;
};

void complete(const Json& spec, std::size_t scales, const Description& description, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  const std::string dtype = text_in(spec, "dtype");
  const auto* elements = std::ranges::find(known, dtype, &Elements::dtype);
  layer.scheme = elements == std::end(known) ? dtype.empty() ? "Quark's" : dtype : std::string(elements->scheme);
  if (elements == std::end(known) || text_in(spec, "qscheme") != "per_group" || size_in(spec, "group_size") != block ||
      text_in(spec, "scale_format") != "e8m0") {
    return builder.fail(fmt::format(
        "{} names another scheme of Quark than MXFP4 and MXFP6, and these alone are decoded", description.source));
  }
  const bool six = elements->element != Element::e2m1;
  layer.coding = {.element = elements->element,
                  .bits = six ? 6 : 4,
                  .packing = six ? Packing::stream : Packing::low_nibble_first,
                  .scales = ScaleType::e8m0};
  layer.block_rows = 1;
  layer.block_columns = block;
  builder.need_codes_of({DType::uint8});
  builder.set_shape(six ? 3 : 1, six ? 4 : 2);
  builder.check_scales(scales, true, description.source);
}

}  // namespace

void find_quark(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const WeightSpecs specs(description->section);
  for (const auto& [i, module] : tensors.of_modules("weight_scale")) {
    const std::size_t codes = tensors.find(tensor_of(module, "weight"));
    if (codes == SIZE_MAX) continue;
    LayerBuilder builder(tensors, "quark", tensor_of(module, "weight"), codes);
    builder.layer().parts.push_back({.role = PartRole::scales, .tensor = i});
    complete(specs.of(module), i, *description, builder);
    add_activations(builder, module);
    layers.push_back(std::move(builder).done());
  }
}

}  // namespace tensorcast::quantized
