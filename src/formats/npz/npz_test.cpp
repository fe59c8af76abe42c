// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "formats/format_list.hpp"
#include "formats/format_testing.hpp"
#include "formats/npy/npy_dtypes.hpp"
#include "formats/npz/zip_writer.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats {
namespace {

using testing::file_content;
using testing::FileTensor;
using testing::make_strings;
using testing::make_tensor;
using testing::read_all;
using testing::TempFolder;
using testing::write_all;

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * i / 7);
  return text;
}

// One tensor of every type, among them an empty one and a scalar.
std::vector<FileTensor> one_of_each() {
  std::vector<FileTensor> tensors;
  for (const DType dtype : all_dtypes()) {
    const std::string tensor_name = "layer/" + std::string(name(dtype));
    if (dtype == DType::string) {
      tensors.push_back(make_strings(tensor_name, {2, 1}, {"text", "\xC3\xA9"}));
    } else {
      tensors.push_back(make_tensor(tensor_name, dtype, {4, 2}, pattern(storage_bytes(dtype, 8))));
    }
  }
  tensors.push_back(make_tensor("empty", DType::float32, {0, 7}, ""));
  tensors.push_back(make_tensor("scalar", DType::int16, {}, "ab"));
  tensors.push_back(make_tensor("\xE2\x82\xAC", DType::uint8, {1}, "x"));
  tensors.push_back(make_strings("no strings", {0}, {}));
  return tensors;
}

void expect_equal(const std::vector<FileTensor>& actual, const std::vector<FileTensor>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].info.name, expected[i].info.name);
    EXPECT_EQ(actual[i].info.dtype, expected[i].info.dtype) << expected[i].info.name;
    EXPECT_EQ(actual[i].info.shape, expected[i].info.shape) << expected[i].info.name;
    if (expected[i].info.dtype != DType::string) {  // those have padding
      EXPECT_EQ(actual[i].info.bytes, expected[i].info.bytes) << expected[i].info.name;
    }
    EXPECT_EQ(actual[i].bytes, expected[i].bytes) << expected[i].info.name;
    EXPECT_EQ(testing::texts_of(actual[i].strings), testing::texts_of(expected[i].strings));
  }
}

// Comments of entries name opaque types, so no `from` is needed.
TEST(NpzFormat, RoundTripsEveryTypeStoredAndDeflated) {
  const TempFolder folder;
  const std::vector<FileTensor> tensors = one_of_each();
  for (const bool compressed : {false, true}) {
    const std::string path = folder.file("a.npz");
    const WriteOptions options{.metadata = {}, .source_format = "npz", .compressed = compressed};
    ASSERT_TRUE(write_all(npz_format, path, tensors, options, 3).ok());
    const auto read = read_all(npz_format, path, {}, 5);
    ASSERT_TRUE(read.ok()) << read.error().describe();
    expect_equal(*read, tensors);
  }
}

TEST(NpzFormat, TheSameTensorsGiveTheSameBytes) {
  const TempFolder folder;
  ASSERT_TRUE(write_all(npz_format, folder.file("a.npz"), one_of_each()).ok());
  ASSERT_TRUE(write_all(npz_format, folder.file("b.npz"), one_of_each()).ok());
  EXPECT_EQ(file_content(folder.file("a.npz")), file_content(folder.file("b.npz")));
}

