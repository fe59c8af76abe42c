// SPDX-License-Identifier: Apache-2.0
// Converts every format to every other.
#include <gtest/gtest.h>

#include <filesystem>

#include "convert/convert_testing.hpp"

namespace tensorcast {
namespace {

using namespace file_conversion::testing;
using formats::Format;

class ConvertFormats : public ::testing::Test {
 protected:
  // One array of `dtype` with every byte value, in a file of `format`.
  std::string put_array(const Format& format, DType dtype, std::int64_t count) {
    std::string bytes(storage_bytes(dtype, static_cast<std::size_t>(count)), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37);
    const std::string path = folder_.file("in." + std::string(format.name) + std::string(format.extensions.front()));
    const Result<void> written = formats::testing::write_all(format, path, {make_tensor("a", dtype, {count}, bytes)});
    EXPECT_TRUE(written.ok()) << written.error().describe();
    return path;
  }

  // Reads the one array of `path`; `tensor` has the properties that the file does not store.
  FileTensor read_array(const Format& format, const std::string& path, DType dtype, std::int64_t count) {
    const formats::ReadOptions options{.raw = RawLayout{.dtype = dtype, .shape = {count}}, .from = dtype};
    Result<std::vector<FileTensor>> tensors = formats::testing::read_all(format, path, options);
    EXPECT_TRUE(tensors.ok()) << tensors.error().describe();
    return tensors.ok() && tensors->size() == 1 ? tensors->front() : FileTensor{};
  }

