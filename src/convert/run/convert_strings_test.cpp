// SPDX-License-Identifier: Apache-2.0
// Tensors of strings over several blocks, from and to every format that holds strings.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convert/convert_testing.hpp"
#include "convert/run/string_blocks.hpp"
#include "tensorcast/cast.hpp"

namespace tensorcast {
namespace {

using namespace file_conversion::testing;
using formats::testing::make_strings;
using formats::testing::read_all;
using formats::testing::texts_of;
using formats::testing::write_all;

// Takes a number of blocks that is not whole, and of strings that is not a multiple of 8.
constexpr std::int64_t count = 150'003;

std::string text(std::int64_t i) { return std::to_string(i % 7) + (i % 5 == 0 ? ".0" : ""); }

std::vector<std::string> many_texts() {
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) texts.push_back(text(i));
  return texts;
}

class ConvertStrings : public ::testing::Test {
 protected:
  std::string put(const std::string& format, const std::vector<std::string>& texts) {
    const formats::Format& of = *formats::find_format(format);
    const std::string path = folder_.file("in" + std::string(of.extensions.front()));
    const Result<void> written =
        write_all(of, path, {make_strings("a", {static_cast<std::int64_t>(texts.size())}, texts)});
    EXPECT_TRUE(written.ok()) << written.error().describe();
    return path;
  }
  Result<ConvertOutcome> run(const std::string& in, const std::string& out, DType to, const std::string& format = "") {
    ConvertRequest convert = request(in, folder_.file(out), DType::undefined);
    convert.rules = {{"", to}};
    convert.verify = true;
    convert.overwrite = true;
    convert.output_format = format;
    return convert_file(convert);
  }

  TempFolder folder_;
};

TEST_F(ConvertStrings, ToNumbersBlockByBlock) {
  std::string values;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i % 7);
    values.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::pair<std::string, DType> cases[] = {{"npy", DType::float64},
                                                 {"npy", DType::float4_e2m1fn},
                                                 {"npz", DType::float6_e2m3fn},
                                                 {"tensor_proto", DType::float32}};
  for (const auto& [format, to] : cases) {
    SCOPED_TRACE(format + " to " + std::string(name(to)));
    const Result<ConvertOutcome> outcome = run(put(format, many_texts()), "out.bin", to, "raw");
    ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
    EXPECT_EQ(file_content(folder_.file("out.bin")), cast_bytes(values, DType::float32, to, count));
  }
}

TEST_F(ConvertStrings, FromNumbersBlockByBlock) {
  std::string values;
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i) / 8;
    values.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::int64_t shape[] = {count};
  const StringBuffer expected = cast_to_strings({DType::float32, shape, std::as_bytes(std::span(values))}, {}).value();
  const std::string in =
      write_safetensors(folder_, "in.safetensors", {make_tensor("a", DType::float32, {count}, values)});
  for (const std::string format : {"npy", "npz", "tensor_proto"}) {
    const Result<ConvertOutcome> outcome = run(in, "out", DType::string, format);
    ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
    const auto tensors = read_all(*formats::find_format(format), folder_.file("out"));
    ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
    EXPECT_EQ((*tensors)[0].strings.data, expected.data) << format;
    EXPECT_EQ((*tensors)[0].strings.offsets, expected.offsets) << format;
  }
}

