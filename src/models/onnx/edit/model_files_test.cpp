// SPDX-License-Identifier: Apache-2.0
// How a converted model gets its place: the check before, cancelling, what is in the way.
#include "models/onnx/edit/model_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "io/test_folder.hpp"
#include "models/onnx/ir/model_testing.hpp"
#include "tensorcast/onnx.hpp"

namespace tensorcast::models::onnx {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::tensorcast::onnx::ConvertOutcome;
using ::tensorcast::onnx::ConvertRequest;
using ::tensorcast::onnx::ExternalData;

class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() {
    const std::string bytes = model({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                     .inputs = {{"x", f32}},
                                     .outputs = {{"y", f32}},
                                     .initializers = {{"w", f32}}});
    io::put_file(folder_ / "m.onnx", bytes);
    request_ = {.input = folder_ / "m.onnx",
                .output = folder_ / "o.onnx",
                .to = DType::float16,
                .external_data = ExternalData::one,
                .external_threshold = 0,
                .check = [this](const std::string& made) { return check(made); }};
  }

  Result<void> check(const std::string& made) {
    ++checks_;
    seen_ = made;
    names_during_ = names();
    EXPECT_EQ(fs::path(made).filename(), fs::path(request_.output).filename());
    EXPECT_EQ(fs::hard_link_count(made), 1u);  // ONNX's checker demands it
    std::size_t data_files = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(made).parent_path())) {
      data_files += entry.path().extension() == ".data" ? 1 : 0;
      EXPECT_EQ(fs::hard_link_count(entry.path()), 1u);
    }
    EXPECT_EQ(data_files, 1u);
    const auto tensors = ::tensorcast::onnx::list_initializers(made);
    EXPECT_TRUE(tensors.ok() && tensors->tensors.front().problem.empty());
    return answer_;
  }

  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.insert(entry.path().filename().string());
    return found;
  }

  using Names = std::set<std::string>;
  io::TestFolder folder_;
  ConvertRequest request_;
  Result<void> answer_;
  int checks_ = 0;
  std::string seen_;
  Names names_during_;
};

TEST_F(ModelFilesTest, IsCheckedBeforeItIsInItsPlace) {
  const Result<ConvertOutcome> done = ::tensorcast::onnx::convert(request_);
  ASSERT_TRUE(done.ok()) << done.error().describe();
  EXPECT_EQ(checks_, 1);
  EXPECT_EQ(names_during_, (Names{"m.onnx", fs::path(seen_).parent_path().filename().string()}));
  EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx", "o.onnx.data"}));
  const std::string model = io::file_contents(folder_ / "o.onnx");
  const std::string data = io::file_contents(folder_ / "o.onnx.data");
  request_.check = {};
  request_.overwrite = true;
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_EQ(io::file_contents(folder_ / "o.onnx"), model);
  EXPECT_EQ(io::file_contents(folder_ / "o.onnx.data"), data);
}

TEST_F(ModelFilesTest, AModelWithGraphsThatTrainItIsRefused) {
  io::put_file(folder_ / "m.onnx", model({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                          .inputs = {{"x", f32}},
                                          .outputs = {{"y", f32}},
                                          .initializers = {{"w", f32}}},
                                         {.has_training = true}));
  const Error refused = ::tensorcast::onnx::convert(request_).error();
  EXPECT_EQ(refused.code, ErrorCode::unsupported);
  EXPECT_NE(refused.message.find("training_info"), std::string::npos);
  EXPECT_EQ(names(), Names{"m.onnx"});
}

TEST_F(ModelFilesTest, ACheckThatFailsLeavesNothing) {
  answer_ = Error{.code = ErrorCode::invalid_argument, .message = "it differs"};
  io::put_file(folder_ / "o.onnx", "old");
  io::put_file(folder_ / "o.onnx.data", "old data");
  request_.overwrite = true;
  EXPECT_EQ(::tensorcast::onnx::convert(request_).error().message, "it differs");
  EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx", "o.onnx.data"}));
  EXPECT_EQ(io::file_contents(folder_ / "o.onnx"), "old");
  EXPECT_EQ(io::file_contents(folder_ / "o.onnx.data"), "old data");
}

