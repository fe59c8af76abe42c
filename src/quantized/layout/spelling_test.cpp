// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/spelling.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <map>

#include "dtype/lookup.hpp"
#include "formats/gguf/gguf_types.hpp"
#include "quantized/layout/config.hpp"
#include "tensorcast/block.hpp"

namespace tensorcast::quantized {
namespace {

constexpr DType fp8 = DType::float8_e4m3fn, f32 = DType::float32, f16 = DType::float16, bf16 = DType::bfloat16;
constexpr DType u8 = DType::uint8, i8 = DType::int8, i32 = DType::int32, i64 = DType::int64,
                e8m0 = DType::float8_e8m0fnu;

TensorInfo tensor(const std::string& name, DType dtype, std::vector<std::int64_t> shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return {.name = name,
          .dtype = dtype,
          .shape = std::move(shape),
          .count = count,
          .bytes = count * static_cast<std::uint64_t>(bit_width(dtype)) / 8};
}

using Contents = std::map<std::string, std::string>;  // bytes of small tensors by name

FoundLayers find(const std::vector<TensorInfo>& tensors, const std::string& config, const Contents& contents = {},
                 const std::string& file = "config.json") {
  const std::vector<ConfigText> texts = {{.name = file, .text = config}};
  const ReadTensor read = [&](std::size_t index) -> Result<std::vector<std::byte>> {
    const auto found = contents.find(tensors[index].name);
    if (found == contents.end()) return Error{.code = ErrorCode::io, .message = "it cannot be read"};
    const auto bytes = std::as_bytes(std::span(found->second));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  return find_layers(tensors, texts, read);
}

// The only layer of a model.
Layer layer(const std::vector<TensorInfo>& tensors, const std::string& config, const Contents& contents = {},
            const std::string& file = "config.json") {
  const FoundLayers found = find(tensors, config, contents, file);
  EXPECT_EQ(found.refusal, "");
  EXPECT_EQ(found.layers.size(), 1u);
  return found.layers.empty() ? Layer{} : found.layers[0];
}

// What a layer is in one line; its problem if it has one.
std::string said(const Layer& layer) {
  if (!layer.problem.empty()) return layer.problem_tensor + ": " + layer.problem;
  return std::string(layer.spelling) + " " + layer.scheme + " " + layer.name + " " + shape_text(layer.shape) + " " +
         std::to_string(layer.block_rows) + "x" + std::to_string(layer.block_columns) + " of " +
         std::to_string(layer.parts.size());
}

std::string words(const std::vector<std::int64_t>& values) {
  std::string bytes(values.size() * sizeof(std::int64_t), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const std::string deepseek = R"({"quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
  "weight_block_size": [128, 128], "activation_scheme": "dynamic"}})";

TEST(Spelling, DeepSeek) {
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {576, 300}), tensor("a.weight_scale_inv", f32, {5, 3})}, deepseek)),
            "deepseek fp8-block a.weight [576, 300] 128x128 of 2");
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {256, 128}), tensor("a.scale", e8m0, {2, 1})}, deepseek)),
            "deepseek fp8-block a.weight [256, 128] 128x128 of 2");
  EXPECT_EQ(said(layer({tensor("w1.weight", i8, {8, 32}), tensor("w1.scale", e8m0, {8, 2})}, deepseek)),
            "deepseek mxfp4 w1.weight [8, 64] 1x32 of 2");
  EXPECT_EQ(
      said(layer({tensor("e.gate_up", fp8, {4, 256, 128}), tensor("e.gate_up_scale_inv", f32, {4, 2, 1})}, deepseek)),
      "deepseek fp8-block e.gate_up [4, 256, 128] 128x128 of 2");
  const std::string inside = R"({"text_config": )" + deepseek + "}";
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {128, 128}), tensor("a.weight_scale_inv", f32, {1, 1})}, inside)),
            "deepseek fp8-block a.weight [128, 128] 128x128 of 2");
}

