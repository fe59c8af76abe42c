// SPDX-License-Identifier: Apache-2.0
// Plans of checkpoints, and their text.
#include "checkpoint/plan/checkpoint_plan.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_testing.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast::checkpoint {
namespace {

using Names = std::vector<std::string>;

std::string folder_of(const io::TestFolder& folder) { return folder / "in"; }

Names shard_names(const CheckpointPlan& plan) {
  Names names;
  for (const PlannedShard& shard : plan.shards) names.push_back(shard.name);
  return names;
}

TEST(CheckpointPlan, KeepsShardsAndRewritesWhatNamesTypes) {
  const TestCheckpoint files;
  const CheckpointPlan plan = make_checkpoint_plan(files.request(DType::bfloat16)).value();
  EXPECT_EQ(shard_names(plan), (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
  ASSERT_EQ(plan.configs.size(), 1u);
  EXPECT_EQ(plan.configs[0].name, "config.json");
  EXPECT_EQ(plan.configs[0].dtype, DType::bfloat16);
  ASSERT_EQ(plan.copies.size(), 1u);
  EXPECT_EQ(plan.copies[0].name, "sub/README.md");
  ASSERT_EQ(plan.models.size(), 1u);
  EXPECT_EQ(plan.models[0].index, "model.safetensors.index.json");
  EXPECT_FALSE(plan.models[0].new_map);
  EXPECT_EQ(plan.folders(), (Names{"", "sub/"}));
  EXPECT_EQ(plan.shards[0].bytes_in, 8u);
  EXPECT_EQ(plan.shards[0].tensor_bytes, 4u);
  EXPECT_EQ(plan.disk_bytes(), plan.shards[0].bytes + plan.shards[1].bytes + 4);
  const ConvertOutcome outcome = outcome_of(plan, all_shards(plan));
  EXPECT_EQ(outcome.rewritten_files, (Names{"config.json", "model.safetensors.index.json"}));
  EXPECT_EQ(outcome.tensors.at(1).why, TypeReason::to);
}

TEST(CheckpointPlan, CutsAnew) {
  const TestCheckpoint files;
  ConvertRequest request = files.request(DType::undefined);
  request.single_file = true;
  const CheckpointPlan plan = make_checkpoint_plan(request).value();
  EXPECT_EQ(shard_names(plan), Names{"model.safetensors"});
  EXPECT_EQ(plan.models[0].index, "");
  EXPECT_TRUE(plan.configs.empty());
}

TEST(CheckpointPlan, ItsTextIsReadAsItWasWritten) {
  const TestCheckpoint files;
  ConvertRequest request = files.request(DType::float16);
  request.rules = {{.pattern = "^b$", .to = DType::float32, .scale = 2.0}};
  request.filter.rename = {{.pattern = "^a$", .replacement = "c"}};
  request.on_loss = OnLoss::tell;
  const CheckpointPlan plan = make_checkpoint_plan(request).value();
  const std::string text = plan_text(plan);
  const Result<CheckpointPlan> read = parse_plan(text, "plan");
  ASSERT_TRUE(read) << read.error().describe();
  EXPECT_EQ(plan_text(*read), text);
  const file_conversion::PlannedTensor scaled = read->tensors_of(read->shards.at(1)).at(0).planned;
  EXPECT_EQ(scaled.reason.why, TypeReason::rule);
  EXPECT_EQ(scaled.reason.number, 1u);
  EXPECT_EQ(scaled.scale(), 2.0);
  EXPECT_TRUE(scaled.casts());
  EXPECT_EQ(read->tensors_of(read->shards[0])[0].planned.name(), "a");
  const std::pair<std::string, std::string> damages[] = {{"\"why\":\"rule\"", "\"why\":\"--to\""},
                                                         {"\"begin\":", "\"begin\":9"},
                                                         {"\"c\"", "\"d\""},
                                                         {"tensorcast plan", "other plan"}};
  for (const auto& [from, to] : damages) {
    std::string damaged = text;
    ASSERT_NE(damaged.find(from), std::string::npos) << from << text;
    damaged.replace(damaged.find(from), from.size(), to);
    EXPECT_EQ(parse_plan(damaged, "plan").error().code, ErrorCode::parse) << from;
  }
}

TEST(CheckpointPlan, FingerprintsTellWhatDecidesTheBytes) {
  const TestCheckpoint files;
  const auto fingerprint = [&](DType to, std::size_t shard) {
    return make_checkpoint_plan(files.request(to)).value().shards[shard].fingerprint;
  };
  EXPECT_EQ(fingerprint(DType::float16, 0), fingerprint(DType::float16, 0));
  EXPECT_NE(fingerprint(DType::float16, 0), fingerprint(DType::bfloat16, 0));
  EXPECT_NE(fingerprint(DType::float16, 0), fingerprint(DType::float16, 1));
}

TEST(CheckpointPlan, SaysWhatCannotBe) {
  const TestCheckpoint files;
  const auto message = [](const ConvertRequest& request) {
    const Result<CheckpointPlan> plan = make_checkpoint_plan(request);
    return plan ? std::string("fine") : plan.error().message;
  };
  ConvertRequest request = files.request(DType::undefined);
  EXPECT_EQ(message(request), "there is no type to convert to");
  request.single_file = true;
  request.max_shard_bytes = 1;
  EXPECT_EQ(message(request), "a single file has no shards");
  request = files.request(DType::float16);
  request.raw.emplace();
  EXPECT_EQ(message(request), "a checkpoint is not raw bytes");
  request = files.request(DType::float16);
  request.from = DType::bfloat16;
  EXPECT_EQ(message(request), "the files of a checkpoint say the types of their tensors");
  request = files.request(DType::float16);
  request.input_format = "npy";
  EXPECT_EQ(message(request), "the formats of a checkpoint's files are told by their names and content");
  request = files.request(DType::float16);
  request.filter.drop = {"."};
  EXPECT_EQ(message(request), "no tensor is left to write");
  request = files.request(DType::float16);
  request.output = files.in() + "/out";
  EXPECT_EQ(message(request), "the output would be inside the folder of the input");
  files.put("config.json", "{");
  EXPECT_NE(message(files.request(DType::float16)), "fine");
}

TEST(CheckpointPlan, ABudgetsChoiceIsKeptAndNotMeasuredAgain) {
  io::TestFolder folder;
  std::filesystem::create_directories(folder_of(folder));
  std::vector<NamedTensor> tensors;
  for (const char* name : {"o_proj", "q_proj", "k_proj"}) {
    std::vector<float> numbers(32 * 64);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i * 37 % 101) - 50.0f;
    const auto bytes = std::as_bytes(std::span(numbers));
    tensors.push_back({"model.layers.0.self_attn." + std::string(name) + ".weight",
                       Tensor::own(DType::float32, {32, 64}, {bytes.begin(), bytes.end()}).value()});
  }
  const std::string file = folder_of(folder) + "/model.safetensors";
  ASSERT_TRUE(write_tensors(file, tensors));
  io::put_file(folder_of(folder) + "/config.json", "{}");
  int calls = 0;
  ConvertRequest request{folder_of(folder), folder / "out", DType::undefined};
  request.budget = 6.0;
  request.candidates = {"mxfp4", "mxfp6", "mxfp8"};
  request.rules = {{.pattern = "k_proj", .to = DType::undefined, .scheme = "mxfp4"}};
  request.on_progress = [&](const Progress&) { return ++calls > 0; };
  const CheckpointPlan plan = make_checkpoint_plan(request).value();
  EXPECT_GT(calls, 0);
  ASSERT_EQ(plan.choices.size(), 1u);
  EXPECT_EQ(plan.choices[0].weights.size(), 2u) << "rules name the third's scheme";
  const CheckpointPlan read = parse_plan(plan_text(plan), "plan").value();
  calls = 0;
  EXPECT_EQ(plan_text(make_checkpoint_plan(request, read.choices).value()), plan_text(plan));
  EXPECT_EQ(calls, 0) << "no weight was measured";
  // A scheme that does not exist, as by hand.
  std::vector<file_conversion::MadeChoice> damaged = read.choices;
  damaged[0].weights[0].scheme = "mxfp5";
  EXPECT_EQ(plan_text(make_checkpoint_plan(request, damaged).value()), plan_text(plan));
  EXPECT_GT(calls, 0);
  // Other options, and another file.
  for (const int change : {0, 1, 2, 3}) {
    ConvertRequest other = request;
    if (change == 0) other.budget = 5.0;
    if (change == 1) other.candidates.pop_back();
    if (change == 2) other.clip = Clip::mse;
    if (change == 3) {
      ASSERT_TRUE(write_tensors(file, tensors, {.overwrite = true}));
    }
    calls = 0;
    ASSERT_TRUE(make_checkpoint_plan(other, read.choices));
    EXPECT_GT(calls, 0) << change;
  }
}

// Writes a model of `layers` layers, each with three weights, into the folder "in".
void put_experts(const io::TestFolder& folder, int layers) {
  std::filesystem::remove_all(folder_of(folder));
  std::filesystem::create_directories(folder_of(folder));
  const std::vector<float> numbers(64, 1.5F);
  const auto bytes = std::as_bytes(std::span(numbers));
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < layers; ++i) {
    for (const char* name : {"up_proj", "gate_proj", "down_proj"}) {
      tensors.push_back({"model.layers.10.mlp.experts." + std::to_string(100 + i) + "." + name + ".weight",
                         Tensor::own(DType::float32, {2, 32}, {bytes.begin(), bytes.end()}).value()});
    }
  }
  ASSERT_TRUE(write_tensors(folder_of(folder) + "/model.safetensors", tensors));
  io::put_file(folder_of(folder) + "/config.json", "{}");
}

TEST(CheckpointPlan, SaysOfAQuantizedWeightInAFewBytesWhatItsRuleDoesNot) {
  const io::TestFolder folder;
  std::vector<std::size_t> quantized, decoded, rewritten;
  for (const int layers : {100, 200}) {
    put_experts(folder, layers);
    const std::string output = folder / ("nvfp4-" + std::to_string(layers));
    ConvertRequest request{folder_of(folder), output, DType::undefined};
    request.scheme = "nvfp4";
    quantized.push_back(plan_text(make_checkpoint_plan(request).value()).size());
    ASSERT_TRUE(convert_folder(request));
    const ConvertRequest decode{output, folder / "out", DType::bfloat16};
    decoded.push_back(plan_text(make_checkpoint_plan(decode).value()).size());
    ConvertRequest respell{output, folder / "out", DType::undefined};
    respell.respell = "compressed-tensors";
    rewritten.push_back(plan_text(make_checkpoint_plan(respell).value()).size());
  }
  const auto bytes_of_a_weight = [](const std::vector<std::size_t>& sizes) { return (sizes[1] - sizes[0]) / 300; };
  EXPECT_LE(bytes_of_a_weight(quantized), 200U);
  EXPECT_LE(bytes_of_a_weight(decoded), 250U);
  EXPECT_LE(bytes_of_a_weight(rewritten), 300U);
}

// Its tensors are in two shards, and so is what shares its scale.
TEST(CheckpointPlan, CutsTensorsOfALayerApart) {
  const io::TestFolder folder;
  put_experts(folder, 2);
  ConvertRequest request{folder_of(folder), folder / "out", DType::undefined};
  request.scheme = "nvfp4";
  request.max_shard_bytes = 33;
  const CheckpointPlan plan = make_checkpoint_plan(request).value();
  EXPECT_GT(plan.shards.size(), 5U);
  std::size_t parts = 0, tensors = 0;
  for (const PlannedShard& shard : plan.shards) {
    for (const ShardItem& item : shard.items) parts += std::get<LayerTensors>(item).tensors.empty() ? 0 : 1;
    tensors += shard.tensors;
  }
  EXPECT_GT(parts, 0U);
  EXPECT_EQ(tensors, plan.table.layers.size() * 3);
  const std::string text = plan_text(plan);
  EXPECT_EQ(plan_text(parse_plan(text, "plan").value()), text);
  std::string damaged = text;
  damaged.replace(damaged.find("\"layer\":0"), 9, "\"layer\":9");
  EXPECT_EQ(parse_plan(damaged, "plan").error().code, ErrorCode::parse);
  damaged = text;
  damaged.replace(damaged.find("\"version\": 6"), 12, "\"version\": 5");
  EXPECT_NE(parse_plan(damaged, "plan").error().message.find("another version"), std::string::npos);
  request.dry_run = false;
  ASSERT_TRUE(convert_folder(request));
  EXPECT_TRUE(verify_checkpoint({.checkpoint = request.output}));
}

}  // namespace
}  // namespace tensorcast::checkpoint
