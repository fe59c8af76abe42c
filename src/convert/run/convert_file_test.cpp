// SPDX-License-Identifier: Apache-2.0
// Results of conversions; for failures see convert_failures_test.cpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "convert/convert_testing.hpp"

namespace tensorcast {
namespace {

using namespace file_conversion::testing;
using Shape = std::vector<std::int64_t>;

class ConvertFile : public ::testing::Test {
 protected:
  ConvertOutcome convert_ok(const ConvertRequest& request) {
    Result<ConvertOutcome> outcome = convert_file(request);
    EXPECT_TRUE(outcome.ok()) << outcome.error().describe();
    return outcome.ok() ? std::move(outcome).value() : ConvertOutcome{};
  }

  TempFolder folder_;
  std::string out_ = folder_.file("out.safetensors");
};

TEST_F(ConvertFile, FloatsBecomeTheTypeAndTheRestStaysAsItIs) {
  const FileTensor weights = floats("layer.weight", {1.0f, 0.1f, -3e38f, 1e-40f});
  const FileTensor ids = make_tensor("ids", DType::int64, {1}, std::string("\x01\x02\x03\x04\x05\x06\x07\x08"));
  const FileTensor mask = make_tensor("mask", DType::boolean, {3}, std::string("\x01\x00\x07", 3));
  const FileTensor half = make_tensor("half", DType::float16, {2}, std::string("\x00\x3c\x01\x7e", 4));
  const std::string in =
      write_safetensors(folder_, "in.safetensors", {ids, weights, half, mask}, {{"format", "pt"}, {"k", "v"}});

  const ConvertOutcome outcome = convert_ok(request(in, out_, DType::bfloat16));
  EXPECT_EQ(outcome.input_format, "safetensors");
  EXPECT_EQ(outcome.bytes_written, std::filesystem::file_size(out_));
  ASSERT_EQ(outcome.tensors.size(), 4u);
  EXPECT_EQ(outcome.tensors[0].reason, "integer");
  EXPECT_EQ(outcome.tensors[1].reason, "`to`");
  EXPECT_EQ(outcome.tensors[1].bytes_in, 16u);
  EXPECT_EQ(outcome.tensors[1].bytes_out, 8u);
  EXPECT_EQ(outcome.tensors[3].reason, "bool");

  const std::vector<FileTensor> result = read_safetensors(out_);
  ASSERT_EQ(result.size(), 4u);
  EXPECT_EQ(result[0].info.name, "ids");
  EXPECT_EQ(result[0].bytes, ids.bytes);
  EXPECT_EQ(result[1].info.dtype, DType::bfloat16);
  EXPECT_EQ(result[1].bytes, cast_bytes(weights.bytes, DType::float32, DType::bfloat16, 4));
  EXPECT_EQ(result[2].info.dtype, DType::bfloat16);
  EXPECT_EQ(result[3].bytes, mask.bytes) << "a bool that is not 0 or 1 is not ours to mend";
  const Result<FileSummary> summary = inspect({.input = out_});
  ASSERT_TRUE(summary.ok());
  EXPECT_EQ(summary->metadata, (formats::Metadata{{"format", "pt"}, {"k", "v"}}));
}

TEST_F(ConvertFile, RulesComeFirstAndTheFirstMatchWins) {
  const std::string in =
      write_safetensors(folder_, "in.safetensors",
                        {floats("lm_head.weight", {1}), floats("norm.weight", {2}), floats("mlp.weight", {3}),
                         floats("bias", {4}), make_tensor("counts", DType::int32, {1}, "abcd")});
  ConvertRequest convert = request(in, out_, DType::float8_e4m3fn);
  convert.rules = {{"^lm_head", DType::float16}, {"weight$", DType::bfloat16}, {"counts", DType::int64}};
  convert.exclude = {"norm"};
  const ConvertOutcome outcome = convert_ok(convert);
  std::vector<std::pair<DType, std::string>> results;
  for (const TensorOutcome& tensor : outcome.tensors) results.emplace_back(tensor.to, tensor.reason);
  EXPECT_EQ(results, (std::vector<std::pair<DType, std::string>>{{DType::float16, "rule 1"},
                                                                 {DType::float32, "excluded"},
                                                                 {DType::bfloat16, "rule 2"},
                                                                 {DType::float8_e4m3fn, "`to`"},
                                                                 {DType::int64, "rule 3"}}));
  EXPECT_EQ(read_safetensors(out_).size(), 5u);
}

TEST_F(ConvertFile, IncludeNamesAllThatMayChange) {
  const std::string in =
      write_safetensors(folder_, "in.safetensors", {floats("a.weight", {1}), floats("b.weight", {2})});
  ConvertRequest convert = request(in, out_, DType::float16);
  convert.include = {"^b"};
  const ConvertOutcome outcome = convert_ok(convert);
  EXPECT_EQ(outcome.tensors[0].reason, "not included");
  EXPECT_EQ(outcome.tensors[0].to, DType::float32);
  EXPECT_EQ(outcome.tensors[1].to, DType::float16);
}

TEST_F(ConvertFile, DryRunPlansAndWritesNothing) {
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("a", {1, 2, 3})});
  ConvertRequest convert = request(in, out_, DType::float16);
  convert.dry_run = true;
  const ConvertOutcome outcome = convert_ok(convert);
  EXPECT_EQ(outcome.tensors.at(0).bytes_out, 6u);
  EXPECT_EQ(outcome.bytes_written, 0u);
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(ConvertFile, ManyBlocksAreOneTensor) {
  const std::vector<float> values = many_values(1'500'001);
  const FileTensor tensor = floats("a", values);
  const std::string in = write_safetensors(folder_, "in.safetensors", {tensor, floats("b", {1})});
  for (const DType to : {DType::bfloat16, DType::float8_e5m2, DType::float64, DType::int16}) {
    ConvertRequest convert = request(in, out_, to);
    convert.overwrite = true;
    convert_ok(convert);
    const std::vector<FileTensor> result = read_safetensors(out_);
    ASSERT_EQ(result.size(), 2u);
    EXPECT_TRUE(result[0].bytes == cast_bytes(tensor.bytes, DType::float32, to, values.size())) << name(to);
  }
}

TEST_F(ConvertFile, SubByteElementsOfManyBlocksStayPacked) {
  const std::vector<float> values = many_values(4'500'003);
  const std::string in = folder_.put("in.raw", floats("", values).bytes);
  ConvertRequest convert = request(in, folder_.file("out.raw"), DType::int2);
  convert.raw = RawLayout{.dtype = DType::float32, .shape = {4'500'003}};
  convert_ok(convert);
  const std::string narrow = file_content(convert.output);
  EXPECT_TRUE(narrow == cast_bytes(floats("", values).bytes, DType::float32, DType::int2, values.size()));

  ConvertRequest back = request(convert.output, folder_.file("back.raw"), DType::float64);
  back.raw = RawLayout{.dtype = DType::int2, .shape = {4'500'003}};
  back.verify = true;
  EXPECT_TRUE(convert_ok(back).verified);
  EXPECT_TRUE(file_content(back.output) == cast_bytes(narrow, DType::int2, DType::float64, values.size()));
}

TEST_F(ConvertFile, ReportCoversTheWholeTensor) {
  std::vector<float> values = many_values(3'000'000);
  values[5] = 1e30f;
  values.back() = std::numeric_limits<float>::quiet_NaN();
  const std::string in =
      write_safetensors(folder_, "in.safetensors", {floats("a", values), make_tensor("i", DType::uint8, {1}, "x")});
  ConvertRequest convert = request(in, out_, DType::float16);
  convert.report = true;
  convert.execution.threads = 2;
  const ConvertOutcome outcome = convert_ok(convert);
  ASSERT_TRUE(outcome.tensors[0].report.has_value());
  EXPECT_EQ(outcome.tensors[0].report->count, values.size());
  EXPECT_EQ(outcome.tensors[0].report->overflowed, 1u);
  EXPECT_GT(outcome.tensors[0].report->inexact, 1'000'000u);
  EXPECT_FALSE(outcome.tensors[1].report.has_value()) << "it is only copied";
}

TEST_F(ConvertFile, InPlace) {
  const FileTensor tensor = floats("a", many_values(500'000));
  const std::string in = write_safetensors(folder_, "model.safetensors", {tensor});
  ConvertRequest convert = request(in, in, DType::bfloat16);
  EXPECT_EQ(convert_file(convert).error().message, "the file exists already");
  convert.overwrite = true;
  convert_ok(convert);
  EXPECT_TRUE(read_safetensors(in).at(0).bytes ==
              cast_bytes(tensor.bytes, DType::float32, DType::bfloat16, tensor.info.count));
}

TEST_F(ConvertFile, OneArrayIsMeantWhateverItsType) {
  ConvertRequest convert = request(folder_.put("embedding.v2.raw", "abcdef"), out_, DType::float32);
  convert.raw = RawLayout{.dtype = DType::uint8, .shape = {2, 3}};
  convert_ok(convert);
  const std::vector<FileTensor> result = read_safetensors(out_);
  ASSERT_EQ(result.size(), 1u);
  EXPECT_EQ(result[0].info.name, "embedding") << "an array without a name gets that of its file";
  EXPECT_EQ(result[0].info.shape, (Shape{2, 3}));
  EXPECT_EQ(result[0].info.dtype, DType::float32);
}

TEST_F(ConvertFile, ForeignTypesAreCopiedByteForByte) {
  const std::string in =
      (std::filesystem::path(TENSORCAST_SOURCE_DIR) / "src/formats/safetensors/testdata/valid/every-dtype.safetensors")
          .string();
  const ConvertOutcome outcome = convert_ok(request(in, out_, DType::float32));
  const std::vector<FileTensor> before = read_safetensors(in);
  const std::vector<FileTensor> after = read_safetensors(out_);
  ASSERT_EQ(before.size(), after.size());
  std::size_t foreign = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].info.foreign_dtype.empty()) continue;
    ++foreign;
    const auto same = std::find_if(after.begin(), after.end(),
                                   [&](const FileTensor& tensor) { return tensor.info.name == before[i].info.name; });
    ASSERT_NE(same, after.end());
    EXPECT_EQ(same->info.foreign_dtype, before[i].info.foreign_dtype);
    EXPECT_EQ(same->bytes, before[i].bytes);
    EXPECT_EQ(outcome.tensors[i].reason, before[i].info.foreign_dtype);
  }
  EXPECT_EQ(foreign, 1u);  // C64
}