// 192 rows with 2 scales are not blocks of 96.
TEST(Spelling, BlockSizesComeFromTheConfigNeverFromShapes) {
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {192, 128}), tensor("a.weight_scale_inv", f32, {2, 1})}, deepseek)),
            "deepseek fp8-block a.weight [192, 128] 128x128 of 2");
  EXPECT_EQ(
      said(layer({tensor("a.weight", fp8, {192, 128}), tensor("a.weight_scale_inv", f32, {3, 1})}, deepseek)),
      "a.weight_scale_inv: config.json names blocks of 128 x 128, so a weight of [192, 128] has scales of [2, 1], "
      "and these are of [3, 1]");
  for (const char* size : {"[0, 128]", "[-1, 128]", "[1e3, 128]", "[128]", "[9223372036854775807, 128]", "\"128\"",
                           "{}", "[18446744073709551615, 1]", "[true, 1]"}) {
    const std::string config =
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": )" + std::string(size) + "}}";
    EXPECT_EQ(said(layer({tensor("a.weight", fp8, {192, 128}), tensor("a.weight_scale_inv", f32, {2, 1})}, config)),
              "a.weight_scale_inv: the block size that config.json names is not a whole number above 0")
        << size;
  }
}

TEST(Spelling, DeepSeekContradicts) {
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {128, 128}), tensor("a.weight_scale_inv", i32, {1, 1})}, deepseek)),
            "a.weight_scale_inv: scales of fp8-block are float32, float16 or bfloat16, and these are int32 [1, 1]");
  EXPECT_EQ(said(layer({tensor("a.weight", bf16, {128, 128}), tensor("a.weight_scale_inv", f32, {1, 1})}, deepseek)),
            "a.weight: codes of fp8-block are float8_e4m3fn, and these are bfloat16 [128, 128]");
  const FoundLayers found = find({tensor("a.weight", fp8, {128, 128}), tensor("a.weight_scale_inv", f32, {1, 1}),
                                  tensor("b.weight", fp8, {128, 128})},
                                 deepseek);
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(said(found.layers[1]), "b.weight: it holds codes, and the tensor with their scales is missing");
}

TEST(Spelling, Mxfp8OfTransformers) {
  const std::string config = R"({"quantization_config": {"quant_method": "mxfp8", "weight_block_size": [1, 32]}})";
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {4, 64}), tensor("a.weight_scale_inv", u8, {4, 2})}, config)),
            "transformers-mxfp8 mxfp8 a.weight [4, 64] 1x32 of 2");
}

std::string ct(const std::string& format, const std::string& weights, const std::string& more = "") {
  return R"({"quantization_config": {"quant_method": "compressed-tensors", "format": ")" + format +
         R"(", "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" + weights + "}}" + more + "}}";
}

TEST(Spelling, CompressedTensors) {
  const std::string nv =
      ct("nvfp4-pack-quantized", R"({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16})");
  EXPECT_EQ(said(layer({tensor("a.weight_packed", u8, {4, 32}), tensor("a.weight_scale", fp8, {4, 4}),
                        tensor("a.weight_global_scale", f32, {1}), tensor("a.input_global_scale", f32, {1})},
                       nv)),
            "compressed-tensors nvfp4 a.weight [4, 64] 1x16 of 4");
  EXPECT_EQ(said(layer({tensor("a.weight_packed", u8, {4, 32}), tensor("a.weight_scale", fp8, {4, 4})}, nv)),
            "a.weight_packed: its codes need the tensor \"a.weight_global_scale\", which is missing");
  const std::string mx4 =
      ct("mxfp4-pack-quantized", R"({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32})");
  EXPECT_EQ(said(layer({tensor("a.weight_packed", u8, {4, 32}), tensor("a.weight_scale", u8, {4, 2})}, mx4)),
            "compressed-tensors mxfp4 a.weight [4, 64] 1x32 of 2");
  const std::string mx6 =
      ct("mxfp6-pack-quantized", R"({"num_bits": 6, "type": "float", "strategy": "group", "group_size": 32})");
  EXPECT_EQ(said(layer({tensor("a.weight_packed", u8, {4, 48}), tensor("a.weight_scale", u8, {4, 2})}, mx6)),
            "compressed-tensors mxfp6 a.weight [4, 64] 1x32 of 2");
  const std::string channel =
      ct("float-quantized", R"({"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": true})");
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {4, 64}), tensor("a.weight_scale", bf16, {4, 1})}, channel)),
            "compressed-tensors fp8-channel a.weight [4, 64] 1x64 of 2");
  const std::string block =
      ct("float-quantized", R"({"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]})");
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {200, 64}), tensor("a.weight_scale", bf16, {2, 1})}, block)),
            "compressed-tensors fp8-block a.weight [200, 64] 128x128 of 2");
  const std::string int8 = ct("int-quantized", R"({"num_bits": 8, "type": "int", "strategy": "channel"})");
  EXPECT_EQ(said(layer({tensor("a.weight", i8, {4, 64}), tensor("a.weight_scale", f32, {4, 1})}, int8)),
            "compressed-tensors int8-channel a.weight [4, 64] 1x64 of 2");
}

