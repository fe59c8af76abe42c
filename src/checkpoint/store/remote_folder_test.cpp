// SPDX-License-Identifier: Apache-2.0
// Folders of a store, and conversions between them: without locks, with the identity of the state.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>

#include "checkpoint/checkpoint_testing.hpp"
#include "checkpoint/store/folder.hpp"
#include "io/memory_store.hpp"
#include "tensorcast/byte_source.hpp"
#include "tensorcast/checkpoint.hpp"
#include "tensorcast/quantized_file.hpp"
#include "tensorcast/tensor_file.hpp"

namespace tensorcast {
namespace {

class RemoteFolderTest : public testing::Test {
 protected:
  RemoteFolderTest() {
    store_->files["mem://b/in/a.safetensors"] = safetensors("a", 1.5F);
    store_->files["mem://b/in/c.safetensors"] = safetensors("c", 2.5F);
    store_->files["mem://b/in/config.json"] = R"({"dtype": "float32"})";
    set_remote_store(store_);
  }
  ~RemoteFolderTest() override { set_remote_store(nullptr); }

  static ConvertRequest request(DType to, bool overwrite = false) {
    ConvertRequest request;
    request.input = "mem://b/in";
    request.output = "mem://b/out";
    request.to = to;
    request.overwrite = overwrite;
    return request;
  }
  static std::string error_of(const Result<ConvertOutcome>& outcome) {
    return outcome.ok() ? "done" : outcome.error().describe();
  }
  [[nodiscard]] std::string names() const {
    std::string names;
    for (const auto& [url, content] : store_->files) {
      if (url.starts_with("mem://b/out/")) names += url.substr(12) + " ";
    }
    return names;
  }

  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
};

TEST_F(RemoteFolderTest, HasNoFoldersLinksOrLocks) {
  const auto folder = checkpoint::Folder::open("mem://b/in").value();
  EXPECT_TRUE(folder->create_folder("new").ok());
  EXPECT_TRUE(checkpoint::is_folder("mem://b/in"));
  EXPECT_FALSE(checkpoint::is_folder("mem://b/in/new"));
  EXPECT_FALSE(folder->move_folder("new", "newer").value());
  EXPECT_FALSE(folder->lock("new", "lock", io::LockKind::exclusive, Error{}).value().has_value());
  EXPECT_TRUE(folder->sync_folder("new").ok());
  EXPECT_TRUE(checkpoint::has_folder_above("mem://nowhere/in"));
  EXPECT_TRUE(checkpoint::check_source("mem://b/in", "not-there").ok());
  EXPECT_EQ(checkpoint::real_path("mem://b/in//").value(), "mem://b/in");
  EXPECT_EQ(checkpoint::snapshot_of("mem://b").value(), "mem://b");
}

TEST_F(RemoteFolderTest, AFileIsOfTheStoreThatItWasOpenedIn) {
  const auto folder = checkpoint::Folder::open("mem://b/in").value();
  set_remote_store(nullptr);
  EXPECT_EQ(folder->read_text("config.json", 100).value(), R"({"dtype": "float32"})");
  EXPECT_EQ(checkpoint::Folder::open("mem://b/in").error().message, "URLs are not read here");
  EXPECT_FALSE(checkpoint::is_folder("mem://b/in"));
}

TEST_F(RemoteFolderTest, ReadsAcrossRequests) {
  std::string content(std::size_t{20} << 20, '\0');
  for (std::size_t i = 0; i < content.size(); i += 1000) content[i] = static_cast<char>(i / 1000);
  store_->files["mem://b/in/large"] = content;
  const auto file = checkpoint::open_source("mem://b/in", "large").value();
  std::string read(content.size(), ' ');
  std::size_t step = 1;  // of all sizes, so that some reads end in the next request's bytes
  for (std::size_t begin = 0; begin < read.size(); begin += step, step = step * 3 + 1) {
    step = std::min(step, read.size() - begin);
    ASSERT_TRUE(file.read(begin, std::as_writable_bytes(std::span(read).subspan(begin, step))).ok());
  }
  EXPECT_EQ(read, content);
  std::byte after{};
  EXPECT_EQ(file.read(content.size(), std::span(&after, 1)).error().code, ErrorCode::parse);
}

TEST_F(RemoteFolderTest, AFileOfSomebodyElseInTheStateIsLeftAlone) {
  store_->files["mem://b/out/.tcast/notes.txt"] = "mine";
  EXPECT_NE(error_of(convert_folder(request(DType::bfloat16, true))).find("not part of the state"), std::string::npos);
  EXPECT_EQ(store_->files["mem://b/out/.tcast/notes.txt"], "mine");
}

TEST_F(RemoteFolderTest, ConvertsAndReplacesWhatItWrote) {
  EXPECT_EQ(error_of(convert_folder(request(DType::bfloat16))), "done");
  const std::string all = ".tcast-files.json SHA256SUMS a.safetensors c.safetensors config.json ";
  EXPECT_EQ(names(), all);
  EXPECT_EQ(store_->files["mem://b/out/config.json"], R"({"dtype": "bfloat16"})");
  EXPECT_NE(error_of(convert_folder(request(DType::float16))).find("exists already"), std::string::npos);
  EXPECT_EQ(error_of(convert_folder(request(DType::float16, true))), "done");
  EXPECT_EQ(names(), all);
  store_->files["mem://b/out/other.safetensors"] = "mine";
  EXPECT_NE(error_of(convert_folder(request(DType::bfloat16, true))).find("other.safetensors"), std::string::npos);
  EXPECT_EQ(store_->files["mem://b/out/config.json"], R"({"dtype": "float16"})");
}

TEST_F(RemoteFolderTest, SingleFilesAreReadAndWrittenToo) {
  ConvertRequest request("mem://b/in/a.safetensors", "mem://b/out.npz", DType::float16);
  request.verify = true;
  request.parents = true;
  const Result<ConvertOutcome> outcome = convert(request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
  EXPECT_EQ(convert(request).error().describe(), "mem://b/out.npz: the file exists already; `overwrite` replaces it");
  Result<TensorFile> written = TensorFile::open("mem://b/out.npz");
  ASSERT_TRUE(written.ok()) << written.error().describe();
  EXPECT_EQ(written->summary().tensors[0].dtype, DType::float16);
  const Result<QuantizedFile> layers = QuantizedFile::open("mem://b/in/a.safetensors");
  ASSERT_TRUE(layers.ok()) << layers.error().describe();
  EXPECT_TRUE(layers->layers().empty());
  EXPECT_EQ(error_of(convert(ConvertRequest("mem://b/no.npz", "mem://b/o.npz"))),
            "mem://b/no.npz: there is no such file");
  request.input = "mem://b/in";
  request.output = "mem://b/whole.safetensors";
  request.single_file = true;
  request.filter.skip_files = {"c.safetensors"};
  const Result<ConvertOutcome> whole = convert(request);
  ASSERT_TRUE(whole.ok()) << whole.error().describe();
  EXPECT_EQ(whole->tensors.size(), 1u);
  EXPECT_TRUE(store_->files.contains("mem://b/whole.safetensors"));
}

TEST_F(RemoteFolderTest, ASourceIsConverted) {
  const std::string bytes = safetensors("a", 1.5F);
  ConvertRequest request("model.safetensors", "mem://b/out.safetensors", DType::float16);
  request.source = memory_source(std::as_bytes(std::span(bytes)));
  request.verify = true;
  const Result<ConvertOutcome> outcome = convert(request);
  ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
  EXPECT_EQ(outcome->bytes_read, bytes.size());
  const Result<TensorFile> written = TensorFile::open("mem://b/out.safetensors");
  EXPECT_EQ(written->summary().tensors[0].dtype, DType::float16);
  const Result<QuantizedFile> layers = QuantizedFile::open(request.source, "model.safetensors");
  ASSERT_TRUE(layers.ok()) << layers.error().describe();
  EXPECT_EQ(QuantizedFile::open(nullptr, "model").error().file, "model");
  request.source = memory_source(std::as_bytes(std::span(bytes)).first(20));
  EXPECT_EQ(convert(request).error().file, "model.safetensors");
}

TEST_F(RemoteFolderTest, SaysThatFoldersOfPyTorchAreNotRead) {
  for (const char* name : {"pytorch_model.bin", ".metadata", "deep/__0_0.distcp"}) {
    store_->files = {{std::string("mem://b/in/") + name, "x"}};
    EXPECT_NE(error_of(convert_folder(request(DType::bfloat16))).find("not read behind URLs"), std::string::npos);
  }
}

TEST_F(RemoteFolderTest, TheInputIsNeverTheOutput) {
  for (const char* output : {"mem://b/in", "mem://b/in/", "mem://b", "mem://b/in/new"}) {
    ConvertRequest inside = request(DType::bfloat16, true);
    inside.output = output;
    EXPECT_NE(error_of(convert_folder(inside)).find("the input"), std::string::npos) << output;
  }
}

TEST_F(RemoteFolderTest, ARunOfAnOlderPlanFails) {
  ASSERT_EQ(error_of(plan_checkpoint(request(DType::bfloat16))), "done");
  // Somebody plans anew while the first shard is converted.
  std::atomic<bool> once = true;
  store_->on_commit = [&](const std::string& url) {
    if (url.find("/shards/") == std::string::npos || !once.exchange(false)) return;
    EXPECT_EQ(error_of(plan_checkpoint(request(DType::float16, true))), "done");
  };
  ShardRequest shards;
  shards.output = "mem://b/out";
  EXPECT_NE(error_of(convert_shards(shards)).find("removed or replaced by somebody else"), std::string::npos);
  EXPECT_NE(error_of(finish_checkpoint("mem://b/out")).find("2 of 2 shards are not converted"), std::string::npos);
  EXPECT_EQ(error_of(convert_shards(shards)), "done");
  EXPECT_EQ(error_of(finish_checkpoint("mem://b/out")), "done");
  EXPECT_EQ(store_->files["mem://b/out/config.json"], R"({"dtype": "float16"})");
}

TEST_F(RemoteFolderTest, ACrashBetweenMoves) {
  ASSERT_EQ(error_of(convert_folder(request(DType::bfloat16))), "done");
  const auto wanted = store_->files;
  std::map<std::string, std::string> crashed;
  store_->on_commit = [&](const std::string& url) {
    if (url.ends_with("/moving.json")) crashed = store_->files;
  };
  std::erase_if(store_->files, [](const auto& file) { return file.first.starts_with("mem://b/out/"); });
  ASSERT_EQ(error_of(convert_folder(request(DType::bfloat16))), "done");
  for (const bool damaged : {true, false}) {
    store_->files = crashed;
    for (auto& [url, content] : crashed) {
      if (url.find("/shards/") == std::string::npos || url.ends_with(".json")) continue;
      if (content.find("\"a\"") == std::string::npos) continue;
      store_->files["mem://b/out/a.safetensors"] = damaged ? std::string(content.size(), '\0') : content;
      store_->files.erase(url);
    }
    const std::string error = error_of(finish_checkpoint("mem://b/out"));
    EXPECT_EQ(error == "done", !damaged) << error;
  }
  EXPECT_EQ(store_->files, wanted);
}

}  // namespace
}  // namespace tensorcast
