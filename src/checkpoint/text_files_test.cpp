// Names, JSON positions, indexes and configs, which come from files and may be hostile.
#include <gtest/gtest.h>

#include "checkpoint/config_file.hpp"
#include "checkpoint/file_name.hpp"
#include "checkpoint/finish.hpp"
#include "checkpoint/index_file.hpp"
#include "checkpoint/json_text.hpp"
#include "io/sha256.hpp"
#include "io/test_folder.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

TEST(FileName, StaysInTheFolder) {
  for (const char* good : {"a", "a.safetensors", "unet/a.b", "..a", "a..", ".hidden", "a b/c"}) {
    EXPECT_TRUE(check_file_name(good, "")) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string(".."), std::string("a/../b"), std::string("a//b"),
        std::string("a/"), std::string("./a"), std::string("a\0b", 3), std::string(256, 'a'), std::string(5000, 'a')}) {
    const Result<void> checked = check_file_name(bad, "index");
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().code, ErrorCode::parse);
    EXPECT_EQ(checked.error().file, "index");
  }
}

TEST(PathName, IsNotCutAtAZeroByte) {
  const io::TestFolder folder;
  const std::string kept = folder / "out";
  ASSERT_TRUE(write_whole_file(kept, "kept").ok());
  const std::string path = kept + std::string("\0more", 5);
  const auto expect_refused = [](const auto& result) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "the path contains a zero byte");
  };
  expect_refused(read_whole_file(path, 100));
  expect_refused(write_whole_file(path, "other", {.overwrite = true}));
  expect_refused(convert_checkpoint({path, kept, DType::float16}));
  expect_refused(convert_checkpoint({".", path, DType::float16}));
  expect_refused(finish_checkpoint(path));
  EXPECT_EQ(io::file_contents(kept), "kept");
}

TEST(FileName, OfShardsAndIndexes) {
  ShardName shard;
  ASSERT_TRUE(parse_shard_name("model.fp16-00002-of-00010.safetensors", shard));
  EXPECT_EQ(shard.stem, "model.fp16");
  EXPECT_EQ(shard.number, 2u);
  EXPECT_EQ(shard.count, 10u);
  for (const char* other : {"model.safetensors", "model-1-of-2.safetensors", "00001-of-00002.safetensors",
                            "model-00001-of-99999999999.safetensors"}) {
    EXPECT_FALSE(parse_shard_name(other, shard)) << other;
  }
  EXPECT_EQ(shard_name("model", 3, 12), "model-00003-of-00012.safetensors");
  EXPECT_EQ(shard_name("model", 1, 1), "model.safetensors");
  for (const char* stem : {"model", "model.fp16", "diffusion_pytorch_model"}) {
    EXPECT_EQ(stem_of_index(index_name(stem)), stem);
  }
  EXPECT_EQ(index_name("model.fp16"), "model.safetensors.index.fp16.json");
  EXPECT_EQ(stem_of_index("model.safetensors"), "");
  EXPECT_EQ(stem_of_index("config.json"), "");
}

TEST(FileName, OfPyTorch) {
  for (const char* weights : {"pytorch_model.bin", "a/pytorch_model-00001-of-00002.bin", "pytorch_model.fp16.bin",
                              "diffusion_pytorch_model.bin", "adapter_model.bin", "pytorch_model_1.bin",
                              "pytorch_model.fp16-00001-of-00002.bin"}) {
    EXPECT_TRUE(is_torch_weights_name(weights)) << weights;
  }
  for (const char* other : {"training_args.bin", "optimizer.bin", "pytorch_model.pt", "model.safetensors", "bin"}) {
    EXPECT_FALSE(is_torch_weights_name(other)) << other;
  }
  EXPECT_EQ(safetensors_name("unet/pytorch_model-00001-of-00002.bin"), "unet/model-00001-of-00002.safetensors");
  EXPECT_EQ(safetensors_name("pytorch_model.fp16.bin"), "model.fp16.safetensors");
  EXPECT_EQ(safetensors_name("diffusion_pytorch_model.bin"), "diffusion_pytorch_model.safetensors");
  EXPECT_EQ(safetensors_name("pytorch_model_1.bin"), "pytorch_model_1.safetensors");
  EXPECT_EQ(safetensors_name("consolidated.00.pth"), "consolidated.00.safetensors");
  EXPECT_EQ(safetensors_name("step-1/.metadata"), "step-1/model.safetensors");
  EXPECT_EQ(safetensors_name("pytorch_model.safetensors"), "pytorch_model.safetensors");
  EXPECT_EQ(stem_of_torch_index("pytorch_model.bin.index.fp16.json"), "pytorch_model.fp16");
  EXPECT_EQ(stem_of_torch_index("model.safetensors.index.json"), "");
}