TEST_F(ConvertFile, NarrowerTensorsNeverMisalignTheOthers) {
  const FileTensor ids = make_tensor("ids", DType::int64, {1}, "12345678");
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("a", {1, 2, 3}), floats("b", {4}), ids});
  ConvertRequest convert = request(in, out_, DType::undefined);
  convert.rules = {{"a", DType::float8_e5m2}};
  convert.verify = true;
  const ConvertOutcome outcome = convert_ok(convert);
  EXPECT_TRUE(outcome.verified);
  EXPECT_EQ(outcome.tensors[0].name, "a") << "the outcome is in the order of the input";
  const std::vector<FileTensor> result = read_safetensors(out_);
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result[0].info.name, "ids");
  EXPECT_EQ(result[1].info.name, "b");
  EXPECT_EQ(result[2].info.name, "a");
  EXPECT_EQ(result[0].bytes, ids.bytes);
}

TEST_F(ConvertFile, ScaleConvertsEvenToTheSameType) {
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("a", {1.5f, 3.0f})});
  ConvertRequest convert = request(in, out_, DType::float32);
  convert.options.scale = 2.0;
  convert_ok(convert);
  EXPECT_EQ(read_safetensors(out_).at(0).bytes, floats("a", {3.0f, 6.0f}).bytes);
}