TEST(Spelling, PackedIntegersOfCompressedTensors) {
  const std::string int4 = ct("pack-quantized", R"({"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32,
    "symmetric": false})");
  const std::vector<TensorInfo> tensors = {tensor("a.weight_packed", i32, {8, 8}),
                                           tensor("a.weight_scale", bf16, {8, 2}), tensor("a.weight_shape", i64, {2}),
                                           tensor("a.weight_zero_point", i32, {1, 2})};
  EXPECT_EQ(said(layer(tensors, int4, {{"a.weight_shape", words({8, 64})}})),
            "compressed-tensors int4-group a.weight [8, 64] 1x32 of 4");
  EXPECT_EQ(said(layer(tensors, int4, {{"a.weight_shape", words({8, 61})}})),
            "compressed-tensors int4-group a.weight [8, 61] 1x32 of 4");
  for (const std::vector<std::int64_t>& lie :
       std::vector<std::vector<std::int64_t>>{{8, 65}, {8, 56}, {9, 64}, {8, -64}, {INT64_MAX, INT64_MAX}, {64, 8}}) {
    EXPECT_NE(said(layer(tensors, int4, {{"a.weight_shape", words(lie)}})).find("a.weight_shape: it says"),
              std::string::npos)
        << shape_text(lie);
  }
  EXPECT_EQ(said(layer(tensors, int4)), "a.weight_shape: it cannot be read");
}

TEST(Spelling, GroupsOfCompressedTensorsAreForNames) {
  const std::string config =
      R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "mixed-precision",
    "config_groups": {
      "group_0": {"targets": ["Linear"], "format": "float-quantized", "weights": {"num_bits": 8, "type": "float",
        "strategy": "tensor"}},
      "group_1": {"targets": ["re:.*down_proj"], "format": "nvfp4-pack-quantized", "weights": {"num_bits": 4,
        "type": "float", "strategy": "tensor_group", "group_size": 16}}}}})";
  const FoundLayers found =
      find({tensor("a.up_proj.weight", fp8, {4, 64}), tensor("a.up_proj.weight_scale", f32, {1}),
            tensor("a.down_proj.weight_packed", u8, {4, 32}), tensor("a.down_proj.weight_scale", fp8, {4, 4}),
            tensor("a.down_proj.weight_global_scale", f32, {1})},
           config);
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(said(found.layers[0]), "compressed-tensors fp8-tensor a.up_proj.weight [4, 64] 0x0 of 2");
  EXPECT_EQ(said(found.layers[1]), "compressed-tensors nvfp4 a.down_proj.weight [4, 64] 1x16 of 3");
}

TEST(Spelling, ModelOpt) {
  const std::string config = R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4",
    "group_size": 16}})";
  const std::vector<TensorInfo> tensors = {tensor("a.weight", u8, {4, 32}), tensor("a.weight_scale", fp8, {4, 4}),
                                           tensor("a.weight_scale_2", f32, {}), tensor("a.input_scale", f32, {})};
  EXPECT_EQ(said(layer(tensors, config, {}, "hf_quant_config.json")), "modelopt nvfp4 a.weight [4, 64] 1x16 of 4");
  const std::string f8 = R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}})";
  EXPECT_EQ(said(layer({tensor("a.weight", fp8, {4, 32}), tensor("a.weight_scale", f32, {})}, f8)),
            "modelopt fp8-tensor a.weight [4, 32] 0x0 of 2");
  EXPECT_EQ(said(layer(tensors, f8)), "a.weight: config.json names FP8, and codes and scales are those of NVFP4");
}