TEST(JsonText, VisitsEveryValueWithItsPlace) {
  const std::string text = " {\"a\": [1, {\"b\\\"\": \"x,]}\"}, []], \"c\":{} , \"d\" : null}";
  std::vector<std::string> seen;
  const Result<void> visited = visit_json(text, [&](const JsonPath& path, const JsonValue& value) {
    std::string keys;
    for (const std::string& key : path) keys += key + "/";
    EXPECT_EQ(text.substr(value.begin, value.text.size()), value.text);
    seen.push_back(keys + std::string(value.text));
  });
  ASSERT_TRUE(visited) << visited.error().describe();
  const std::vector<std::string> wanted = {"a/[]/1",
                                           "a/[]/b\"/\"x,]}\"",
                                           "a/[]/{\"b\\\"\": \"x,]}\"}",
                                           "a/[]/[]",
                                           "a/[1, {\"b\\\"\": \"x,]}\"}, []]",
                                           "c/{}",
                                           "d/null",
                                           text.substr(1)};
  EXPECT_EQ(seen, wanted);
}

TEST(JsonText, FailsOnOtherText) {
  const std::string deep = std::string(101, '[') + std::string(101, ']');
  for (const std::string& text : {std::string(), std::string("{"), std::string("{\"a\" 1}"), std::string("[1,]"),
                                  std::string("{}\0", 3), deep, std::string(1000000, '[')}) {
    const Result<void> visited = visit_json(text, [](const JsonPath&, const JsonValue&) {});
    ASSERT_FALSE(visited);
    EXPECT_EQ(visited.error().code, ErrorCode::parse);
  }
}

TEST(ConfigFile, ChangesTheTypeAndNothingElse) {
  const std::string text =
      "{\"torch_dtype\":\"torch.float32\",  \"dtype\": \"auto\",\n\t\"text_config\": {\"dtype\":\"half\", "
      "\"rope\": {\"dtype\": \"float32\"}}, \"quantization_config\": {\"torch_dtype\": \"float32\"}, "
      "\"x\": \"torch_dtype\", \"torch_dtypes\": \"float32\", \"thinker_config\": {\"text_config\": "
      "{\"torch_dtype\": \"float32\", \"dtype\": null}}, \"vision_config\": {\"dtype\": [\"float32\"]}}";
  const Result<std::string> changed = with_dtype(text, DType::bfloat16);
  ASSERT_TRUE(changed);
  std::string wanted = text;
  const auto replace = [&](const std::string& from, const std::string& to) {
    wanted.replace(wanted.find(from), from.size(), to);
  };
  replace("\"torch.float32\"", "\"torch.bfloat16\"");
  replace("\"dtype\":\"half\"", "\"dtype\":\"bfloat16\"");
  replace("{\"text_config\": {\"torch_dtype\": \"float32\"", "{\"text_config\": {\"torch_dtype\": \"bfloat16\"");
  EXPECT_EQ(*changed, wanted);
}

// As Python's json writes it, and Mamba's configs have it.
TEST(ConfigFile, TakesNumbersThatAreNotFinite) {
  const std::string text =
      "{\"time_step_limit\": [0.0, Infinity], \"low\":-Infinity, \"x\": NaN, \"NaN\": \"\\\"NaN\", \"dtype\": "
      "\"float32\"}";
  const Result<std::string> changed = with_dtype(text, DType::bfloat16);
  ASSERT_TRUE(changed);
  std::string wanted = text;
  wanted.replace(wanted.find("float32"), 7, "bfloat16");
  EXPECT_EQ(*changed, wanted);
  for (const char* wrong : {"{\"a\": NaNs}", "{\"a\": Infinit}", "{NaN: 1}"}) {
    EXPECT_FALSE(with_dtype(wrong, DType::bfloat16)) << wrong;
  }
}

