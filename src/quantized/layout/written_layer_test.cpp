// SPDX-License-Identifier: Apache-2.0
// What is written must be found again as what it was.
#include "quantized/layout/written_layer.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "quantized/layout/spelling.hpp"
#include "quantized/rewrite/layer_packer.hpp"

namespace tensorcast::quantized {
namespace {

// A layer of each scheme, with sizes that no tile divides.
std::map<std::string, LayerContent> contents(const std::string& name = "model.layers.0.mlp.up_proj.weight") {
  std::map<std::string, LayerContent> all;
  const auto add = [&](LayerContent content) { all.emplace(content.scheme, std::move(content)); };
  LayerContent base;
  base.name = name;
  base.shape = {130, 192};
  LayerContent content = base;
  content.scheme = "fp8-tensor";
  add(content);
  content.scheme = "fp8-channel";
  content.block_rows = 1;
  content.block_columns = 192;
  content.set_scales(DType::bfloat16);
  add(content);
  content.scheme = "fp8-block";
  content.block_rows = content.block_columns = 128;
  content.set_scales(DType::float32);
  add(content);
  content.scheme = "mxfp8";
  content.block_rows = 1;
  content.block_columns = 32;
  content.set_scales(DType::float8_e8m0fnu);
  add(content);
  content.scheme = "mxfp6";
  content.coding.element = DType::float6_e2m3fn;
  content.coding.bits = 6;
  add(content);
  content.scheme = "mxfp6-e3m2";
  content.coding.element = DType::float6_e3m2fn;
  add(content);
  content.scheme = "mxfp4";
  content.coding.element = DType::float4_e2m1fn;
  content.coding.bits = 4;
  add(content);
  content.scheme = "nvfp4";
  content.block_columns = 16;
  content.set_scales(DType::float8_e4m3fn);
  content.coding.global = GlobalScale::factor;
  add(content);
  content = base;
  content.coding.element = DType::int8;
  content.shape = {132, 192};
  content.scheme = "int8-channel";
  content.block_rows = 1;
  content.block_columns = 192;
  content.set_scales(DType::bfloat16);
  add(content);
  content.shape = {136, 192};
  content.scheme = "int4-group";
  content.coding.bits = 4;
  content.block_columns = 64;
  content.zero_points = true;
  add(content);
  return all;
}

WrittenConfig config_of(const Spelling& writer, const WrittenLayer& written) {
  WrittenModel model;
  model.layers = {written.layer};
  model.unquantized = {"lm_head"};
  return describe(writer, model);
}

std::vector<ConfigText> texts_of(const WrittenConfig& config) {
  std::vector<ConfigText> texts;
  if (!config.section.empty()) {
    texts.push_back({.name = "config.json", .text = R"({"quantization_config": )" + config.section + "}"});
  }
  if (!config.own_file.empty()) texts.push_back({.name = "hf_quant_config.json", .text = config.own_file});
  if (!config.metadata_key.empty()) texts.push_back({.name = config.metadata_key, .text = config.metadata_text});
  return texts;
}

TEST(WrittenLayer, IsFoundAgainInEachSpelling) {
  std::map<std::string_view, int> schemes;
  for (const Spelling& writer : all_writers()) {
    for (const auto& [scheme, content] : contents()) {
      SCOPED_TRACE(std::string(writer.name) + " " + scheme);
      const WrittenLayer written = spell(writer, content);
      if (!written.ok()) {
        if (writer.name == "modelopt" && scheme == "fp8-tensor") continue;  // without a scale of activations
        EXPECT_NE(written.refusal.find(std::string(writer.name) + " has no " + scheme), std::string::npos)
            << written.refusal;
        continue;
      }
      ++schemes[writer.name];
      std::vector<TensorInfo> tensors;
      for (const WrittenTensor& tensor : written.tensors) tensors.push_back(tensor.info);
      // llama.cpp multiplies what a layer computes by this scale, which is no scale of the numbers.
      const bool is_whole = writer.name != "gguf" || scheme != "nvfp4";
      const ReadTensor read = [&](std::size_t tensor) -> Result<std::vector<std::byte>> {
        return written.tensors[tensor].constant;
      };
      const FoundLayers found = find_layers(tensors, texts_of(config_of(writer, written)), read);
      ASSERT_EQ(found.layers.size(), 1U);
      const Layer& layer = found.layers[0];
      EXPECT_EQ(layer.problem, is_whole ? "" : "its scale multiplies what the layer computes, and is not applied");
      EXPECT_EQ(layer.name, written.layer.name);
      EXPECT_EQ(layer.spelling, writer.name);
      EXPECT_EQ(layer.scheme, written.layer.scheme);
      EXPECT_EQ(layer.shape, written.layer.shape);
      EXPECT_EQ(layer.block_rows, written.layer.block_rows);
      EXPECT_EQ(layer.block_columns, written.layer.block_columns);
      EXPECT_EQ(layer.parts.size(), written.layer.parts.size());
      BlockCoding wanted = written.layer.coding;
      if (!is_whole) wanted.global = GlobalScale::none;
      EXPECT_TRUE(layer.coding == wanted);
      EXPECT_TRUE(layer.deviations == written.layer.deviations);
    }
  }
  EXPECT_EQ(schemes["compressed-tensors"], 9);
  EXPECT_EQ(schemes["modelopt"], 4);
  EXPECT_EQ(schemes["comfyui"], 4);
  EXPECT_EQ(schemes["deepseek"], 3);
  EXPECT_EQ(schemes["gguf"], 2);
  EXPECT_EQ(schemes["gpt-oss"], 1);
  EXPECT_EQ(schemes["quark"], 3);
  EXPECT_EQ(schemes["transformers-mxfp8"], 1);
  EXPECT_EQ(schemes["gptq"], 2);
  EXPECT_EQ(schemes["gptq-v2"], 2);
  EXPECT_EQ(schemes["awq"], 1);
  EXPECT_EQ(schemes["auto-round"], 2);
  EXPECT_EQ(schemes["auto-round-awq"], 1);
}

// The weight of a file's root, as that of an array alone, has no module before its name.
TEST(WrittenLayer, RootsWeightIsFoundAgain) {
  std::set<std::string> names;
  for (const Spelling& writer : all_writers()) {
    for (const auto& [scheme, content] : contents("weight")) {
      SCOPED_TRACE(std::string(writer.name) + " " + scheme);
      const WrittenLayer written = spell(writer, content);
      if (!written.ok() || (writer.name == "gguf" && scheme == "nvfp4")) continue;
      EXPECT_EQ(written.layer.name, "weight");
      std::vector<TensorInfo> tensors;
      for (const WrittenTensor& tensor : written.tensors) {
        tensors.push_back(tensor.info);
        names.insert(tensor.info.name);
      }
      const ReadTensor read = [&](std::size_t tensor) -> Result<std::vector<std::byte>> {
        return written.tensors[tensor].constant;
      };
      const FoundLayers found = find_layers(tensors, texts_of(config_of(writer, written)), read);
      ASSERT_EQ(found.layers.size(), 1U);
      EXPECT_EQ(found.layers[0].problem, "");
      EXPECT_EQ(found.layers[0].name, "weight");
      EXPECT_EQ(found.layers[0].scheme, written.layer.scheme);
      EXPECT_EQ(found.layers[0].parts.size(), written.layer.parts.size());
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"g_idx", "qweight", "qzeros", "scale", "scales", "weight", "weight.blocks",
                                          "weight.scales", "weight_global_scale", "weight_packed", "weight_scale",
                                          "weight_scale_2", "weight_scale_inv", "weight_shape", "weight_zero_point"}));
}

TEST(WrittenLayer, SeveralSchemesAreSeveralGroups) {
  const auto all = contents();
  LayerContent other = all.at("mxfp4");
  other.name = "model.layers.1.mlp.experts.7.w1.weight";
  for (const Spelling& writer : all_writers()) {
    const WrittenLayer first = spell(writer, all.at("mxfp8")), second = spell(writer, other);
    if (!first.ok() || !second.ok() || writer.describe == nullptr) continue;
    WrittenModel model;
    model.layers = {first.layer, second.layer};
    std::vector<TensorInfo> tensors;
    for (const WrittenLayer* written : {&first, &second}) {
      for (const WrittenTensor& tensor : written->tensors) tensors.push_back(tensor.info);
    }
    const FoundLayers found = find_layers(tensors, texts_of(describe(writer, model)), {});
    ASSERT_EQ(found.layers.size(), 2U) << writer.name;
    for (const Layer& layer : found.layers) {
      EXPECT_EQ(layer.problem, "");
      EXPECT_EQ(layer.scheme, layer.name == first.layer.name ? "mxfp8" : "mxfp4");
    }
  }
}

TEST(WrittenLayer, PatternsOfModulesMatchNoOthers) {
  std::vector<std::string> experts;
  for (int i = 0; i < 8; ++i) experts.push_back("layers." + std::to_string(i) + ".experts.3.w1");
  EXPECT_EQ(module_targets(experts, {"lm_head"}), std::vector<std::string>{"re:layers\\.\\d+\\.experts\\.\\d+\\.w1$"});
  EXPECT_EQ(module_targets(experts, {"layers.9.experts.0.w1"}), experts);
  EXPECT_EQ(module_targets({"a", "b"}, {}), (std::vector<std::string>{"a", "b"}));
}

// Codes and scales that count.
class Counting final : public LayerCodes {
 public:
  explicit Counting(const LayerContent& content) : content_(content) {}
  Result<void> codes(std::uint64_t first_row, std::span<std::byte> out) override {
    EXPECT_EQ(out.size() % content_.columns(), 0U);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<std::byte>((first_row * content_.columns() + i) * 7 % (1U << content_.coding.bits));
    }
    return {};
  }
  Result<void> scales(std::uint64_t first_row, std::span<std::byte> out) override {
    const std::uint64_t first =
        first_row * content_.grid_columns() * static_cast<unsigned>(bit_width(content_.scales()) / 8);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>((first + i) % 101);
    return {};
  }
  Result<std::vector<float>> global_scales() override { return std::vector<float>{0.5F}; }
  Result<void> zero_points(std::uint64_t /*first_row*/, std::span<std::byte> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i % 13);
    return {};
  }

 private:
  const LayerContent& content_;
};