TEST(Spelling, TwoFilesThatContradict) {
  const std::vector<TensorInfo> tensors = {tensor("a.weight", fp8, {4, 32}), tensor("a.weight_scale", f32, {})};
  const std::vector<ConfigText> texts = {
      {.name = "config.json", .text = R"({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}})"},
      {.name = "hf_quant_config.json", .text = R"({"quantization": {"quant_algo": "NVFP4"}})"}};
  const FoundLayers found = find_layers(tensors, texts, {});
  ASSERT_EQ(found.layers.size(), 1u);
  EXPECT_EQ(said(found.layers[0]),
            "a.weight: config.json names quant_algo \"FP8\", and hf_quant_config.json names quant_algo \"NVFP4\"");
}

TEST(Spelling, TwoFilesThatContradictInSizes) {
  const std::vector<TensorInfo> tensors = {tensor("a.qweight", DType::int32, {8, 32}),
                                           tensor("a.qzeros", DType::int32, {1, 4}),
                                           tensor("a.scales", DType::float16, {1, 32})};
  const auto found = [&](const char* own) {
    const std::vector<ConfigText> texts = {
        {.name = "config.json",
         .text =
             R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64, "damp_percent": 1,
                 "desc_act": false}})"},
        {.name = "quantize_config.json", .text = own}};
    return said(find_layers(tensors, texts, {}).layers.at(0));
  };
  EXPECT_EQ(found(R"({"bits": 8, "group_size": 64})"),
            "a.qweight: config.json names bits 4, and quantize_config.json names bits 8");
  EXPECT_EQ(found(R"({"bits": 4, "group_size": 32})"),
            "a.qweight: config.json names group_size 64, and quantize_config.json names group_size 32");
  EXPECT_EQ(found(R"({"bits": 4, "group_size": 64, "damp_percent": 2})"), "gptq gptq-4bit a.weight [32, 64] 1x64 of 3");
}

TEST(Spelling, GptOss) {
  const std::string config = R"({"quantization_config": {"quant_method": "mxfp4"}})";
  EXPECT_EQ(
      said(layer({tensor("e.gate_up_proj_blocks", u8, {2, 6, 3, 16}), tensor("e.gate_up_proj_scales", u8, {2, 6, 3})},
                 config)),
      "gpt-oss mxfp4 e.gate_up_proj [2, 96, 6] 1x32 of 2");
  EXPECT_EQ(
      said(layer({tensor("mlp1_weight.blocks", u8, {2, 6, 3, 16}), tensor("mlp1_weight.scales", u8, {2, 6, 3})}, "{}")),
      "gpt-oss mxfp4 mlp1_weight [2, 6, 96] 1x32 of 2");
}

TEST(Spelling, ComfyUi) {
  const std::string metadata = R"({"format_version": "1.0", "layers": {"a": {"format": "nvfp4"}}})";
  EXPECT_EQ(said(layer({tensor("a.weight", u8, {4, 32}), tensor("a.weight_scale", fp8, {128, 4}),
                        tensor("a.weight_scale_2", f32, {})},
                       metadata, {}, "_quantization_metadata")),
            "comfyui nvfp4 a.weight [4, 64] 1x16 of 3");
  EXPECT_EQ(
      said(layer({tensor("a.weight", fp8, {4, 64}), tensor("a.scale_weight", f32, {}), tensor("scaled_fp8", fp8, {0})},
                 "{}")),
      "comfyui fp8-tensor a.weight [4, 64] 0x0 of 2");
  const std::vector<TensorInfo> own = {tensor("a.weight", i8, {4, 64}), tensor("a.weight_scale", f32, {4, 1}),
                                       tensor("a.comfy_quant", u8, {40})};
  EXPECT_EQ(said(layer(own, "{}", {{"a.comfy_quant", R"({"format": "int8_tensorwise"})"}})),
            "comfyui int8-channel a.weight [4, 64] 1x64 of 3");
  EXPECT_EQ(said(layer(own, "{}", {{"a.comfy_quant", R"({"format": "svdquant"})"}})),
            "a.weight: the format \"svdquant\" of ComfyUI is not decoded");
}

