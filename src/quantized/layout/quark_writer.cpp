// SPDX-License-Identifier: Apache-2.0
// Writes MXFP4 and MXFP6 as AMD Quark exports them for vLLM, the only spelling that has float6_e3m2fn.

#include "quantized/layout/config.hpp"
#include "quantized/layout/written_layer.hpp"

namespace tensorcast::quantized {
namespace {

Json spec_of(const Layer& layer, bool dynamic) {
  const Element element = layer.coding.element;
  const char* dtype = element == Element::e2m1 ? "fp4" : element == Element::e2m3 ? "fp6_e2m3" : "fp6_e3m2";
  return {{"dtype", dtype},
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

}  // namespace

void spell_quark(const LayerContent& content, WrittenLayer& written) {
  const bool six = content.scheme == "mxfp6" || content.scheme == "mxfp6-e3m2";
  if (!six && content.scheme != "mxfp4") return refuse_scheme(content, written, "mxfp4, mxfp6 and mxfp6-e3m2");
  const std::string module = module_of(content.name);
  need_whole_groups(content, 32, written);
  written.layer.name = tensor_of(module, "weight");
  written.layer.coding.packing = six ? Packing::stream : Packing::low_nibble_first;
  add_tensor(written, PartRole::codes, written.layer.name, DType::uint8,
             packed_shape(content, six ? 4 : 2, six ? 3 : 1));
  add_tensor(written, PartRole::scales, tensor_of(module, "weight_scale"), DType::uint8, grid_shape(content));
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

}  // namespace tensorcast::quantized