TEST_F(ModelFilesTest, AnExceptionOfTheCheckLeavesNothing) {
  request_.check = [](const std::string&) -> Result<void> { throw std::runtime_error("no"); };
  EXPECT_FALSE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_EQ(names(), Names{"m.onnx"});
}

TEST_F(ModelFilesTest, AModelInTheWayIsAnErrorBeforeTheCheck) {
  io::put_file(folder_ / "o.onnx", "theirs");
  EXPECT_EQ(::tensorcast::onnx::convert(request_).error().message, "the file exists already");
  EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx"}));
  EXPECT_EQ(checks_, 0);
}

// Names of external data with 8 digits of its hash.
std::set<std::string> hashed(const std::set<std::string>& names) {
  std::set<std::string> found;
  for (const std::string& name : names) {
    if (name.starts_with("o.onnx.") && name.ends_with(".data") &&
        name.size() == std::string("o.onnx.12345678.data").size())
      found.insert(name);
  }
  return found;
}

TEST_F(ModelFilesTest, DataNeverTakesTheNameOfAnotherFile) {
  io::put_file(folder_ / "o.onnx.data", "theirs");
  io::put_file(folder_ / "o.onnx.data.tcast-old", "theirs, too");
  for (const bool checked : {false, true}) {
    request_.overwrite = true;
    if (checked) {
      request_.check = [](const std::string& made) -> Result<void> {
        const auto tensors = ::tensorcast::onnx::list_initializers(made);
        EXPECT_TRUE(tensors.ok() && tensors->tensors.front().problem.empty());
        return {};
      };
    } else {
      request_.check = {};
    }
    ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
    EXPECT_EQ(io::file_contents(folder_ / "o.onnx.data"), "theirs");
    EXPECT_EQ(io::file_contents(folder_ / "o.onnx.data.tcast-old"), "theirs, too");
    EXPECT_EQ(hashed(names()).size(), 1u);  // the second time it has the data already
    EXPECT_EQ(names().size(), 5u);
    const auto tensors = ::tensorcast::onnx::list_initializers(folder_ / "o.onnx");
    EXPECT_TRUE(tensors.ok() && tensors->tensors.front().problem.empty());
  }
}

TEST_F(ModelFilesTest, OldDataGoesOnlyIfItIsOursAndNobodyNeedsIt) {
  request_.check = {};
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  ConvertRequest back{
      .input = folder_ / "o.onnx", .output = folder_ / "o.onnx", .to = DType::float32, .overwrite = true};
  ASSERT_TRUE(::tensorcast::onnx::convert(back).ok());
  EXPECT_EQ(names().size(), 3u);  // in place: the data of float16 was ours
  EXPECT_EQ(hashed(names()).size(), 1u);
  back.to = DType::float16;
  ASSERT_TRUE(::tensorcast::onnx::convert(back).ok());
  EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx", "o.onnx.data"}));

  fs::copy_file(folder_ / "o.onnx", folder_ / "other.onnx");  // names the same data
  back.to = DType::float32;
  ASSERT_TRUE(::tensorcast::onnx::convert(back).ok());
  EXPECT_TRUE(fs::exists(folder_ / "o.onnx.data"));
  const auto tensors = ::tensorcast::onnx::list_initializers(folder_ / "other.onnx");
  EXPECT_TRUE(tensors.ok() && tensors->tensors.front().problem.empty());

  const std::string ours = *hashed(names()).begin();
  io::put_file(folder_ / ours, "changed since");
  request_.overwrite = true;
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_EQ(io::file_contents(folder_ / ours), "changed since");
}

TEST_F(ModelFilesTest, AnOutputThatTheInputReadsIsRefused) {
  request_.check = {};
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  const std::string data = io::file_contents(folder_ / "o.onnx.data");
  ConvertRequest onto{
      .input = folder_ / "o.onnx", .output = folder_ / "o.onnx.data", .to = DType::float32, .overwrite = true};
  const Result<ConvertOutcome> done = ::tensorcast::onnx::convert(onto);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(
      ::tensorcast::onnx::clean({.input = folder_ / "o.onnx", .output = folder_ / "o.onnx.data", .overwrite = true})
          .error()
          .code,
      ErrorCode::invalid_argument);
  EXPECT_EQ(io::file_contents(folder_ / "o.onnx.data"), data);
}

