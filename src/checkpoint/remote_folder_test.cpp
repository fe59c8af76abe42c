// Conversions between folders of a store: without locks, with the identity of the state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tensorcast/checkpoint.hpp"
#include "tensorcast/remote_store.hpp"

namespace tensorcast {
namespace {

class MemoryStore final : public RemoteStore {
 public:
  std::map<std::string, std::string> files;
  std::function<void(const std::string& url)> on_commit;  // after a file appears

  class Writer final : public RemoteWriter {
   public:
    Writer(MemoryStore& store, std::string url) : store_(store), url_(std::move(url)) {}
    Result<void> append(std::span<const std::byte> bytes) override {
      content_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    }
    Result<void> commit() override {
      store_.files[url_] = content_;
      if (store_.on_commit) store_.on_commit(url_);
      return {};
    }

   private:
    MemoryStore& store_;
    std::string url_;
    std::string content_;
  };

  Result<std::optional<RemoteFile>> find(const std::string& url) override {
    const auto found = files.find(url);
    if (found == files.end()) return std::optional<RemoteFile>();
    return std::optional(file_of(*found));
  }
  Result<std::vector<RemoteFile>> list(const std::string& folder) override {
    std::vector<RemoteFile> below;
    for (const auto& file : files) {
      if (file.first.starts_with(folder + "/")) below.push_back(file_of(file));
    }
    return below;
  }
  Result<bool> is_folder(const std::string& url) override {
    return std::ranges::any_of(files, [&](const auto& file) { return file.first.starts_with(url + "/"); });
  }
  Result<void> read(const std::string& url, std::uint64_t offset, std::span<std::byte> out) override {
    std::memcpy(out.data(), files.at(url).data() + offset, out.size());
    return {};
  }
  Result<std::unique_ptr<RemoteWriter>> create(const std::string& url) override {
    return std::unique_ptr<RemoteWriter>(std::make_unique<Writer>(*this, url));
  }
  Result<void> move(const std::string& from, const std::string& to) override {
    files[to] = files.at(from);
    files.erase(from);
    return {};
  }
  Result<void> remove(const std::vector<std::string>& urls) override {
    for (const std::string& url : urls) files.erase(url);
    return {};
  }

 private:
  static RemoteFile file_of(const std::pair<const std::string, std::string>& file) {
    return {.url = file.first,
            .bytes = file.second.size(),
            .version = std::to_string(std::hash<std::string>()(file.second))};
  }
};

std::string safetensors(const std::string& name, float value) {
  std::string header = R"({")" + name + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  const float values[] = {value, -value};
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  file += header;
  file.append(reinterpret_cast<const char*>(values), sizeof values);
  return file;
}

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

TEST_F(RemoteFolderTest, ConvertsAndReplacesWhatItWrote) {
  EXPECT_EQ(error_of(convert_checkpoint(request(DType::bfloat16))), "done");
  const std::string all = ".tcast-files.json SHA256SUMS a.safetensors c.safetensors config.json ";
  EXPECT_EQ(names(), all);
  EXPECT_EQ(store_->files["mem://b/out/config.json"], R"({"dtype": "bfloat16"})");
  EXPECT_NE(error_of(convert_checkpoint(request(DType::float16))).find("exists already"), std::string::npos);
  EXPECT_EQ(error_of(convert_checkpoint(request(DType::float16, true))), "done");
  EXPECT_EQ(names(), all);
  store_->files["mem://b/out/other.safetensors"] = "mine";
  EXPECT_NE(error_of(convert_checkpoint(request(DType::bfloat16, true))).find("other.safetensors"), std::string::npos);
  EXPECT_EQ(store_->files["mem://b/out/config.json"], R"({"dtype": "float16"})");
}

TEST_F(RemoteFolderTest, SaysThatFoldersOfPyTorchAreNotRead) {
  for (const char* name : {"pytorch_model.bin", ".metadata", "deep/__0_0.distcp"}) {
    store_->files = {{std::string("mem://b/in/") + name, "x"}};
    EXPECT_NE(error_of(convert_checkpoint(request(DType::bfloat16))).find("not read behind URLs"), std::string::npos);
  }
}

TEST_F(RemoteFolderTest, TheInputIsNeverTheOutput) {
  for (const char* output : {"mem://b/in", "mem://b/in/", "mem://b", "mem://b/in/new"}) {
    ConvertRequest inside = request(DType::bfloat16, true);
    inside.output = output;
    EXPECT_NE(error_of(convert_checkpoint(inside)).find("the input"), std::string::npos) << output;
  }
}

TEST_F(RemoteFolderTest, ARunOfAnOlderPlanFails) {
  ASSERT_EQ(error_of(plan_checkpoint(request(DType::bfloat16))), "done");
  // Somebody plans anew while the first shard is converted.
  bool once = true;
  store_->on_commit = [&](const std::string& url) {
    if (url.find("/shards/") == std::string::npos || !std::exchange(once, false)) return;
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
  ASSERT_EQ(error_of(convert_checkpoint(request(DType::bfloat16))), "done");
  const auto wanted = store_->files;
  std::map<std::string, std::string> crashed;
  store_->on_commit = [&](const std::string& url) {
    if (url.ends_with("/moving.json")) crashed = store_->files;
  };
  std::erase_if(store_->files, [](const auto& file) { return file.first.starts_with("mem://b/out/"); });
  ASSERT_EQ(error_of(convert_checkpoint(request(DType::bfloat16))), "done");
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
