// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/format_list.hpp"
#include "formats/format_testing.hpp"
#include "formats/gguf/gguf_header.hpp"
#include "formats/gguf/gguf_metadata.hpp"
#include "formats/gguf/gguf_types.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats {
namespace {

using testing::file_content;
using testing::FileTensor;
using testing::make_tensor;
using testing::read_all;
using testing::TempFolder;
using testing::write_all;

std::string valid(const std::string& name) {
  return std::string(TENSORCAST_SOURCE_DIR) + "/src/formats/gguf/testdata/valid/" + name;
}

// Writes all tensors of a file again as `convert` does.
Result<void> copy(const std::string& source, const std::string& target) {
  const Result<std::vector<FileTensor>> tensors = read_all(gguf_format, source);
  if (!tensors) return tensors.error();
  const Result<io::InputFile> file = io::InputFile::open(source);
  const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
  const WriteOptions options{.metadata = (*reader)->metadata(),
                             .source_format = "gguf",
                             .compressed = false,
                             .native_metadata = (*reader)->native_metadata()};
  return write_all(gguf_format, target, *tensors, options, 7);
}

TEST(Gguf, CopiesAreTheSameBytes) {
  const TempFolder folder;
  for (const std::string name :
       {"every-type.gguf", "every-kind-of-metadata.gguf", "alignment-8.gguf", "unknown-type.gguf"}) {
    const Result<void> copied = copy(valid(name), folder.file("copy.gguf"));
    ASSERT_TRUE(copied.ok()) << copied.error().describe();
    std::string expected = file_content(valid(name));
    std::string actual = file_content(folder.file("copy.gguf"));
    ASSERT_GE(actual.size(), expected.size());  // writers pad the last tensor, too
    EXPECT_EQ(actual.find_first_not_of('\0', expected.size()), std::string::npos);
    EXPECT_EQ(actual.substr(0, expected.size()), expected) << name;
  }
}

TEST(Gguf, Version2BecomesVersion3) {
  const TempFolder folder;
  ASSERT_TRUE(copy(valid("version-2.gguf"), folder.file("copy.gguf")).ok());
  EXPECT_EQ(file_content(valid("version-2.gguf"))[4], 2);
  EXPECT_EQ(file_content(folder.file("copy.gguf"))[4], 3);
}

TEST(Gguf, MetadataHaveTexts) {
  const Result<io::InputFile> file = io::InputFile::open(valid("every-kind-of-metadata.gguf"));
  const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
  ASSERT_TRUE(reader.ok());
  const Metadata expected = {{"general.architecture", "llama"},
                             {"k.u8", "1"},
                             {"k.i8", "1"},
                             {"k.u16", "1"},
                             {"k.i16", "1"},
                             {"k.u32", "1"},
                             {"k.i32", "1"},
                             {"k.f32", "1"},
                             {"k.bool", "true"},
                             {"k.u64", "1"},
                             {"k.i64", "1"},
                             {"k.f64", "1"},
                             {"k.str", "\xC3\xA9"},
                             {"k.text", R"(["a","\"","\n"])"},
                             {"k.nested", "[[1,2],[]]"},
                             {"k.none", "[]"}};
  EXPECT_EQ((*reader)->metadata(), expected);
}

TEST(Gguf, TextsThatAreNotUtf8AreShownWithReplacements) {
  const Result<io::InputFile> file = io::InputFile::open(valid("metadata-not-utf8.gguf"));
  const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
  ASSERT_TRUE(reader.ok());
  const Metadata expected = {{"k", "\xEF\xBF\xBD!"}, {"l", "[\"\xEF\xBF\xBD\"]"}};
  EXPECT_EQ((*reader)->metadata(), expected);
}

TEST(Gguf, DimensionsAreReversed) {
  const Result<std::vector<FileTensor>> tensors = read_all(gguf_format, valid("every-type.gguf"));
  ASSERT_TRUE(tensors.ok());
  const auto find = [&](const std::string& name) {
    return *std::find_if(tensors->begin(), tensors->end(), [&](const FileTensor& t) { return t.info.name == name; });
  };
  EXPECT_EQ(find("t12").info.shape, (std::vector<std::int64_t>{2, 256}));
  EXPECT_EQ(find("t12").info.foreign_dtype, "Q4_K");
  EXPECT_EQ(find("t12").info.bytes, 2 * 144u);
  EXPECT_EQ(find("t12").info.dtype, DType::undefined);
  EXPECT_EQ(find("t30").info.dtype, DType::bfloat16);
  EXPECT_EQ(find("t30").info.foreign_dtype, "");
}