TEST_F(ModelFilesTest, AFileThatAppearsMeanwhileStays) {
  for (const char* name : {"o.onnx", "o.onnx.data"}) {
    request_.check = [&](const std::string&) -> Result<void> {
      io::put_file(folder_ / name, "theirs");
      return {};
    };
    EXPECT_EQ(::tensorcast::onnx::convert(request_).error().message, "the file exists already");
    EXPECT_EQ(names(), (Names{"m.onnx", name}));
    EXPECT_EQ(io::file_contents(folder_ / name), "theirs");
    fs::remove(folder_ / name);
  }
}

TEST_F(ModelFilesTest, DataThatAnotherRunUsesStays) {
  request_.check = {};
  ConvertRequest other = request_;
  const auto after_data = [&](const std::function<bool()>& then) {
    request_.on_progress = [&, then] { return !fs::exists(folder_ / "o.onnx.data") || then(); };
  };
  after_data([&] {
    EXPECT_TRUE(::tensorcast::onnx::convert(other).ok());  // finds the data, and is done first
    return true;
  });
  EXPECT_EQ(::tensorcast::onnx::convert(request_).error().message, "the file exists already");
  EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx", "o.onnx.data"}));
  fs::remove(folder_ / "o.onnx");
  fs::remove(folder_ / "o.onnx.data");

  std::optional<io::InputFile> used;
  after_data([&] {
    used.emplace(io::InputFile::open(folder_ / "o.onnx.data").value());
    EXPECT_TRUE(used->keep());
    return false;
  });
  EXPECT_EQ(::tensorcast::onnx::convert(request_).error().code, ErrorCode::cancelled);
  EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx.data"}));
}

TEST_F(ModelFilesTest, ADryRunIsCheckedToo) {
  request_.dry_run = true;
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_EQ(checks_, 1);
  EXPECT_EQ(names(), Names{"m.onnx"});
  request_.output.clear();
  request_.check = [&](const std::string& made) -> Result<void> {
    seen_ = made;
    EXPECT_TRUE(fs::exists(made + ".data"));
    return {};
  };
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_NE(fs::path(seen_).parent_path().parent_path(), folder_.path());
  EXPECT_FALSE(fs::exists(fs::path(seen_).parent_path()));
  EXPECT_EQ(names(), Names{"m.onnx"});
}

TEST_F(ModelFilesTest, CancellingAtAnyCallLeavesNothing) {
  for (const bool checked : {false, true}) {
    if (!checked) request_.check = {};
    if (checked) request_.check = [this](const std::string& made) { return check(made); };
    for (int wanted = 1;; ++wanted) {
      ASSERT_LT(wanted, 50);
      int calls = 0;
      request_.on_progress = [&] { return ++calls != wanted; };
      const Result<ConvertOutcome> done = ::tensorcast::onnx::convert(request_);
      if (done.ok()) break;
      EXPECT_EQ(done.error().code, ErrorCode::cancelled) << done.error().describe();
      EXPECT_EQ(names(), Names{"m.onnx"});
    }
    EXPECT_EQ(names(), (Names{"m.onnx", "o.onnx", "o.onnx.data"}));
    fs::remove(folder_ / "o.onnx");
    fs::remove(folder_ / "o.onnx.data");
  }
}

TEST_F(ModelFilesTest, TheModelItselfCanBeReplaced) {
  request_.output = request_.input;
  request_.overwrite = true;
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_EQ(names(), (Names{"m.onnx", "m.onnx.data"}));
  EXPECT_EQ(checks_, 1);
  request_.check = {};
  request_.external_data = ExternalData::as_is;  // the data that the new model takes the place of
  request_.to = DType::float32;
  ASSERT_TRUE(::tensorcast::onnx::convert(request_).ok());
  EXPECT_EQ(names().size(), 2u);  // the old data was ours
  EXPECT_FALSE(fs::exists(folder_ / "m.onnx.data"));
}

}  // namespace
}  // namespace tensorcast::models::onnx