TEST(Spelling, GptqAndAwq) {
  const auto gptq = [](const char* more) {
    return R"({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32)" + std::string(more) + "}}";
  };
  std::vector<TensorInfo> tensors = {tensor("a.qweight", i32, {8, 16}), tensor("a.qzeros", i32, {2, 2}),
                                     tensor("a.scales", f16, {2, 16}), tensor("a.g_idx", i32, {64})};
  const Contents order = {{"a.g_idx", std::string(128, '\0') + std::string(128, '\1')}};
  EXPECT_EQ(said(layer(tensors, gptq(""), order)), "gptq gptq-4bit a.weight [16, 64] 1x32 of 4");
  EXPECT_EQ(layer(tensors, gptq("")).coding.zero_added, 1);
  EXPECT_EQ(layer(tensors, gptq(R"(, "checkpoint_format": "gptq_v2")")).coding.zero_added, 0);
  EXPECT_NE(said(layer(tensors, gptq(R"(, "checkpoint_format": "marlin")"))).find("\"marlin\""), std::string::npos);
  tensors[2] = tensor("a.scales", f16, {3, 16});
  EXPECT_EQ(said(layer(tensors, gptq(""))),
            "a.scales: its groups have scales of [2, 16], and these are float16 [3, 16]");
  const std::string awq = R"({"zero_point": true, "q_group_size": 32, "w_bit": 4, "version": "GEMM"})";
  EXPECT_EQ(
      said(layer({tensor("a.qweight", i32, {64, 2}), tensor("a.qzeros", i32, {2, 2}), tensor("a.scales", f16, {2, 16})},
                 awq, {}, "quant_config.json")),
      "awq awq-4bit a.weight [16, 64] 1x32 of 3");
}

TEST(Spelling, BitsAndBytes) {
  const std::string config = R"({"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": true}})";
  const std::string state = "a.weight.quant_state.bitsandbytes__nf4";
  const std::vector<TensorInfo> tensors = {tensor("a.weight", u8, {1024, 1}),
                                           tensor("a.weight.absmax", u8, {32}),
                                           tensor("a.weight.quant_map", f32, {16}),
                                           tensor("a.weight.nested_absmax", f32, {1}),
                                           tensor("a.weight.nested_quant_map", f32, {256}),
                                           tensor(state, u8, {99})};
  const std::string text = R"({"quant_type": "nf4", "blocksize": 64, "shape": [32, 64], "nested_blocksize": 256,
    "nested_offset": 0.04})";
  const std::string map = "a.weight.quant_map";
  std::string numbers(reinterpret_cast<const char*>(nf4_table().data()), nf4_table().size_bytes());
  EXPECT_EQ(said(layer(tensors, config, {{state, text}, {map, numbers}})),
            "bitsandbytes nf4 a.weight [32, 64] 0x64 of 6");
  EXPECT_EQ(said(layer(tensors, config, {{state, text}})), map + ": it cannot be read");
  numbers[3] = '\x3f';  // the first number is 1
  EXPECT_EQ(said(layer(tensors, config, {{state, text}, {map, numbers}})),
            map + ": code 0 means 1, and that of nf4 is -1");
  numbers[3] = '\xbf';
  for (const char* lie : {R"({"blocksize": 64, "shape": [33, 64]})", R"({"blocksize": 0, "shape": [32, 64]})",
                          R"({"blocksize": 64, "shape": [2147483647, 2147483647, 2147483647]})", "[", "{}",
                          R"({"blocksize": 64, "shape": [32, 64]})", R"({"blocksize": 64, "shape": [-32, -64]})"}) {
    EXPECT_FALSE(layer(tensors, config, {{state, lie}, {map, numbers}}).problem.empty()) << lie;
  }
  EXPECT_EQ(said(layer({tensor("a.weight", i8, {4, 64}), tensor("a.SCB", f32, {4}), tensor("a.weight_format", u8, {})},
                       config, {{"a.weight_format", std::string(1, '\0')}})),
            "bitsandbytes int8-channel a.weight [4, 64] 1x64 of 3");
}

