// SPDX-License-Identifier: Apache-2.0
#include "formats/format_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "formats/format_testing.hpp"

namespace tensorcast::formats {
namespace {

namespace fs = std::filesystem;
using testing::FileTensor;
using testing::make_tensor;
using testing::read_all;
using testing::TempFolder;
using testing::write_all;

const fs::path testdata = fs::path(TENSORCAST_SOURCE_DIR) / "src/formats/safetensors/testdata";

Result<std::vector<FileTensor>> read_valid(const std::string& name) {
  return read_all(safetensors_format, (testdata / "valid" / (name + ".safetensors")).string());
}

std::vector<std::string> names_of(const std::vector<FileTensor>& tensors) {
  std::vector<std::string> names;
  for (const FileTensor& tensor : tensors) names.push_back(tensor.info.name);
  return names;
}

// The text of the header, padding included.
std::string header_of(const std::string& path) {
  const std::string content = testing::file_content(path);
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(content.at(i));
  return content.substr(8, length);
}

// One line for each malformed file. To accept a new message, copy it from the output of the failing test.
TEST(SafetensorsReader, SaysWhatIsWrong) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(testdata / "invalid")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string messages;
  for (const fs::path& file : files) {
    const auto tensors = read_all(safetensors_format, file.string());
    ASSERT_FALSE(tensors.ok()) << file;
    Error error = tensors.error();
    EXPECT_EQ(error.code, ErrorCode::parse) << file;
    EXPECT_EQ(error.file, file.string());
    error.file = file.stem().string().substr(std::string("parse--").size());
    messages += error.describe() + "\n";
  }
  EXPECT_EQ(messages, testing::file_content((testdata / "messages.txt").string())) << messages;
}

TEST(SafetensorsReader, TensorsComeInTheOrderOfTheirData) {
  const auto tensors = read_valid("header-order-is-not-data-order");
  ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
  EXPECT_EQ(names_of(*tensors), (std::vector<std::string>{"a", "z"}));
  EXPECT_EQ((*tensors)[0].bytes, "abcd");
  EXPECT_EQ((*tensors)[1].bytes, "efgh");
}

TEST(SafetensorsReader, KnowsEveryDTypeOfTheFormat) {
  const auto tensors = read_valid("every-dtype");
  ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
  ASSERT_EQ(tensors->size(), 22u);
  for (const FileTensor& tensor : *tensors) {
    EXPECT_EQ(tensor.info.shape, (std::vector<std::int64_t>{2, 2}));
    if (!tensor.info.foreign_dtype.empty()) {
      EXPECT_EQ(tensor.info.dtype, DType::undefined);
      EXPECT_EQ("of " + tensor.info.foreign_dtype, tensor.info.name);
    } else {
      EXPECT_EQ(parse_dtype(tensor.info.name.substr(3)).value(), tensor.info.dtype) << tensor.info.name;
      EXPECT_EQ(tensor.info.bytes, storage_bytes(tensor.info.dtype, 4)) << tensor.info.name;
    }
  }
}

TEST(SafetensorsReader, ScalarsAndEmptyTensors) {
  const auto scalar = read_valid("scalar");
  ASSERT_TRUE(scalar.ok());
  EXPECT_TRUE(scalar->at(0).info.shape.empty());
  EXPECT_EQ(scalar->at(0).info.count, 1u);
  const auto empty = read_valid("empty-tensors");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(names_of(*empty), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(empty->at(2).info.count, 0u);
}

TEST(SafetensorsReader, Metadata) {
  const Result<io::InputFile> file = io::InputFile::open((testdata / "valid/metadata.safetensors").string());
  ASSERT_TRUE(file.ok());
  const auto reader = safetensors_format.open(*file, {});
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->metadata(), (Metadata{{"format", "pt"}, {"", "empty key"}, {"\xC3\xA9", "\n\"\\"}}));
}

TEST(SafetensorsWriter, ReadsBackWhatItWrote) {
  const TempFolder folder;
  const std::string path = folder.file("out.safetensors");
  const std::vector<FileTensor> written = {
      make_tensor("second.weight \"\n\\ \xC3\xA9", DType::bfloat16, {2, 3}, std::string(12, 'b')),
      make_tensor("a scalar", DType::float64, {}, std::string(8, 'd')),
      make_tensor("nothing", DType::int64, {0, 7}, ""),
      make_tensor("nibbles", DType::float4_e2m1fn, {2, 3}, "\x21\x43\x65"),
  };
  ASSERT_TRUE(
      write_all(safetensors_format, path, written, {.metadata = {{"format", "pt"}}, .source_format = {}}, 5).ok());
  const auto read = read_all(safetensors_format, path, {}, 5);
  ASSERT_TRUE(read.ok()) << read.error().describe();
  EXPECT_EQ(names_of(*read), names_of(written));
  for (std::size_t i = 0; i < written.size(); ++i) {
    EXPECT_EQ((*read)[i].info.dtype, written[i].info.dtype);
    EXPECT_EQ((*read)[i].info.shape, written[i].info.shape);
    EXPECT_EQ((*read)[i].bytes, written[i].bytes);
  }
}

TEST(SafetensorsWriter, HeaderIsPaddedToEightBytes) {
  const TempFolder folder;
  for (std::size_t length = 1; length <= 9; ++length) {
    const std::string path = folder.file("out.safetensors");
    const std::vector<FileTensor> tensors = {make_tensor(std::string(length, 'n'), DType::uint8, {1}, "x")};
    ASSERT_TRUE(write_all(safetensors_format, path, tensors).ok());
    const std::string header = header_of(path);
    EXPECT_EQ(header.size() % 8, 0u);
    EXPECT_EQ(header.substr(0, header.find('}') + 2),
              "{\"" + std::string(length, 'n') + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})");
    EXPECT_EQ(header.find_last_not_of(' '), header.find('}') + 1);
  }
}