TEST(Gguf, HoldsEightTypes) {
  std::size_t held = 0;
  const TempFolder folder;
  for (const DType dtype : all_dtypes()) {
    if (!gguf_format.can_hold(dtype)) continue;
    ++held;
    const std::string bytes(storage_bytes(dtype, 6), 'x');
    const std::string path = folder.file("a.gguf");
    const std::vector<FileTensor> tensors = {make_tensor("a", dtype, {2, 3}, bytes),
                                             make_tensor("none", dtype, {0, 3}, ""),
                                             make_tensor("scalar", dtype, {}, bytes.substr(0, bytes.size() / 6))};
    ASSERT_TRUE(write_all(gguf_format, path, tensors, {}, 5).ok());
    const Result<std::vector<FileTensor>> read = read_all(gguf_format, path);
    ASSERT_TRUE(read.ok()) << read.error().describe();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      EXPECT_EQ((*read)[i].info.dtype, dtype);
      EXPECT_EQ((*read)[i].info.shape, tensors[i].info.shape);
      EXPECT_EQ((*read)[i].bytes, tensors[i].bytes);
    }
  }
  EXPECT_EQ(held, 8u);
}

TEST(Gguf, MetadataOfOtherFormatsBecomeStrings) {
  const TempFolder folder;
  const WriteOptions options{.metadata = {{"format", "pt"}, {"general.alignment", "64"}},
                             .source_format = "safetensors",
                             .native_metadata = {}};
  const std::vector<FileTensor> tensors = {make_tensor("a", DType::int8, {1}, "x")};
  ASSERT_TRUE(write_all(gguf_format, folder.file("a.gguf"), tensors, options).ok());
  const Result<io::InputFile> file = io::InputFile::open(folder.file("a.gguf"));
  const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
  ASSERT_TRUE(reader.ok()) << reader.error().describe();
  EXPECT_EQ((*reader)->metadata(), (Metadata{{"format", "pt"}}));
}

TEST(Gguf, WhatItCannotHoldIsNamed) {
  const TempFolder folder;
  const auto refusal = [&](const std::vector<FileTensor>& tensors) {
    const Result<void> written = write_all(gguf_format, folder.file("a.gguf"), tensors);
    EXPECT_FALSE(written.ok());
    return written.ok() ? Error{} : written.error();
  };
  const Error rank = refusal({make_tensor("five", DType::int8, {1, 1, 1, 1, 1}, "x")});
  EXPECT_EQ(rank.code, ErrorCode::unsupported);
  EXPECT_EQ(rank.tensor, "five");
  EXPECT_EQ(refusal({make_tensor(std::string(64, 'n'), DType::int8, {1}, "x")}).tensor, std::string(64, 'n'));
  EXPECT_EQ(refusal({make_tensor("a", DType::int8, {1}, "x"), make_tensor("a", DType::int8, {1}, "x")}).tensor, "a");
}

// A file of tensors of shape [256], as long as `bytes`, whose data begin at the given offsets.
std::string file_of(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& types_and_offsets, std::size_t bytes,
                    const Metadata& metadata = {}) {
  std::string file(gguf::magic);
  gguf::put(file, std::uint32_t{3});
  gguf::put(file, std::uint64_t{types_and_offsets.size()});
  file += gguf::format_metadata(metadata).value();
  for (std::size_t i = 0; i < types_and_offsets.size(); ++i) {
    gguf::put(file, std::uint64_t{1});
    file += static_cast<char>('a' + i);
    gguf::put(file, std::uint32_t{1});
    gguf::put(file, std::uint64_t{256});
    gguf::put(file, types_and_offsets[i].first);
    gguf::put(file, types_and_offsets[i].second);
  }
  file.append(gguf::padding(file.size(), 32), '\0');
  for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(i * 7);
  return file;
}