TEST(Spelling, Mlx) {
  const std::string config = R"({"quantization": {"group_size": 32, "bits": 4, "b": {"group_size": 64, "bits": 8}}})";
  const FoundLayers found = find(
      {tensor("a.weight", DType::uint32, {4, 8}), tensor("a.scales", f16, {4, 2}), tensor("a.biases", f16, {4, 2}),
       tensor("b.weight", DType::uint32, {4, 16}), tensor("b.scales", f16, {4, 1}), tensor("b.biases", f16, {4, 1})},
      config);
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(said(found.layers[0]), "mlx int4-affine a.weight [4, 64] 1x32 of 3");
  EXPECT_EQ(said(found.layers[1]), "mlx int8-affine b.weight [4, 64] 1x64 of 3");
}

TEST(Spelling, ChangesOfBasisAreRefusedByName) {
  const std::string config = R"({"quantization": {"quant_algo": "NVFP4_AWQ", "group_size": 16}})";
  EXPECT_EQ(said(layer({tensor("a.weight", u8, {4, 32}), tensor("a.weight_scale", fp8, {4, 4}),
                        tensor("a.weight_scale_2", f32, {}), tensor("a.pre_quant_scale", bf16, {64})},
                       config, {}, "hf_quant_config.json")),
            "a.pre_quant_scale: \"pre_quant_scale\" changes the weight beside its codes, and is not undone");
  const std::string turned = ct("float-quantized", R"({"num_bits": 8, "type": "float", "strategy": "tensor"})",
                                R"(, "transform_config": {"config_groups": {"u": {}}})");
  EXPECT_EQ(
      said(layer({tensor("a.weight", fp8, {4, 64}), tensor("a.weight_scale", f32, {1})}, turned)),
      "a.weight: config.json has a transform_config, which changes the weights beside their codes and is not undone");
}

TEST(Spelling, Quark) {
  const auto config = [](const std::string& all, const std::string& own = "{}") {
    return R"({"quantization_config": {"quant_method": "quark", "exclude": ["lm_head"], "global_quant_config": {"weight": )" +
           all + R"(}, "layer_quant_config": )" + own + "}}";
  };
  const auto mx = [](const std::string& dtype) {
    return R"({"dtype": ")" + dtype + R"(", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"})";
  };
  const std::vector<TensorInfo> six = {tensor("a.weight", u8, {4, 48}), tensor("a.weight_scale", u8, {4, 2})};
  EXPECT_EQ(said(layer(six, config(mx("fp6_e3m2")))), "quark mxfp6-e3m2 a.weight [4, 64] 1x32 of 2");
  EXPECT_EQ(said(layer(six, config(mx("fp6_e2m3")))), "quark mxfp6 a.weight [4, 64] 1x32 of 2");
  EXPECT_EQ(said(layer(six, config(mx("fp4"), R"({"*.q": {}, "?": {"weight": )" + mx("fp6_e2m3") + "}}"))),
            "quark mxfp6 a.weight [4, 64] 1x32 of 2");
  EXPECT_EQ(said(layer({tensor("a.weight", u8, {4, 32}), tensor("a.weight_scale", u8, {4, 2})}, config(mx("fp4")))),
            "quark mxfp4 a.weight [4, 64] 1x32 of 2");
  EXPECT_EQ(said(layer(six, config(R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32})"))),
            "a.weight: config.json names another scheme of Quark than MXFP4 and MXFP6, and these alone are decoded");
}