TEST(WrittenLayer, WhatALayoutCannotHold) {
  const Spelling& compressed = *find_writer("compressed-tensors");
  LayerContent content = contents().at("int8-channel");
  content.shape = {320, 320, 1, 1};
  for (const Spelling& writer : all_writers()) {
    if (writer.name == "gguf") continue;
    EXPECT_FALSE(spell(writer, content).ok()) << writer.name;
  }
  EXPECT_EQ(spell(compressed, content).refusal, "a kernel of [320, 320, 1, 1] is no matrix");
}

TEST(WrittenLayer, StaticActivationsNeedTheirScale) {
  LayerContent content = contents().at("fp8-tensor");
  const Spelling& modelopt = *find_writer("modelopt");
  EXPECT_TRUE(spell(modelopt, content).refusal.starts_with("modelopt has fp8-tensor only with a calibrated scale"));
  content.input_scale = GlobalScale::factor;
  EXPECT_TRUE(spell(modelopt, content).ok());
}

TEST(WrittenLayer, ActivationsOfSchemes) {
  const auto has = [](const char* spelling, const char* scheme) {
    return dynamic_activations(*find_writer(spelling), scheme);
  };
  EXPECT_EQ(has("compressed-tensors", "int8-channel"), DynamicActivations::choice);
  EXPECT_EQ(has("compressed-tensors", "nvfp4"), DynamicActivations::never);
  EXPECT_EQ(has("modelopt", "mxfp8"), DynamicActivations::always);
  EXPECT_EQ(has("comfyui", "mxfp8"), DynamicActivations::never);
}

