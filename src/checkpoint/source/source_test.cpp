// SPDX-License-Identifier: Apache-2.0
// Checkpoints as they are read: source.hpp, shard_reader.hpp, to_file.hpp.
#include "checkpoint/source/source.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_testing.hpp"
#include "checkpoint/run/to_file.hpp"
#include "checkpoint/source/shard_reader.hpp"
#include "checkpoint/source/tensor_set.hpp"

namespace tensorcast::checkpoint {
namespace {

std::string message_of(const Result<SourceCheckpoint>& source) {
  return source ? std::string("fine") : source.error().message;
}

TEST(Source, HasModelsShardsAndOtherFiles) {
  const TestCheckpoint files;
  const SourceCheckpoint source = read_source(files.in()).value();
  ASSERT_EQ(source.models.size(), 1u);
  EXPECT_EQ(source.models[0].stem, "model");
  EXPECT_EQ(source.models[0].index, "model.safetensors.index.json");
  EXPECT_EQ(source.models[0].shards, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(source.shards[1].header.tensors.at(0).name, "b");
  EXPECT_EQ(source.others.size(), 2u);
  EXPECT_EQ(read_source(files.in() + "/model.safetensors.index.json").value().others.size(), 1u);
  EXPECT_EQ(read_source(files.in() + "/model-00001-of-00002.safetensors").value().shards.size(), 1u);
  EXPECT_EQ(source_folder("model.safetensors"), ".");
}

TEST(Source, SkipsFiles) {
  const TestCheckpoint files;
  const SourceCheckpoint source = read_source(files.in(), {"sub"}).value();
  ASSERT_EQ(source.left_out.size(), 1u);
  EXPECT_EQ(source.left_out[0].name, "sub/");
  EXPECT_NE(message_of(read_source(files.in(), {"model-*"})).find("which `skip_files` leaves out"), std::string::npos);
}

TEST(Source, SaysWhatIsWrong) {
  const TestCheckpoint files;
  files.put("model-00002-of-00002.safetensors", safetensors("a", 1.0F));
  EXPECT_NE(message_of(read_source(files.in())), "fine");
  files.put("model-00002-of-00002.safetensors", safetensors("c", 1.0F));
  EXPECT_NE(message_of(read_source(files.in())).find("the index says that the tensor is in"), std::string::npos);
  files.put("model-00002-of-00002.safetensors", safetensors("b", 1.0F).substr(0, 20));
  EXPECT_EQ(read_source(files.in()).error().hint, "the file is damaged or its download did not finish; fetch it again");
  std::filesystem::remove(files.in() + "/model-00002-of-00002.safetensors");
  EXPECT_EQ(message_of(read_source(files.in())),
            "the index names the file \"model-00002-of-00002.safetensors\", which is not there");
  std::filesystem::remove(files.in() + "/model.safetensors.index.json");
  EXPECT_EQ(message_of(read_source(files.in())), "shard 2 of 2 is not there, and no index names its shards");
  std::filesystem::remove(files.in() + "/model-00001-of-00002.safetensors");
  EXPECT_EQ(message_of(read_source(files.in())), "the folder has no .safetensors files, and none of PyTorch");
}

TEST(ShardReader, ReadsManyFilesAndNoticesChanges) {
  const TestCheckpoint files;
  constexpr std::size_t count = 2 * ShardReader::most_open + 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "t" + std::to_string(i);
    files.put("sub/" + name + ".safetensors", safetensors(name, static_cast<float>(i)));
  }
  const SourceCheckpoint source = read_source(files.in() + "/sub").value();
  ShardReader reader;
  for (const SourceModel& model : source.models) add_model(source, model, reader);
  ASSERT_EQ(reader.tensors().size(), count);
  const auto read = [&](std::size_t index) {
    float values[2] = {};
    const Result<void> got = reader.read(index, 0, std::as_writable_bytes(std::span(values)));
    return got ? "t" + std::to_string(static_cast<int>(values[0])) : got.error().message;
  };
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(read(i), reader.tensors()[i].name);
  }
  files.put("sub/t0.safetensors", safetensors("a longer name", 0.0F));
  EXPECT_EQ(read(0), "the file has changed since the conversion was planned");
}

TEST(ToFile, IsChosenByTheNameOfTheOutput) {
  const TestCheckpoint files;
  ConvertRequest request = files.request(DType::float16);
  const auto is_file = [&](const std::string& output) {
    request.output = output;
    return is_file_output(request);
  };
  EXPECT_TRUE(is_file(files.out() + ".safetensors"));
  EXPECT_FALSE(is_file(files.out() + ".safetensors/"));
  EXPECT_FALSE(is_file(files.out()));
  EXPECT_FALSE(is_file(files.in()));
  request.output = files.out() + ".safetensors";
  EXPECT_NE(convert_to_file(request).error().hint.find("`single_file`"), std::string::npos);
  request.single_file = true;
  const Result<ConvertOutcome> outcome = convert_to_file(request);
  ASSERT_TRUE(outcome) << outcome.error().describe();
  EXPECT_EQ(outcome->tensors.size(), 2u);
  request.output = "s3://bucket/out.safetensors";
  EXPECT_EQ(convert_to_file(request).error().message, "URLs are not read here") << "there is no store";
  request.output = files.out() + ".npy";
  EXPECT_NE(convert_to_file(request).error().message.find("holds exactly one array"), std::string::npos);
}

}  // namespace
}  // namespace tensorcast::checkpoint