TEST(Spelling, LayersThatAreListedAsNotQuantized) {
  const auto listed = [](const std::string& key, const std::string& names) {
    const std::string config = ct("float-quantized", R"({"num_bits": 8, "type": "float", "strategy": "tensor"})",
                                  ", \"" + key + "\": " + names);
    return find({tensor("a.q.weight", fp8, {4, 64}), tensor("a.q.weight_scale", f32, {1}),
                 tensor("b.weight", fp8, {4, 64}), tensor("b.weight_scale", f32, {1}),
                 tensor("lm_head.weight", f32, {4, 4})},
                config)
        .excluded;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(listed("ignore", R"(["lm_head", "re:.*\\.k$", "q", "*.v"])"), Names{});
  EXPECT_EQ(listed("ignore", R"(["lm_head", "a.q"])"), Names{"a.q.weight"});
  EXPECT_EQ(listed("ignore", R"(["re:.*\\.q$", "re:("])"), Names{"a.q.weight"});
  EXPECT_EQ(listed("exclude_modules", R"(["*"])"), (Names{"a.q.weight", "b.weight"}));
  std::string many = "[";  // longer than a pattern may be
  for (int i = 0; i < 200; ++i) many += "\"model.layers." + std::to_string(i) + ".*\", ";
  EXPECT_EQ(listed("ignore", many + "\"*.q\"]"), Names{"a.q.weight"});
}

// torchao's description of one weight: its subclass, attributes and the names of its parts.
std::string torchao(const std::string& type, const std::string& data, const std::string& parts) {
  return R"({"a.weight": {"_type": ")" + type + R"(", "_data": {)" + data + R"(}, "_tensor_data_names": [)" + parts +
         R"(]}, "b.weight": {"_type": "Tensor"}})";
}

std::string said_of_torchao(const std::vector<TensorInfo>& tensors, const std::string& description) {
  nlohmann::json texts = nlohmann::json::parse(description);
  for (nlohmann::json& text : texts) text = text.dump();
  return said(layer(tensors, texts.dump(), {}, std::string(torchao_text)));
}

TEST(Spelling, Torchao) {
  const std::vector<TensorInfo> float8 = {tensor("a._weight_qdata", fp8, {64, 128}),
                                          tensor("a._weight_scale", f32, {2, 2})};
  const std::string parts = R"("qdata", "scale")";
  EXPECT_EQ(said_of_torchao(float8, torchao("Float8Tensor", R"("block_size": [32, 64])", parts)),
            "torchao fp8-block a.weight [64, 128] 32x64 of 2");
  EXPECT_EQ(said_of_torchao(float8, torchao("Float8Tensor", R"("block_size": [1, 128])", parts)),
            "a._weight_scale: its description names blocks of 1 x 128, so a weight of [64, 128] has scales of [64, 1], "
            "and these are of [2, 2]");
  EXPECT_EQ(said_of_torchao(float8, torchao("Float8Tensor", R"("block_size": [64])", parts)),
            "a._weight_qdata: its block_size does not name a size above 0 for each dimension");
  EXPECT_EQ(said_of_torchao(float8, torchao("Float8Tensor", R"("block_size": [32, 64], "new": 1)", parts))
                .find("a._weight_qdata: its description has the key \"new\""),
            0u);
  EXPECT_EQ(said_of_torchao(float8, torchao("Float8Tensor", R"("block_size": [32, 64])", R"("qdata")")),
            "a._weight_scale: its description does not list the part \"a._weight_scale\"");
  EXPECT_EQ(said_of_torchao(float8, torchao("Float8Tensor", R"("block_size": [32, 64])", parts + R"(, "more")")),
            "a._weight_qdata: its codes need the tensor \"a._weight_more\", which is missing");
  EXPECT_EQ(said_of_torchao(float8, torchao("NewTensor", "", parts)),
            "a._weight_qdata: the type \"NewTensor\" of torchao is not decoded");
}

TEST(Spelling, TorchaosIntegers) {
  const std::string parts = R"("qdata", "scale", "zero_point")";
  const std::vector<TensorInfo> bytes = {tensor("a._weight_qdata", i8, {64, 128}),
                                         tensor("a._weight_scale", bf16, {64, 4}),
                                         tensor("a._weight_zero_point", i8, {64, 4})};
  const auto of_type = [](const std::string& type) {
    return R"("block_size": [1, 32], "target_dtype": {"_type": "torch.dtype", "_data": ")" + type + "\"}";
  };
  EXPECT_EQ(said_of_torchao(bytes, torchao("IntxUnpackedToInt8Tensor", of_type("int4"), parts)),
            "torchao int4-group a.weight [64, 128] 1x32 of 3");
  EXPECT_EQ(said_of_torchao(bytes, torchao("IntxUnpackedToInt8Tensor", of_type("uint4"), parts)),
            "a._weight_qdata: its target_dtype \"uint4\" is not one of integers of 8 bits or fewer");
  const std::vector<TensorInfo> pairs = {tensor("a._weight_qdata", i8, {64, 64}),
                                         tensor("a._weight_scale", bf16, {4, 64}),
                                         tensor("a._weight_zero_point", bf16, {4, 64})};
  EXPECT_EQ(said_of_torchao(pairs, torchao("Int4Tensor", R"("block_size": [1, 32], "shape": [64, 128])", parts)),
            "torchao int4-group a.weight [64, 128] 1x32 of 3");
  EXPECT_EQ(said_of_torchao(pairs, torchao("Int4Tensor", R"("block_size": [1, 32], "shape": [64, 127])", parts)),
            "a._weight_qdata: its description names another shape than [64, 128]");
  EXPECT_EQ(said_of_torchao(pairs, torchao("Int4Tensor", R"("block_size": [2, 32], "shape": [64, 128])", parts)),
            "a._weight_qdata: its blocks have several rows");
}

// All that transformers 5.24 knows.
TEST(Spelling, EveryMethodOfTransformersIsDecodedOrRefusedByName) {
  for (const char* method : {"awq",
                             "bitsandbytes_4bit",
                             "bitsandbytes_8bit",
                             "gptq",
                             "aqlm",
                             "quanto",
                             "quark",
                             "fouroversix",
                             "fp_quant",
                             "eetq",
                             "higgs",
                             "hqq",
                             "compressed-tensors",
                             "fbgemm_fp8",
                             "torchao",
                             "bitnet",
                             "vptq",
                             "spqr",
                             "fp8",
                             "gguf",
                             "nvfp4",
                             "mxfp8",
                             "auto-round",
                             "mxfp4",
                             "metal",
                             "sinq",
                             "gemma"}) {
    const std::string config = R"({"quantization_config": {"quant_method": ")" + std::string(method) + "\"}}";
    const FoundLayers found = find({tensor("a.weight", f32, {4, 4})}, config);
    EXPECT_EQ(found.refusal.find("not known"), std::string::npos) << method;
    EXPECT_EQ(found.refusal.empty(), reason_not_decoded(method).empty()) << method;
  }
  EXPECT_EQ(find({tensor("a.weight", f32, {4, 4})}, R"({"quantization_config": {"quant_method": "new"}})").refusal,
            "config.json names the quantization \"new\", which is not known");
}

