// SPDX-License-Identifier: Apache-2.0
// compressed-tensors, as llm-compressor writes it. Its config_groups name modules, types and sizes of groups.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "quantized/layout/config.hpp"
#include "quantized/layout/spelling.hpp"
#include "quantized/names/name_pattern.hpp"

namespace tensorcast::quantized {
namespace {

// One of config_groups.
struct Group {
  std::vector<file_conversion::NamePattern> patterns;  // of "re:..."
  std::vector<std::string> names;                      // modules, or ends of their names
  bool all_linear = false;                             // a class, such as "Linear"
  std::string format;
  Json weights;
};

std::vector<Group> read_groups(const Json& section) {
  std::vector<Group> groups;
  const Json* list = object_in(section, "config_groups");
  if (list == nullptr) return groups;
  for (const auto& [key, value] : list->items()) {
    if (!value.is_object()) continue;
    const Json* weights = object_in(value, "weights");
    if (weights == nullptr) continue;
    Group group{
        .patterns = {}, .names = {}, .all_linear = false, .format = text_in(value, "format"), .weights = *weights};
    if (group.format.empty()) group.format = text_in(section, "format");
    for (const std::string& target : texts_in(value, "targets")) {
      if (target.starts_with("re:")) {
        auto pattern = file_conversion::NamePattern::compile("^(?:" + target.substr(3) + ")");
        if (pattern) group.patterns.push_back(std::move(pattern).value());
      } else if (target.find('.') == std::string::npos && !target.empty() && target[0] >= 'A' && target[0] <= 'Z') {
        group.all_linear = true;
      } else {
        group.names.push_back(target);
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

// A name beats a class, as in the tool.
const Group* group_of(const std::vector<Group>& groups, const std::string& module) {
  for (const Group& group : groups) {
    for (const file_conversion::NamePattern& pattern : group.patterns) {
      if (pattern.matches(module)) return &group;
    }
    for (const std::string& name : group.names) {
      if (module == name || module.ends_with("." + name)) return &group;
    }
  }
  for (const Group& group : groups) {
    if (group.all_linear) return &group;
  }
  return nullptr;
}

// Sets the blocks of a layer from the strategy of its group.
void set_blocks(const Group& group, const Description& description, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  std::string strategy = text_in(group.weights, "strategy");
  const std::optional<std::int64_t> size = size_in(group.weights, "group_size", -1);
  if (strategy.empty()) strategy = size && *size > 0 ? "group" : size == -1 ? "channel" : "tensor";
  if (strategy == "tensor") return;
  const std::int64_t columns = whole_row(layer.shape);
  if (strategy == "channel") {
    layer.block_rows = 1;
    layer.block_columns = columns;
  } else if (strategy == "group" || strategy == "tensor_group") {
    layer.block_rows = 1;
    layer.block_columns = size == -1 ? columns : size.value_or(not_a_size);
  } else if (strategy == "block") {
    const auto sizes = group.weights.find("block_structure");
    layer.block_rows = layer.block_columns = not_a_size;
    if (sizes != group.weights.end() && sizes->is_array() && sizes->size() == 2) {
      const Json both = {{"rows", (*sizes)[0]}, {"columns", (*sizes)[1]}};
      layer.block_rows = size_in(both, "rows").value_or(not_a_size);
      layer.block_columns = size_in(both, "columns").value_or(not_a_size);
    }
  } else {
    builder.fail(fmt::format("{} names the strategy \"{}\", which is not known", description.source, strategy));
  }
}

// Reads weight_shape, which says how many of the packed codes are elements.
void read_shape(const ModelTensors& tensors, LayerBuilder& builder, std::size_t shape) {
  Layer& layer = builder.layer();
  const TensorInfo& codes = builder.codes();
  if (shape == SIZE_MAX || !builder.ok()) return;
  const TensorInfo& info = tensors[shape];
  if (info.dtype != DType::int64 || info.shape.size() != 1 || info.count != codes.shape.size()) {
    return builder.fail(
        fmt::format("a shape of {} dimensions is int64, and this is {}", codes.shape.size(), type_and_shape(info)),
        shape);
  }
  const Result<std::vector<std::byte>> bytes = tensors.read(shape);
  if (!bytes) return builder.fail(bytes.error().message, shape);
  std::vector<std::int64_t> sizes(info.count);
  std::memcpy(sizes.data(), bytes->data(), bytes->size());
  const std::int64_t bits = layer.coding.bits;
  std::vector<std::int64_t> packed = sizes;
  const bool fits = sizes.back() >= 0 && sizes.back() <= codes.shape.back() * 32 / bits;
  packed.back() = fits ? blocks_of(sizes.back() * bits, 32) : -1;
  if (packed != codes.shape) {
    return builder.fail(fmt::format("it says that the weight is {}, and the codes of {} are {}", shape_text(sizes),
                                    codes.name, type_and_shape(codes)),
                        shape);
  }
  layer.shape = std::move(sizes);
}

// Integers in int32 words: weight_packed, weight_scale, weight_shape, weight_zero_point.
void complete_packed_integers(const ModelTensors& tensors, const std::string& module, const Group& group,
                              const Description& description, LayerBuilder& builder) {
  constexpr std::int64_t most_bits = 8;
  Layer& layer = builder.layer();
  const std::int64_t bits = size_in(group.weights, "num_bits").value_or(not_a_size);
  if (bits < 1 || bits > most_bits) {
    return builder.fail(fmt::format("{} names integers of a width that is not from 1 to 8 bits", description.source));
  }
  layer.scheme = fmt::format("int{}-{}", bits, text_in(group.weights, "strategy") == "channel" ? "channel" : "group");
  layer.coding = {.element = Element::integer,
                  .bits = static_cast<int>(bits),
                  .packing = Packing::stream,
                  .offset = 1 << (bits - 1)};
  builder.need_codes_of({DType::int32});
  if (!builder.ok()) return;
  layer.shape = builder.codes().shape;
  read_shape(tensors, builder, builder.need(tensor_of(module, "weight_shape"), PartRole::state));
  set_blocks(group, description, builder);
  const std::size_t scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  builder.check_scales(scales, false, description.source);
  const std::size_t index = builder.add(tensor_of(module, "weight_g_idx"), PartRole::group_index);
  if (index != SIZE_MAX && builder.ok() &&
      (tensors[index].dtype != DType::int32 || tensors[index].shape != std::vector{layer.shape.back()})) {
    builder.fail(fmt::format("{} inputs have as many groups of int32, and these are {}", layer.shape.back(),
                             type_and_shape(tensors[index])),
                 index);
  }
  if (is_true(group.weights, "symmetric", true)) return;
  const std::size_t zeros = builder.need(tensor_of(module, "weight_zero_point"), PartRole::zero_points);
  if (!builder.ok() || layer.shape.size() != 2) return builder.fail("zero points of 3-D weights are not known");
  const std::vector<std::int64_t> wanted = {blocks_of(layer.shape[0] * bits, 32),
                                            blocks_of(layer.shape[1], layer.block_columns)};
  if (tensors[zeros].dtype != DType::int32 || tensors[zeros].shape != wanted) {
    builder.fail(fmt::format("zero points of {} rows are int32 {}, and these are {}", layer.shape[0],
                             shape_text(wanted), type_and_shape(tensors[zeros])),
                 zeros);
  }
}

// MXFP4, MXFP6 and NVFP4: weight_packed, weight_scale, weight_global_scale.
void complete_packed_floats(const std::string& module, const std::string& format, const Group& group,
                            const Description& description, LayerBuilder& builder) {
  constexpr std::int64_t mx_block = 32, nv_block = 16;
  Layer& layer = builder.layer();
  const bool nv = format == "nvfp4-pack-quantized", six = format == "mxfp6-pack-quantized";
  layer.scheme = nv ? "nvfp4" : six ? "mxfp6" : "mxfp4";
  layer.coding = {.element = six ? Element::e2m3 : Element::e2m1,
                  .bits = six ? 6 : 4,
                  .packing = six ? Packing::stream : Packing::low_nibble_first,
                  .scales = nv ? ScaleType::e4m3 : ScaleType::e8m0,
                  .global = nv ? GlobalScale::divisor : GlobalScale::none};
  builder.need_codes_of({DType::uint8});
  builder.set_shape(six ? 3 : 1, six ? 4 : 2);
  layer.block_rows = 1;
  layer.block_columns = size_in(group.weights, "group_size").value_or(nv ? nv_block : mx_block);
  if (layer.block_columns != (nv ? nv_block : mx_block)) {
    builder.fail(fmt::format("blocks of {} have {} elements, and {} names another number", layer.scheme,
                             nv ? nv_block : mx_block, description.source));
  }
  const std::size_t scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  builder.check_scales(scales, true, description.source);
  if (nv) builder.check_global(builder.need(tensor_of(module, "weight_global_scale"), PartRole::global_scale));
}

// float8 and int8: weight, weight_scale, perhaps weight_zero_point.
void complete_bytes(const ModelTensors& tensors, const std::string& module, const std::string& format,
                    const Group& group, const Description& description, LayerBuilder& builder) {
  Layer& layer = builder.layer();
  const bool integer = text_in(group.weights, "type") == "int" || format == "int-quantized";
  const bool mx = format == "mxfp8-quantized";
  layer.coding = {.element = integer ? Element::integer : Element::e4m3,
                  .is_signed = integer,
                  .scales = mx ? ScaleType::e8m0 : ScaleType::number};
  layer.scheme = integer ? "int8" : "fp8";
  if (size_in(group.weights, "num_bits").value_or(8) != 8) {
    builder.fail(fmt::format("{} names codes of another width than 8 bits, and these are bytes", description.source));
  }
  builder.need_codes_of({integer ? DType::int8 : DType::float8_e4m3fn});
  builder.set_shape(1, 1);
  set_blocks(group, description, builder);
  const bool channel = layer.block_rows == 1 && layer.block_columns == whole_row(layer.shape);
  layer.scheme = mx ? "mxfp8"
                    : fmt::format("{}-{}", integer ? "int8" : "fp8",
                                  layer.block_rows == 0   ? "tensor"
                                  : channel               ? "channel"
                                  : layer.block_rows == 1 ? "group"
                                                          : "block");
  const std::size_t scales = builder.need(tensor_of(module, "weight_scale"), PartRole::scales);
  builder.check_scales(scales, mx, description.source);
  const std::size_t zeros = builder.add(tensor_of(module, "weight_zero_point"), PartRole::zero_points);
  if (zeros == SIZE_MAX || scales == SIZE_MAX) return;
  if (tensors[zeros].dtype != DType::int8 || tensors[zeros].shape != tensors[scales].shape) {
    builder.fail(fmt::format("zero points beside scales of {} are int8, and these are {}",
                             shape_text(tensors[scales].shape), type_and_shape(tensors[zeros])),
                 zeros);
  }
}

void add_layer(const ModelTensors& tensors, const Description& description, const std::vector<Group>& groups,
               const std::string& module, std::size_t codes, bool packed, std::vector<Layer>& layers) {
  LayerBuilder builder(tensors, "compressed-tensors", tensor_of(module, "weight"), codes);
  builder.layer().scheme = "a group";
  const Group* group = group_of(groups, module);
  if (group == nullptr) {
    builder.fail(fmt::format("no group of config_groups in {} is for it", description.source));
  } else {
    std::string format = group->format;
    const bool floats = text_in(group->weights, "type") == "float";
    if (packed &&
        (format == "nvfp4-pack-quantized" || format == "mxfp4-pack-quantized" || format == "mxfp6-pack-quantized")) {
      complete_packed_floats(module, format, *group, description, builder);
    } else if (packed && format == "pack-quantized" && !floats) {
      complete_packed_integers(tensors, module, *group, description, builder);
    } else if (!packed && (format == "float-quantized" || format == "int-quantized" || format == "naive-quantized" ||
                           format == "mxfp8-quantized")) {
      complete_bytes(tensors, module, format, *group, description, builder);
    } else {
      builder.fail(fmt::format("{} names the format \"{}\", {}", description.source, format,
                               packed ? "whose codes are not in weight_packed" : "which is not known"));
    }
  }
  for (const char* key : {"transform_config", "sparsity_config"}) {
    const Json* change = object_in(description.section, key);
    if (change == nullptr || change->empty()) continue;
    if (key[0] == 's' && text_in(*change, "format") == "dense") continue;
    builder.fail(fmt::format("{} has a {}, which changes the weights beside their codes and is not undone",
                             description.source, key));
  }
  add_activations(builder, module);
  layers.push_back(std::move(builder).done());
}

}  // namespace

void find_compressed_tensors(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const std::vector<Group> groups = read_groups(description->section);
  for (std::size_t i = 0; i < tensors.all().size(); ++i) {
    const std::string& name = tensors[i].name;
    if (const std::optional<std::string> packed = module_with(name, "weight_packed")) {
      add_layer(tensors, *description, groups, *packed, i, true, layers);
    } else if (const std::optional<std::string> scaled = module_with(name, "weight_scale")) {
      const std::size_t codes = tensors.find(tensor_of(*scaled, "weight"));
      if (codes != SIZE_MAX) add_layer(tensors, *description, groups, *scaled, codes, false, layers);
    }
  }
}

}  // namespace tensorcast::quantized