  TempFolder folder_;
};

TEST_F(ConvertFormats, AnyToAny) {
  constexpr std::int64_t count = 1000;
  for (const Format* input : formats::all_formats()) {
    for (const DType from : {DType::float32, DType::float8_e4m3fn, DType::int4}) {
      if (!input->can_hold(from)) continue;
      const std::string in = put_array(*input, from, count);
      const std::string bytes = read_array(*input, in, from, count).bytes;
      for (const Format* output : formats::all_formats()) {
        for (const DType to : {DType::bfloat16, DType::float4_e2m1fn, DType::int64}) {
          SCOPED_TRACE(std::string(input->name) + " " + std::string(name(from)) + " to " + std::string(output->name) +
                       " " + std::string(name(to)));
          ConvertRequest convert =
              request(in, folder_.file("out" + std::string(output->extensions.front())), DType::undefined);
          convert.rules = {{"", to}};  // integers too
          convert.raw = input->name == "raw" ? std::optional(RawLayout{.dtype = from, .shape = {count}}) : std::nullopt;
          convert.from = from;
          convert.verify = true;
          convert.overwrite = true;
          const Result<ConvertOutcome> outcome = convert_file(convert);
          if (!output->can_hold(to)) {
            ASSERT_FALSE(outcome.ok());
            EXPECT_EQ(outcome.error().code, ErrorCode::unsupported);
            continue;
          }
          ASSERT_TRUE(outcome.ok()) << outcome.error().describe();
          EXPECT_TRUE(outcome->verified);
          EXPECT_EQ(outcome->output_format, output->name);
          EXPECT_EQ(read_array(*output, convert.output, to, count).bytes, cast_bytes(bytes, from, to, count));
        }
      }
    }
  }
}

TEST_F(ConvertFormats, NumbersBecomeStringsAndNumbersAgain) {
  const std::string in = write_safetensors(folder_, "in.safetensors", {floats("a", {0.1f, -2.5f, 1e20f})});
  for (const std::string_view format : file_formats_for(DType::string)) {
    const Format& text = *formats::find_format(format);
    ConvertRequest there = request(in, folder_.file("text" + std::string(text.extensions.front())), DType::string);
    there.verify = true;
    const Result<ConvertOutcome> written = convert_file(there);
    ASSERT_TRUE(written.ok()) << written.error().describe();
    EXPECT_TRUE(written->verified);
    const auto texts = formats::testing::read_all(text, there.output);
    ASSERT_TRUE(texts.ok()) << texts.error().describe();
    EXPECT_EQ(formats::testing::texts_of(texts->at(0).strings),
              (std::vector<std::string>{"0.1", "-2.5", "100000000000000000000.0"}));

    ConvertRequest back = request(there.output, folder_.file("back.safetensors"), DType::undefined);
    back.rules = {{"", DType::float32}};
    back.verify = true;
    back.overwrite = true;
    const Result<ConvertOutcome> parsed = convert_file(back);
    ASSERT_TRUE(parsed.ok()) << parsed.error().describe();
    EXPECT_EQ(read_safetensors(back.output).at(0).bytes, floats("", {0.1f, -2.5f, 1e20f}).bytes);

    ConvertRequest copy =
        request(there.output, folder_.file("copy" + std::string(text.extensions.front())), DType::undefined);
    copy.verify = true;
    ASSERT_TRUE(convert_file(copy).ok());
    EXPECT_EQ(file_content(copy.output).size(), std::filesystem::file_size(there.output));
  }
}

TEST_F(ConvertFormats, EmptyStringTensorsBecomeNumbersInEveryFormat) {
  using formats::testing::make_strings;
  const Format& npz = *formats::find_format("npz");
  const std::string in = folder_.file("in.npz");
  const std::vector<FileTensor> tensors = {make_strings("a", {0, 2}, {}), make_strings("b", {1}, {"1"}),
                                           make_strings("c", {0}, {})};
  ASSERT_TRUE(formats::testing::write_all(npz, in, tensors).ok());
  for (const std::string extension : {".npz", ".safetensors"}) {
    ConvertRequest convert = request(in, folder_.file("out" + extension), DType::undefined);
    convert.rules = {{"", DType::float32}};
    convert.verify = true;
    const Result<ConvertOutcome> outcome = convert_file(convert);
    EXPECT_TRUE(outcome.ok()) << extension << ": " << outcome.error().describe();
  }
}

// 0xF3 holds the last of three int4, and unused bits.
TEST_F(ConvertFormats, PaddingBitsOfCopiedTensorsAreNotCompared) {
  const std::string in = folder_.put("in.pb", "\x08\x03\x10\x16\x4A\x02\x21\xF3");
  for (const std::string extension : {".npy", ".pb", ".raw"}) {
    ConvertRequest convert = request(in, folder_.file("out" + extension), DType::int4);
    convert.verify = true;
    const Result<ConvertOutcome> outcome = convert_file(convert);
    EXPECT_TRUE(outcome.ok()) << extension << ": " << outcome.error().describe();
  }
}

TEST_F(ConvertFormats, ATextThatIsNoNumberIsNamed) {
  const Format& npy = *formats::find_format("npy");
  const std::string in = folder_.file("in.npy");
  ASSERT_TRUE(formats::testing::write_all(npy, in, {formats::testing::make_strings("", {3}, {"1", "two", "3"})}).ok());
  const Result<ConvertOutcome> outcome = convert_file(request(in, folder_.file("out.npy"), DType::float32));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::parse);
  EXPECT_EQ(outcome.error().element, 1u);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out.npy")));
}

TEST_F(ConvertFormats, ManyOpaqueTypesInOneNpz) {
  const std::string in = write_safetensors(
      folder_, "in.safetensors",
      {floats("a", {1, 2, 3}), floats("b", {4, 5}), floats("c", {6}), make_tensor("d", DType::int64, {1}, "12345678")});
  ConvertRequest convert = request(in, folder_.file("out.npz"), DType::bfloat16);
  convert.rules = {{"b", DType::float8_e4m3fn}, {"c", DType::float8_e5m2}};
  convert.verify = true;
  const Result<ConvertOutcome> there = convert_file(convert);
  ASSERT_TRUE(there.ok()) << there.error().describe();
  const Result<ConvertOutcome> back =
      convert_file(request(convert.output, folder_.file("back.safetensors"), DType::float32));
  ASSERT_TRUE(back.ok()) << back.error().describe();
  const std::vector<FileTensor> result = read_safetensors(folder_.file("back.safetensors"));
  const std::vector<FileTensor> before = read_safetensors(in);
  ASSERT_EQ(result.size(), before.size());
  for (std::size_t i = 0; i < result.size(); ++i) EXPECT_EQ(result[i].bytes, before[i].bytes) << result[i].info.name;
}

}  // namespace
}  // namespace tensorcast