TEST(LayerPacker, PiecesAreTheWhole) {
  for (const Spelling& writer : all_writers()) {
    for (const auto& [scheme, content] : contents()) {
      SCOPED_TRACE(std::string(writer.name) + " " + scheme);
      const WrittenLayer written = spell(writer, content);
      if (!written.ok()) continue;
      Counting codes(content);
      LayerPacker packer(content, written, codes);
      for (std::size_t i = 0; i < written.tensors.size(); ++i) {
        if (written.tensors[i].role == PartRole::activations) continue;
        std::vector<std::byte> whole(written.tensors[i].info.bytes), pieces(whole.size());
        ASSERT_TRUE(packer.read(i, 0, whole));
        for (std::size_t at = 0; at < pieces.size(); at += 1000) {
          const std::size_t count = std::min<std::size_t>(1000, pieces.size() - at);
          ASSERT_TRUE(packer.read(i, at, std::span(pieces).subspan(at, count)));
        }
        EXPECT_TRUE(whole == pieces) << written.tensors[i].info.name;
      }
    }
  }
}

LayerContent integers_of(const char* name, std::vector<std::int64_t> shape, int bits, std::int64_t group) {
  LayerContent content;
  content.name = name;
  content.scheme = "int";
  content.shape = std::move(shape);
  content.coding.element = DType::int8;
  content.coding.bits = bits;
  content.block_rows = 1;
  content.block_columns = group;
  content.set_scales(DType::float16);
  return content;
}

