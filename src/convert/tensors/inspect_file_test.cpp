// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "convert/convert_testing.hpp"

namespace tensorcast {
namespace {

using namespace file_conversion::testing;

Result<TensorStats> stats_of(const std::string& path, const std::string& tensor, std::vector<DType> candidates) {
  return tensor_stats({.input = path, .tensors = {tensor}, .candidates = std::move(candidates)})
      .transform([](const std::vector<TensorStats>& stats) { return stats.front(); });
}

TEST(InspectFile, ListsWhatIsInside) {
  const TempFolder folder;
  const std::string path = write_safetensors(
      folder, "in.safetensors", {floats("a", {1, 2}), make_tensor("b", DType::uint8, {1, 3}, "xyz")}, {{"k", "v"}});
  const Result<FileSummary> summary = inspect({.input = path});
  ASSERT_TRUE(summary.ok()) << summary.error().describe();
  EXPECT_EQ(summary->format, "safetensors");
  EXPECT_EQ(summary->metadata, (formats::Metadata{{"k", "v"}}));
  ASSERT_EQ(summary->tensors.size(), 2u);
  EXPECT_EQ(summary->tensors[0].dtype, DType::float32);
  EXPECT_EQ(summary->tensors[1].name, "b");
  EXPECT_EQ(summary->tensors[1].shape, (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(summary->tensors[1].bytes, 3u);
}

TEST(InspectFile, NamesForeignTypes) {
  const Result<FileSummary> summary =
      inspect({.input = TENSORCAST_SOURCE_DIR "/src/formats/safetensors/testdata/valid/every-dtype.safetensors"});
  ASSERT_TRUE(summary.ok()) << summary.error().describe();
  for (const TensorSummary& tensor : summary->tensors) {
    EXPECT_EQ(tensor.foreign_dtype.empty(), is_castable(tensor.dtype)) << tensor.name;
  }
}

TEST(InspectFile, KnowsFilesByContent) {
  const TempFolder folder;
  const std::string path = write_safetensors(folder, "model.data", {floats("a", {1})});
  EXPECT_EQ(inspect({.input = path}).value().format, "safetensors");
}

TEST(InspectFile, RawBytesNeedALayout) {
  const TempFolder folder;
  const std::string path = folder.put("in.raw", "abcd");
  EXPECT_EQ(inspect({.input = path}).error().code, ErrorCode::invalid_argument);
  const Result<FileSummary> summary = inspect({.input = path, .raw = RawLayout{.dtype = DType::int4, .shape = {2, 4}}});
  ASSERT_TRUE(summary.ok()) << summary.error().describe();
  EXPECT_EQ(summary->tensors.at(0).dtype, DType::int4);
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{9}, {-1}, {1ll << 62, 1ll << 62}, {}}) {
    EXPECT_FALSE(inspect({.input = path, .raw = RawLayout{.dtype = DType::int4, .shape = shape}}).ok());
  }
  EXPECT_FALSE(inspect({.input = path, .raw = RawLayout{.dtype = DType::string, .shape = {1}}}).ok());
}

TEST(FileFormats, AreFoundByWhatTheyHold) {
  const std::vector<std::string_view> all = file_formats();
  EXPECT_NE(std::find(all.begin(), all.end(), "safetensors"), all.end());
  EXPECT_NE(std::find(all.begin(), all.end(), "raw"), all.end());
  std::vector<std::string_view> written = all;
  std::erase(written, "pytorch");  // only read
  EXPECT_EQ(file_formats_for(DType::float32), written);
  const std::vector<std::string_view> int4 = file_formats_for(DType::int4);
  EXPECT_EQ(std::find(int4.begin(), int4.end(), "safetensors"), int4.end());
}

TEST(TensorStats, SumUpOneTensor) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const TempFolder folder;
  std::vector<float> values(200'000, 0.5f);
  values[0] = nan;
  values[1] = -infinity;
  values[2] = 0.0f;
  values[3] = -0.0f;
  values[70'000] = -1e-3f;
  values.back() = 1e6f;
  const std::string path = write_safetensors(folder, "in.safetensors", {floats("x", {1}), floats("a", values)});
  const DType candidates[] = {DType::float16, DType::float32};
  const Result<TensorStats> stats = stats_of(path, "a", {std::begin(candidates), std::end(candidates)});
  ASSERT_TRUE(stats.ok()) << stats.error().describe();
  EXPECT_EQ(stats->count, values.size());
  EXPECT_EQ(stats->nan, 1u);
  EXPECT_EQ(stats->infinite, 1u);
  EXPECT_EQ(stats->zero, 2u);
  EXPECT_EQ(stats->negative, 2u);
  EXPECT_EQ(stats->min, static_cast<double>(-1e-3f));
  EXPECT_EQ(stats->max, 1e6);
  EXPECT_EQ(stats->smallest_nonzero_magnitude, static_cast<double>(1e-3f));
  ASSERT_EQ(stats->candidates.size(), 2u);
  EXPECT_EQ(stats->candidates[0].second.overflowed, 1u);
  EXPECT_EQ(stats->candidates[0].second.count, values.size());
  EXPECT_EQ(stats->candidates[1].second.inexact, 0u);
}

TEST(TensorStats, OfNothingAndOfNoTensor) {
  const TempFolder folder;
  const std::string path = write_safetensors(folder, "in.safetensors", {floats("a", {}), floats("b", {1})});
  const Result<TensorStats> stats = stats_of(path, "a", {});
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->count, 0u);
  EXPECT_EQ(stats->max, 0.0);
  EXPECT_EQ(stats_of(path, "c", {}).error().message, "there is no tensor \"c\"");
  EXPECT_EQ(stats_of(path, "", {}).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tensorcast