TEST(NpzFormat, SaysWhetherTheInputWasCompressed) {
  const TempFolder folder;
  for (const bool compressed : {false, true}) {
    const WriteOptions options{.metadata = {}, .source_format = "npz", .compressed = compressed};
    const FileTensor zeros = make_tensor("z", DType::uint8, {100'000}, std::string(100'000, '\0'));
    ASSERT_TRUE(write_all(npz_format, folder.file("a.npz"), {zeros}, options).ok());
    EXPECT_EQ(std::filesystem::file_size(folder.file("a.npz")) < 10'000, compressed);
    const Result<io::InputFile> file = io::InputFile::open(folder.file("a.npz"));
    EXPECT_EQ((*npz_format.open(*file, {}))->compressed(), compressed);
  }
}

TEST(NpzFormat, TensorsCanBeReadInAnyOrderAndAgain) {
  const TempFolder folder;
  for (const bool compressed : {false, true}) {
    const std::vector<FileTensor> tensors = {make_tensor("a", DType::int32, {50'000}, pattern(200'000)),
                                             make_tensor("b", DType::uint8, {70'000}, pattern(70'000))};
    const WriteOptions options{.metadata = {}, .source_format = "npz", .compressed = compressed};
    ASSERT_TRUE(write_all(npz_format, folder.file("a.npz"), tensors, options).ok());
    const Result<io::InputFile> file = io::InputFile::open(folder.file("a.npz"));
    const Result<std::unique_ptr<Reader>> reader = npz_format.open(*file, {});
    ASSERT_TRUE(reader.ok());
    for (const std::size_t index : {1u, 0u, 0u, 1u}) {
      std::string bytes(1000, '\0');
      ASSERT_TRUE((*reader)->read(index, 0, std::as_writable_bytes(std::span(bytes))).ok());
      EXPECT_EQ(bytes, tensors[index].bytes.substr(0, 1000));
      ASSERT_TRUE((*reader)->read(index, 1000, std::as_writable_bytes(std::span(bytes))).ok());
      EXPECT_EQ(bytes, tensors[index].bytes.substr(1000, 1000));
    }
  }
}

TEST(NpzFormat, FromSaysWhatOpaqueEntriesAreAndLeavesTheOthersAlone) {
  const TempFolder folder;
  const std::vector<FileTensor> tensors = {make_tensor("a", DType::float8_e5m2, {2}, "ab"),
                                           make_tensor("b", DType::float32, {1}, "abcd")};
  ASSERT_TRUE(write_all(npz_format, folder.file("a.npz"), tensors).ok());
  const auto read = read_all(npz_format, folder.file("a.npz"), {.raw = {}, .from = DType::float8_e4m3fn});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[0].info.dtype, DType::float8_e4m3fn);
  EXPECT_EQ((*read)[1].info.dtype, DType::float32);
}

TEST(NpzFormat, NamesThatAreUnsafeToUnpackAreNotWritten) {
  const TempFolder folder;
  for (const std::string name : {"/etc/x", "..", "../x", "a/../x", "a\\..\\x", "a/..", "\xFF"}) {
    const Result<void> written =
        write_all(npz_format, folder.file("a.npz"), {make_tensor(name, DType::uint8, {1}, "x")});
    ASSERT_FALSE(written.ok()) << name;
    EXPECT_EQ(written.error().code, ErrorCode::unsupported);
  }
  for (const std::string name : {"a..b", "...", "a/b", "model.layers.0.weight", " "}) {
    EXPECT_TRUE(write_all(npz_format, folder.file("a.npz"), {make_tensor(name, DType::uint8, {1}, "x")}).ok()) << name;
  }
  const FileTensor twice = make_tensor("x", DType::uint8, {1}, "x");
  EXPECT_EQ(write_all(npz_format, folder.file("a.npz"), {twice, twice}).error().code, ErrorCode::unsupported);
  const FileTensor long_name = make_tensor(std::string(65532, 'n'), DType::uint8, {1}, "x");
  EXPECT_EQ(write_all(npz_format, folder.file("a.npz"), {long_name}).error().code, ErrorCode::unsupported);
}

TEST(NpzFormat, ErrorsNameTheArray) {
  const std::string path =
      std::string(TENSORCAST_SOURCE_DIR) + "/src/formats/npz/testdata/invalid/parse--checksum-deflated.npz";
  const Error error = read_all(npz_format, path).error();
  EXPECT_EQ(error.tensor, "a");
  EXPECT_EQ(error.file, path);
  EXPECT_EQ(error.message, "damaged zip archive: the entry's checksum differs");
}

TEST(NpzFormat, AnAbandonedArchiveLeavesNothing) {
  const TempFolder folder;
  {
    Result<io::OutputFile> file = io::OutputFile::create(folder.file("a.npz"), false);
    ASSERT_TRUE(file.ok());
    const std::vector<TensorInfo> infos = {make_tensor("a", DType::uint8, {10}, pattern(10)).info};
    const WriteOptions options{.metadata = {}, .source_format = "", .compressed = true};
    const Result<std::unique_ptr<Writer>> writer = npz_format.create(*file, infos, options);
    ASSERT_TRUE(writer.ok());
    EXPECT_EQ((*writer)->finish().error().code, ErrorCode::internal);  // the data of "a" is missing
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file("a.npz")));
}