TEST(Spelling, AMethodTellsOfItsListOfModules) {
  EXPECT_EQ(find_method(""), nullptr);
  EXPECT_EQ(find_method("hqq"), nullptr);
  EXPECT_TRUE(find_method("metal")->list_is_open);
  EXPECT_FALSE(find_method("mlx")->list_is_open);
  EXPECT_FALSE(find_method("quark")->list_is_open);
  EXPECT_TRUE(find_method("awq")->skips_head);
  for (const Spelling* spelling : all_spellings()) {
    for (const Method& method : spelling->methods) {
      const bool has_list = method.list_is_open || method.rest_is_quantized || method.skips_head;
      EXPECT_TRUE(!has_list || contains(unquantized_lists, method.list)) << method.name;
    }
  }
}

TEST(Spelling, DeepOrWrongConfigsDescribeNothing) {
  const std::string deep = R"({"quantization_config": {"quant_method": "fp8", "x": )" + std::string(100000, '[') +
                           std::string(100000, ']') + "}}";
  for (const std::string& config :
       {deep, std::string("{"), std::string("[]"), std::string(R"({"quantization_config": 3})"),
        std::string(R"({"quantization_config": {}})")}) {
    const FoundLayers found =
        find({tensor("a.weight", fp8, {4, 4}), tensor("a.weight_scale_inv", f32, {1, 1})}, config);
    EXPECT_TRUE(found.source.empty());
    EXPECT_TRUE(found.layers.empty());
  }
}

// Files know the sizes of all types of ggml, removed ones too; blocks know those that they decode.
TEST(Spelling, TypesOfGgufFilesHaveTheSizesOfBlocks) {
  for (const BlockFormat& format : block_formats()) {
    if (format.coding.gguf == GgufBlock::none) continue;
    std::string name(format.scheme);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const formats::gguf::TensorType* type = formats::gguf::find_type(name);
    ASSERT_NE(type, nullptr) << name;
    EXPECT_EQ(type->block_elements, block_size(format.coding.gguf).elements) << name;
    EXPECT_EQ(type->block_bytes, block_size(format.coding.gguf).bytes) << name;
  }
}

}  // namespace
}  // namespace tensorcast::quantized