TEST_F(ConvertFile, WithoutATypeOnlyTheFormatChanges) {
  ConvertRequest convert = request(folder_.put("in.raw", "abcdefgh"), out_, DType::undefined);
  convert.raw = RawLayout{.dtype = DType::float32, .shape = {2}};
  EXPECT_EQ(convert_ok(convert).tensors.at(0).reason, "no rule");
  EXPECT_EQ(read_safetensors(out_).at(0).bytes, "abcdefgh");
}

TEST_F(ConvertFile, ProgressGrowsToTheTotal) {
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("a", many_values(1'000'000))});
  ConvertRequest convert = request(in, out_, DType::float16);
  convert.verify = true;
  std::vector<Progress> calls;
  convert.on_progress = [&](const Progress& progress) {
    EXPECT_EQ(progress.tensor, progress.bytes_done == 0 ? "" : "a");
    calls.push_back(progress);
    return true;
  };
  convert_ok(convert);
  ASSERT_FALSE(calls.empty());
  EXPECT_EQ(calls.front().bytes_done, 0u) << "before the output is created";
  for (std::size_t i = 1; i < calls.size(); ++i) EXPECT_GE(calls[i].bytes_done, calls[i - 1].bytes_done);
  EXPECT_EQ(calls.back().bytes_done, calls.back().bytes_total);
  EXPECT_EQ(calls.back().bytes_total, 2 * 6'000'000u);
}

TEST_F(ConvertFile, EmptyTensorsAndEmptyFiles) {
  const std::string in = write_safetensors(folder_, "in.safetensors",
                                           {make_tensor("none", DType::float32, {0, 4}, ""), floats("some", {1})});
  convert_ok(request(in, out_, DType::float16));
  EXPECT_EQ(read_safetensors(out_).at(0).info.shape, (Shape{0, 4}));
  ConvertRequest nothing = request(write_safetensors(folder_, "empty.safetensors", {}), out_, DType::float16);
  nothing.overwrite = true;
  nothing.verify = true;
  EXPECT_TRUE(convert_ok(nothing).verified);
  EXPECT_TRUE(read_safetensors(out_).empty());
}

TEST_F(ConvertFile, VerifyAcceptsEveryKindOfTensor) {
  const std::string in = write_safetensors(
      folder_, "in.safetensors",
      {floats("long", many_values(3'000'000)), make_tensor("u", DType::uint8, {3}, "xyz"), floats("short", {1, 2})});
  ConvertRequest convert = request(in, out_, DType::float8_e4m3fn);
  convert.verify = true;
  convert.execution.threads = 0;
  EXPECT_TRUE(convert_ok(convert).verified);
}

}  // namespace
}  // namespace tensorcast