TEST(Npz, AnArrayOfAnUnknownTypeHidesNoOther) {
  const std::string path = (std::filesystem::path(TENSORCAST_SOURCE_DIR) /
                            "src/formats/npz/testdata/invalid/invalid_argument--one-of-two-opaque.npz")
                               .string();
  const Result<io::InputFile> file = io::InputFile::open(path);
  ASSERT_TRUE(file.ok());
  const auto reader = npz_format.open(*file, {});
  ASSERT_TRUE(reader.ok()) << reader.error().describe();
  const std::vector<TensorInfo>& tensors = (*reader)->tensors();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].dtype, DType::float32);
  EXPECT_FALSE(tensors[0].problem);
  EXPECT_EQ(tensors[1].dtype, DType::undefined);
  EXPECT_EQ(tensors[1].foreign_dtype, "|V1");
  EXPECT_EQ(tensors[1].shape, (std::vector<std::int64_t>{2, 3}));
  ASSERT_TRUE(tensors[1].problem);
  EXPECT_EQ(tensors[1].problem->code, ErrorCode::invalid_argument);
  EXPECT_EQ(tensors[1].problem->tensor, "opaque");

  ReadOptions named;
  named.from.named = {{"opaque", DType::float8_e4m3fn}};
  const auto told = npz_format.open(*file, named);
  ASSERT_TRUE(told.ok());
  EXPECT_EQ((*told)->tensors()[1].dtype, DType::float8_e4m3fn);
}

// A readme, objects, dates and records are left out with a warning each, and hide no array.
TEST(Npz, WhatIsNoArrayOfNumbersIsLeftOut) {
  const TempFolder folder;
  const std::string path = folder.file("a.npz");
  const auto npy_of = [](const std::string& descr, const std::string& data) {
    std::string header = "{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,), }";
    header.append(64 - (10 + header.size() + 1) % 64, ' ');
    header += '\n';
    return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
  };
  {
    Result<io::OutputFile> file = io::OutputFile::create(path, true);
    ASSERT_TRUE(file.ok());
    npz::ZipWriter zip(*file);
    for (const auto& [name, content] : std::vector<std::pair<std::string, std::string>>{
             {"README.md", "# text"},
             {"short", "hi"},
             {"a.npy", npy_of("'<f4'", "abcd")},
             {"o.npy", npy_of("'|O'", "pickle")},
             {"d.npy", npy_of("'<M8[D]'", "12345678")},
             {"r.npy", npy_of("[('x', '<f4'), ('y]', '<i2', (2,))]", "12345678")},
             {"b.npy", npy_of("'?'", "\1")}}) {
      ASSERT_TRUE(zip.begin(name, {}).ok());
      ASSERT_TRUE(zip.append(std::as_bytes(std::span(content))).ok());
      ASSERT_TRUE(zip.end().ok());
    }
    ASSERT_TRUE(zip.finish().ok());
    ASSERT_TRUE(file->commit().ok());
  }
  const Result<io::InputFile> file = io::InputFile::open(path);
  ASSERT_TRUE(file.ok());
  const auto reader = npz_format.open(*file, {});
  ASSERT_TRUE(reader.ok()) << reader.error().describe();
  const std::vector<TensorInfo>& tensors = (*reader)->tensors();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[1].name, "b");
  EXPECT_EQ(tensors[1].dtype, DType::boolean);
  const std::vector<std::string>& warnings = (*reader)->warnings();
  ASSERT_EQ(warnings.size(), 5u);
  EXPECT_EQ(warnings[0], "entry \"README.md\" is left out: it is no array");
  EXPECT_EQ(warnings[1], "entry \"short\" is left out: it is no array");
  EXPECT_EQ(warnings[4].find("entry \"r.npy\" is left out: structured arrays"), 0u) << warnings[4];
  std::array<std::byte, 4> bytes{};
  ASSERT_TRUE((*reader)->read(0, 0, bytes).ok());
  EXPECT_EQ(bytes[3], std::byte{'d'});
}

}  // namespace
}  // namespace tensorcast::formats