TEST(IndexFile, KeepsEverythingButSizeAndMap) {
  const std::string text = "{ \"metadata\" : {\"a\":1,\"total_size\" : 7},\"weight_map\":{\"x\":\"f\"}, \"more\": [] }";
  Result<std::string> same_map = rewritten_index(text, 99, {});
  ASSERT_TRUE(same_map);
  EXPECT_EQ(*same_map, "{ \"metadata\" : {\"a\":1,\"total_size\" : 99},\"weight_map\":{\"x\":\"f\"}, \"more\": [] }");
  const std::string new_map = "{\n    \"y\": \"g\"\n  }";
  EXPECT_EQ(*rewritten_index(text, 1, {{"y", "g"}}),
            "{ \"metadata\" : {\"a\":1,\"total_size\" : 1},\"weight_map\":" + new_map + ", \"more\": [] }");
  // DeepSeek's script writes empty metadata, others none.
  EXPECT_EQ(*rewritten_index("{\"metadata\": {}, \"weight_map\": {}}", 5, {}),
            "{\"metadata\": {\"total_size\": 5}, \"weight_map\": {}}");
  EXPECT_EQ(*rewritten_index("{\"metadata\": {\"k\": 1}, \"weight_map\": {}}", 5, {}),
            "{\"metadata\": {\"total_size\": 5, \"k\": 1}, \"weight_map\": {}}");
  EXPECT_EQ(*rewritten_index("{\"weight_map\": {}}", 5, {}),
            "{\n  \"metadata\": {\"total_size\": 5},\"weight_map\": {}}");
  const Result<std::string> fresh = rewritten_index("", 5, {{"t", "f.safetensors"}});
  ASSERT_TRUE(fresh);
  const Result<WeightMap> read = parse_index(*fresh, "index");
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ(*read, (WeightMap{{"t", "f.safetensors"}}));
}

TEST(Sha256, OfKnownTexts) {
  EXPECT_EQ(io::sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(io::sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sums_line("00", "a b"), "00  a b\n");
  EXPECT_EQ(sums_line("00", "a\\b\nc"), "\\00  a\\\\b\\nc\n");
}

TEST(TensorKind, OfUsualNames) {
  const std::pair<const char*, TensorKind> rows[] = {
      {"model.embed_tokens.weight", TensorKind::embedding},
      {"transformer.wte.weight", TensorKind::embedding},
      {"shared.weight", TensorKind::embedding},
      {"bert.embeddings.LayerNorm.weight", TensorKind::norm},
      {"model.layers.0.self_attn.q_proj.weight", TensorKind::attention},
      {"model.layers.0.self_attn.q_norm.weight", TensorKind::norm},
      {"model.layers.0.mlp.experts.3.up_proj.weight", TensorKind::expert},
      {"model.layers.0.block_sparse_moe.gate.weight", TensorKind::router},
      {"model.layers.0.mlp.gate_proj.weight", TensorKind::feed_forward},
      {"encoder.block.0.layer.1.DenseReluDense.wi.weight", TensorKind::feed_forward},
      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", TensorKind::embedding},
      {"lm_head.weight", TensorKind::head},
      {"output.weight", TensorKind::head},
      {"bert.encoder.layer.0.output.dense.weight", TensorKind::feed_forward},
      {"model.layers.0.mlp.down_proj.weight_scale_inv", TensorKind::scale},
      {"down_blocks.0.resnets.0.conv1.weight", TensorKind::convolution},
      {"something", TensorKind::other},
      {"", TensorKind::other},
  };
  for (const auto& [tensor, kind] : rows) EXPECT_EQ(name(tensor_kind(tensor, 2)), name(kind)) << tensor;
  EXPECT_EQ(tensor_kind(std::string(100000, 'x') + ".lm_head.weight", 2), TensorKind::head);
}

}  // namespace
}  // namespace tensorcast::checkpoint