TEST(SafetensorsWriter, RefusesWhatTheFormatCannotSay) {
  const auto refusal = [](const std::vector<FileTensor>& tensors) {
    std::vector<TensorInfo> infos;
    for (const FileTensor& tensor : tensors) infos.push_back(tensor.info);
    const Result<void> checked = safetensors_format.check(infos);
    return checked.ok() ? "" : checked.error().message;
  };
  const FileTensor byte = make_tensor("a", DType::uint8, {1}, "x");
  EXPECT_EQ(refusal({byte}), "");
  EXPECT_EQ(refusal({byte, byte}), "two tensors have this name, and safetensors finds tensors by name");
  EXPECT_EQ(refusal({make_tensor("__metadata__", DType::uint8, {1}, "x")}), "safetensors keeps this name for itself");
  EXPECT_EQ(refusal({make_tensor("a", DType::float4_e2m1fn, {3}, "xy")}),
            "safetensors holds whole bytes only, and 3 elements of float4_e2m1fn do not fill them");
  for (const DType dtype :
       {DType::int4, DType::uint4, DType::int2, DType::uint2, DType::string, DType::undefined, DType::float8_e4m3,
        DType::float8_e3m4, DType::float8_e4m3b11fnuz, DType::float8_e5m3fnu, DType::binary8p4se, DType::binary8p3se}) {
    EXPECT_FALSE(safetensors_format.can_hold(dtype)) << name(dtype);
  }
  const TempFolder folder;
  const Result<void> written =
      write_all(safetensors_format, folder.file("out"), {make_tensor("\xFF", DType::uint8, {1}, "x")});
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "a tensor's name or a metadata text is not UTF-8");
  const Result<void> twice = write_all(safetensors_format, folder.file("out"), {byte},
                                       {.metadata = {{"k", "1"}, {"k", "2"}}, .source_format = {}});
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().code, ErrorCode::unsupported);
}

TEST(SafetensorsLayout, KeepsTheOrderAsLongAsElementsAreAligned) {
  const auto layout = [](const std::vector<FileTensor>& tensors) {
    std::vector<TensorInfo> infos;
    for (const FileTensor& tensor : tensors) infos.push_back(tensor.info);
    return safetensors_format.layout(infos);
  };
  const FileTensor bytes4 = make_tensor("bytes4", DType::int8, {4}, "1234");
  const FileTensor bytes3 = make_tensor("bytes3", DType::int8, {3}, "123");
  const FileTensor f32 = make_tensor("f32", DType::float32, {1}, "1234");
  const FileTensor f64 = make_tensor("f64", DType::float64, {1}, "12345678");
  EXPECT_EQ(layout({bytes4, f32, bytes3}), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(layout({bytes3, f32, bytes4, f64}), (std::vector<std::size_t>{3, 1, 0, 2}));
}

TEST(SafetensorsSniff, ByLengthAndBrace) {
  const auto sniffs = [](const std::string& head, std::uint64_t size) {
    return safetensors_format.sniff(std::as_bytes(std::span(head)), size);
  };
  const std::string head("\x02\0\0\0\0\0\0\0{}", 10);
  EXPECT_TRUE(sniffs(head, 10));
  EXPECT_FALSE(sniffs(head, 9));
  EXPECT_FALSE(sniffs(head.substr(0, 8), 8));
  EXPECT_FALSE(sniffs(std::string("\x02\0\0\0\0\0\0\0[]", 10), 10));
}

}  // namespace
}  // namespace tensorcast::formats