TEST_F(ConvertStrings, BetweenFormatsOfStrings) {
  std::vector<std::string> texts = many_texts();
  texts[100'000] = std::string(100'000, 'x');  // alone takes several reads
  texts.resize(100'100);
  ASSERT_TRUE(run(put("tensor_proto", texts), "out.pb", DType::string).ok());
  EXPECT_EQ(texts_of((*read_all(*formats::find_format("tensor_proto"), folder_.file("out.pb")))[0].strings), texts);
  const Error padded = run(put("tensor_proto", texts), "out.npz", DType::string).error();
  EXPECT_EQ(padded.code, ErrorCode::unsupported) << padded.describe();
  EXPECT_NE(padded.message.find("100000 characters"), std::string::npos) << padded.describe();
}

TEST_F(ConvertStrings, ErrorsNameTheElementOfTheTensor) {
  std::vector<std::string> texts = many_texts();
  texts[125'001] = "abc";
  for (const std::string format : {"npy", "npz", "tensor_proto"}) {
    const Result<ConvertOutcome> outcome = run(put(format, texts), "out.bin", DType::float32, "raw");
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().element, 125'001u) << outcome.error().describe();
  }
  texts[125'001] = "\xFF";
  EXPECT_EQ(run(put("tensor_proto", texts), "out.npy", DType::string).error().element, 125'001u);
}

TEST_F(ConvertStrings, EmptyTensorsBetweenOthers) {
  const std::string in = folder_.file("in.npz");
  const formats::Format& npz = *formats::find_format("npz");
  ASSERT_TRUE(write_all(npz, in,
                        {make_strings("a", {0}, {}), make_strings("b", {2}, {"1", "2"}), make_strings("c", {0, 3}, {}),
                         floats("d", {}), floats("e", {3.0f}), make_strings("f", {0}, {})})
                  .ok());
  for (const DType to : {DType::string, DType::float32}) {
    const Result<ConvertOutcome> outcome = run(in, "out.npz", to);
    ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
    const auto tensors = read_all(npz, folder_.file("out.npz"));
    ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
    ASSERT_EQ(tensors->size(), 6u);
    EXPECT_EQ((*tensors)[2].info.shape, (std::vector<std::int64_t>{0, 3}));
    EXPECT_EQ((*tensors)[1].info.dtype, to);
  }
}

// A compressed archive cannot go back, so reading strings must not depend on where blocks end.
TEST_F(ConvertStrings, CompressedArchivesAreReadOnce) {
  const formats::Format& npz = *formats::find_format("npz");
  const std::string in = folder_.file("in.npz");
  ASSERT_TRUE(write_all(npz, in, {make_strings("a", {count}, many_texts())}, {.compressed = true}).ok());
  const io::InputFile file = io::InputFile::open(in).value();
  const std::unique_ptr<formats::Reader> reader = npz.open(file, {}).value();
  for (int pass = 0; pass < 2; ++pass) {
    std::uint64_t done = 0;
    for (const std::size_t block_bytes : {512u, 1024u, 100'000u, 1u << 30}) {
      const Result<StringBuffer> block = reader->read_strings(0, done, block_bytes);
      ASSERT_TRUE(block.ok()) << block.error().describe();
      const std::vector<std::string> texts = texts_of(*block);
      for (std::size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(texts[i], text(static_cast<std::int64_t>(done + i)));
      done += texts.size();
      EXPECT_TRUE(done % 8 == 0 || done == count) << done;
      EXPECT_LE(texts.size(), block_bytes / 8);
    }
    EXPECT_EQ(done, static_cast<std::uint64_t>(count));
  }
}

TEST_F(ConvertStrings, ADifferenceOfStringsIsFound) {
  const std::string in = put("npy", {"a", "b", "c"});
  const io::InputFile file = io::InputFile::open(in).value();
  const std::unique_ptr<formats::Reader> reader = formats::find_format("npy")->open(file, {}).value();
  const auto equal = [&](const std::vector<std::string>& texts) {
    return file_conversion::StringComparison(*reader, 0, 512).count_equal(make_strings("", {3}, texts).strings);
  };
  EXPECT_EQ(*equal({"a", "b", "c"}), 3u);
  EXPECT_EQ(*equal({"a", "x", "c"}), 1u);
  EXPECT_EQ(*equal({"ab", "", "c"}), 0u);
}

TEST_F(ConvertStrings, ProgressCancels) {
  ConvertRequest convert = request(put("npy", many_texts()), folder_.file("out.npy"), DType::string);
  convert.verify = true;
  int calls = 0;
  convert.on_progress = [&](const Progress& progress) {
    EXPECT_LE(progress.bytes_done, progress.bytes_total);
    return ++calls < 2;
  };
  const Result<ConvertOutcome> outcome = convert_file(convert);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace tensorcast