TEST(Gguf, ATensorOfAnUnknownTypeHasTheBytesUpToTheNextOne) {
  const TempFolder folder;
  constexpr std::uint32_t q2_0 = 42, q4_0 = 2;
  // "b" comes first in the file, and "c", which is last, ends with it.
  const std::string path = folder.put("a.gguf", file_of({{q4_0, 96}, {q2_0, 0}, {q2_0, 256}}, 352));
  const std::string copied = folder.file("copy.gguf");
  const Result<std::vector<FileTensor>> tensors = read_all(gguf_format, path);
  ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
  EXPECT_EQ((*tensors)[0].info.bytes, 144u);
  EXPECT_EQ((*tensors)[1].info.foreign_dtype, "type 42");
  EXPECT_EQ((*tensors)[1].info.bytes, 96u);
  EXPECT_EQ((*tensors)[2].info.bytes, 96u);
  ASSERT_TRUE(copy(path, copied).ok());
  const Result<std::vector<FileTensor>> again = read_all(gguf_format, copied);
  ASSERT_TRUE(again.ok()) << again.error().describe();
  for (std::size_t i = 0; i < tensors->size(); ++i) {
    EXPECT_EQ((*again)[i].info.foreign_dtype, (*tensors)[i].info.foreign_dtype);
    EXPECT_EQ((*again)[i].bytes, (*tensors)[i].bytes);
  }
}

TEST(Gguf, ATensorOfAnUnknownTypeWithoutDataHidesNoOther) {
  const TempFolder folder;
  constexpr std::uint32_t q2_0 = 42, q4_0 = 2;
  const std::string path = folder.put("a.gguf", file_of({{q4_0, 0}, {q2_0, 160}}, 160));
  const Result<io::InputFile> file = io::InputFile::open(path);
  const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
  ASSERT_TRUE(reader.ok()) << reader.error().describe();
  EXPECT_FALSE((*reader)->tensors().at(0).problem);
  EXPECT_TRUE((*reader)->tensors().at(1).problem);
}

// Version 1 of ggml's blocks, of 2023, has other scales and another order.
TEST(Gguf, BlocksOfAnotherVersionAreRefused) {
  const TempFolder folder;
  constexpr std::uint32_t f32 = 0, q4_0 = 2;
  for (const std::string version : {"1", "2", "3"}) {
    const Metadata keys = {{"general.quantization_version", version}};
    const std::string path = folder.put("a.gguf", file_of({{q4_0, 0}, {f32, 160}}, 160 + 1024, keys));
    const Result<io::InputFile> file = io::InputFile::open(path);
    const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
    ASSERT_TRUE(reader.ok()) << reader.error().describe();
    EXPECT_EQ((*reader)->tensors()[0].problem != nullptr, version != "2");
    EXPECT_FALSE((*reader)->tensors()[1].problem);
  }
}

TEST(Gguf, OneOfSeveralFilesIsNamed) {
  const TempFolder folder;
  for (const std::string count : {"1", "3"}) {
    const std::string path = folder.put("a.gguf", file_of({{0, 0}}, 1024, {{"split.count", count}}));
    const Result<io::InputFile> file = io::InputFile::open(path);
    const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
    ASSERT_TRUE(reader.ok()) << reader.error().describe();
    EXPECT_EQ((*reader)->warnings().size(), count == "1" ? 0u : 1u);
  }
}

// What ComfyUI's converter writes has arrays of int32; the text of a string is read the same.
TEST(Gguf, OriginalShapesAreThoseOfTheTensors) {
  const TempFolder folder;
  constexpr std::uint32_t f32 = 0, q4_0 = 2;
  const Metadata keys = {{"comfy.gguf.orig_shape.a", "[1,2,4,1,32]"},
                         {"comfy.gguf.orig_shape.b", "[3,85]"},
                         {"comfy.gguf.orig_shape.z", "[1]"}};
  const std::string path = folder.put("a.gguf", file_of({{q4_0, 0}, {f32, 160}}, 160 + 1024, keys));
  const Result<io::InputFile> file = io::InputFile::open(path);
  const Result<std::unique_ptr<Reader>> reader = gguf_format.open(*file, {});
  ASSERT_TRUE(reader.ok()) << reader.error().describe();
  EXPECT_EQ((*reader)->tensors()[0].shape, (std::vector<std::int64_t>{1, 2, 4, 1, 32}));
  ASSERT_TRUE((*reader)->tensors()[1].problem);
  EXPECT_EQ((*reader)->tensors()[1].problem->message,
            "comfy.gguf.orig_shape.b is [3,85], which is no shape of its 256 elements");
  EXPECT_EQ((*reader)->metadata(), (Metadata{keys[1], keys[2]}));
  const Result<std::unique_ptr<Reader>> copied = gguf_format.open(*file, {.copied_to = "gguf"});
  EXPECT_EQ((*copied)->tensors()[0].shape, std::vector<std::int64_t>{256});
  EXPECT_EQ((*copied)->metadata(), keys);
}

}  // namespace
}  // namespace tensorcast::formats