TEST(WrittenLayer, WhatColumnsOfWordsCannotHold) {
  const auto refusal = [](const char* spelling, const LayerContent& content) {
    return spell(*find_writer(spelling), content).refusal;
  };
  EXPECT_EQ(refusal("awq", integers_of("a.weight", {32, 64}, 8, 32)), "awq has no int, only integers of 4 bits");
  EXPECT_EQ(refusal("gptq", integers_of("a.weight", {32, 64}, 5, 32)),
            "gptq has no int, only integers of 2, 3, 4 and 8 bits");
  EXPECT_EQ(refusal("gptq", integers_of("a.weight", {32, 80}, 4, 32)), "80 inputs are not whole groups of 32");
  EXPECT_EQ(refusal("gptq", integers_of("a.weight", {36, 64}, 4, 32)),
            "36 outputs of 4 bits are not whole words of 32 bits");
  EXPECT_EQ(refusal("gptq", integers_of("a.weight", {32, 60}, 4, 60)),
            "60 inputs of 4 bits are not whole words of 32 bits");
  EXPECT_EQ(refusal("auto-round", integers_of("a.weight", {2, 32, 64}, 4, 32)),
            "auto-round has matrices, and the weight is [2, 32, 64]");
  EXPECT_EQ(refusal("gptq-v2", integers_of("a.weight", {32, 64}, 4, 32)), "");
}

TEST(WrittenLayer, ColumnsOfWordsHaveSettingsOfModules) {
  const auto model_of = [](const char* spelling) {
    WrittenModel model;
    model.layers = {spell(*find_writer(spelling), integers_of("l.0.q.weight", {32, 64}, 4, 32)).layer,
                    spell(*find_writer(spelling), integers_of("l.1.q.weight", {32, 64}, 4, 32)).layer,
                    spell(*find_writer(spelling), integers_of("l.1.d.weight", {32, 32}, 4, 32)).layer,
                    spell(*find_writer(spelling), integers_of("l.1.o.weight", {32, 64}, 4, 64)).layer};
    model.unquantized = {"lm_head", "l.1.gate"};
    return describe(*find_writer(spelling), model);
  };
  EXPECT_EQ(model_of("gptq").section,
            R"({"bits":4,"checkpoint_format":"gptq","desc_act":false,"dynamic":{"+:^l\\.1\\.o$":{"bits":4,)"
            R"("group_size":-1},"-:^l\\.1\\.gate$":{}},"group_size":32,"lm_head":false,"pack_dtype":"int32",)"
            R"("quant_method":"gptq","sym":true})");
  EXPECT_EQ(model_of("auto-round").section,
            R"({"bits":4,"data_type":"int","extra_config":{"l.1.gate":{"bits":16,"data_type":"float"},)"
            R"("l.1.o":{"bits":4,"group_size":-1},"lm_head":{"bits":16,"data_type":"float"}},"group_size":32,)"
            R"("packing_format":"auto_round:auto_gptq","quant_method":"auto-round","sym":true})");
  EXPECT_EQ(model_of("awq").refusal,
            "awq has one size of groups for all layers, and this has 64, where others have 32");
  EXPECT_EQ(model_of("awq").refused_layer, "l.1.o.weight");
}

TEST(LayerPacker, NibblesAndWords) {
  const std::vector<std::byte> codes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                        std::byte{5}, std::byte{6}, std::byte{7}, std::byte{0xf8}};
  const auto packed = [&](const BlockCoding& coding, int word_bits, std::ptrdiff_t count, std::size_t bytes) {
    std::vector<std::byte> row(codes.begin(), codes.begin() + count), out(bytes);
    pack_rows(coding, word_bits, row.size(), row, out);
    return out;
  };
  EXPECT_EQ(packed({.element = DType::float4_e2m1fn, .bits = 4, .packing = BlockPacking::stream}, 8, 8, 4),
            (std::vector{std::byte{0x21}, std::byte{0x43}, std::byte{0x65}, std::byte{0x87}}));
  EXPECT_EQ(packed({.element = DType::float4_e2m1fn, .bits = 4, .packing = BlockPacking::high_nibble_first}, 8, 8, 4),
            (std::vector{std::byte{0x12}, std::byte{0x34}, std::byte{0x56}, std::byte{0x78}}));
  // Two's complement plus 8: -8 is 0.
  EXPECT_EQ(packed({.element = DType::uint8, .bits = 4, .packing = BlockPacking::stream, .offset = 8}, 32, 8, 4),
            (std::vector{std::byte{0xa9}, std::byte{0xcb}, std::byte{0xed}, std::byte{0x0f}}));
  EXPECT_EQ(packed({.element = DType::float6_e2m3fn, .bits = 6, .packing = BlockPacking::stream}, 8, 4, 3),
            (std::vector{std::byte{0x81}, std::byte{0x30}, std::byte{0x10}}));
}

}  // namespace
}  // namespace tensorcast::quantized
