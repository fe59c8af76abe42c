// SPDX-License-Identifier: Apache-2.0
// GPTQ: qweight, qzeros, scales, g_idx of a transposed weight. Version 1 stores zero points less one.
#include <fmt/format.h>

#include "quantized/layout/config.hpp"
#include "quantized/layout/spelling.hpp"

namespace tensorcast::quantized {
namespace {

constexpr std::int64_t word_bits = 32;

bool is_width(std::int64_t bits) { return bits == 2 || bits == 3 || bits == 4 || bits == 8; }

// Checks qzeros and scales, of which both spellings have one row for each group.
void check_groups(const ModelTensors& tensors, std::size_t scales, std::size_t zeros, std::int64_t outputs,
                  std::int64_t groups, std::int64_t bits, LayerBuilder& builder) {
  if (!builder.ok()) return;
  const std::vector<std::int64_t> scale_shape = {groups, outputs}, zero_shape = {groups, outputs * bits / word_bits};
  if (!is_plain_float(tensors[scales].dtype) || tensors[scales].shape != scale_shape) {
    builder.fail(fmt::format("its groups have scales of {}, and these are {}", shape_text(scale_shape),
                             type_and_shape(tensors[scales])),
                 scales);
  }
  if (tensors[zeros].dtype != DType::int32 || tensors[zeros].shape != zero_shape) {
    builder.fail(fmt::format("its groups have zero points of int32 {}, and these are {}", shape_text(zero_shape),
                             type_and_shape(tensors[zeros])),
                 zeros);
  }
}

// Sets the size of groups along the inputs; -1: one for all.
void set_group(std::optional<std::int64_t> size, std::int64_t inputs, const Description& description,
               LayerBuilder& builder) {
  Layer& layer = builder.layer();
  layer.block_rows = 1;
  layer.block_columns = !size || *size == -1 ? std::max<std::int64_t>(inputs, 1) : *size;
  if (layer.block_columns < 1) {
    builder.fail(fmt::format("the group size that {} names is not a whole number above 0", description.source));
  }
}

}  // namespace

void find_gptq(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const Json& section = description->section;
  const std::int64_t bits = size_in(section, "bits").value_or(not_a_size);
  std::string version = text_in(section, "checkpoint_format");
  for (const auto& [i, module] : tensors.of_modules("qweight")) {
    LayerBuilder builder(tensors, "gptq", tensor_of(module, "weight"), i);
    Layer& layer = builder.layer();
    layer.scheme = fmt::format("gptq-{}bit", bits);
    const std::size_t scales = builder.need(tensor_of(module, "scales"), PartRole::scales);
    const std::size_t zeros = builder.need(tensor_of(module, "qzeros"), PartRole::zero_points);
    const std::size_t index = builder.add(tensor_of(module, "g_idx"), PartRole::group_index);
    if (!is_width(bits)) {
      layer.scheme = "gptq";
      builder.fail(fmt::format("{} names another width than 2, 3, 4 and 8 bits", description->source));
    }
    if (!version.empty() && version != "gptq" && version != "gptq_v2") {
      builder.fail(fmt::format("the layout \"{}\" of GPTQ is not decoded", version));
    }
    builder.need_codes_of({DType::int32}, 2);
    if (builder.ok()) {
      const std::int64_t outputs = builder.codes().shape[1];
      std::int64_t inputs = 0;
      if (__builtin_mul_overflow(builder.codes().shape[0], word_bits, &inputs)) builder.fail("its shape is too large");
      inputs /= bits;
      if (builder.codes().shape[0] * word_bits % bits != 0) builder.fail("its rows are not whole groups of codes");
      layer.shape = {outputs, inputs};
      layer.coding = {.element = Element::integer,
                      .bits = static_cast<int>(bits),
                      .packing = Packing::words_down,
                      .zero_added = version == "gptq_v2" ? 0 : 1,
                      .transposed = true};
      set_group(size_in(section, "group_size", -1), inputs, *description, builder);
      if (outputs * bits % word_bits != 0) builder.fail("zero points of its columns are not whole words");
      if (builder.ok()) {
        check_groups(tensors, scales, zeros, outputs, blocks_of(inputs, layer.block_columns), bits, builder);
      }
      if (index == SIZE_MAX && is_true(section, "desc_act") && layer.block_columns < inputs) {
        builder.fail(fmt::format("{} names desc_act, groups in an order that g_idx tells, which is missing",
                                 description->source));
      }
      if (index != SIZE_MAX && builder.ok() &&
          (tensors[index].dtype != DType::int32 || tensors[index].shape != std::vector<std::int64_t>{inputs})) {
        builder.fail(fmt::format("{} inputs have as many groups of int32, and these are {}", inputs,
                                 type_and_shape(tensors[index])),
                     index);
      }
    }
    layers.push_back(std::move(builder).done());
  }
}

void find_awq(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  constexpr std::int64_t bits = 4, per_word = 8;
  const Json& section = description->section;
  const auto first_of = [&](const char* key, const char* other) {
    return section.contains(key) ? size_in(section, key, -1) : size_in(section, other, -1);
  };
  std::string version = text_in(section, "version");
  if (version.empty()) version = text_in(section, "format");
  for (const auto& [i, module] : tensors.of_modules("qweight")) {
    LayerBuilder builder(tensors, "awq", tensor_of(module, "weight"), i);
    Layer& layer = builder.layer();
    layer.scheme = "awq-4bit";
    const std::size_t scales = builder.need(tensor_of(module, "scales"), PartRole::scales);
    const std::size_t zeros = builder.need(tensor_of(module, "qzeros"), PartRole::zero_points);
    if (first_of("bits", "w_bit").value_or(bits) != bits) {
      builder.fail(fmt::format("{} names another width than 4 bits", description->source));
    }
    if (!version.empty() && version != "gemm" && version != "GEMM") {
      builder.fail(fmt::format("the layout \"{}\" of AWQ is not decoded", version));
    }
    builder.need_codes_of({DType::int32}, 2);
    if (builder.ok()) {
      const std::int64_t inputs = builder.codes().shape[0];
      std::int64_t outputs = 0;
      if (__builtin_mul_overflow(builder.codes().shape[1], per_word, &outputs)) builder.fail("its shape is too large");
      layer.shape = {outputs, inputs};
      layer.coding = {.element = Element::integer, .bits = bits, .packing = Packing::awq, .transposed = true};
      set_group(first_of("group_size", "q_group_size"), inputs, *description, builder);
      if (builder.ok()) {
        check_groups(tensors, scales, zeros, outputs, blocks_of(inputs, layer.block_columns), bits, builder);
      }
    }
    layers.push_back(std::move(builder).done());
  }
}

void find_auto_round(const ModelTensors& tensors, const Description* description, std::vector<Layer>& layers) {
  const Json& section = description->section;
  const std::string packing = text_in(section, "packing_format");
  const std::size_t before = layers.size();
  if (packing.find("awq") != std::string::npos) {
    find_awq(tensors, description, layers);
  } else {
    find_gptq(tensors, description, layers);
  }
  const bool known = packing == "auto_round:auto_gptq" || packing == "auto_round:auto_awq" || packing == "auto_gptq" ||
                     packing == "auto_awq";
  const auto turned = section.find("hadamard_config");
  for (std::size_t i = before; i < layers.size(); ++i) {
    Layer& layer = layers[i];
    if (turned != section.end() && !turned->is_null() && !turned->empty() && layer.problem.empty()) {
      layer.problem = description->source +
                      " has a hadamard_config, which changes the weights beside their codes and is not undone";
      layer.problem_tensor = tensors[layer.codes()].name;
    } else if (!known && layer.problem.empty()) {
      layer.problem = fmt::format("the packing_format \"{}\" of auto-round is not decoded", packing);
      layer.problem_tensor = tensors[layer.codes()].name;
    }
  }
}

}  // namespace tensorcast::quantized
