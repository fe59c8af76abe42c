// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/tensor_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "io/test_folder.hpp"

namespace tensorcast {
namespace {

Tensor numbers(DType dtype, std::vector<std::int64_t> shape, std::string_view bytes) {
  return Tensor::own(dtype, std::move(shape), io::bytes_of(bytes)).value();
}

Tensor texts() { return Tensor::own({2}, StringBuffer{.data = {'a', '\xC3', '\xA4'}, .offsets = {0, 1, 3}}).value(); }

TEST(TensorFile, GivesBackWhatWasWritten) {
  const io::TestFolder folder;
  for (const char* extension : {".npy", ".pb", ".npz", ".safetensors"}) {
    const std::string path = folder / (std::string("tensor") + extension);
    const Tensor tensor = numbers(DType::int16, {3}, std::string_view("\x01\x00\x02\x80\xFF\x7F", 6));
    const Result<void> written = write_tensor(path, tensor, {.name = "x"});
    ASSERT_TRUE(written.ok()) << written.error().describe();
    const Result<NamedTensor> read = read_tensor(path);
    ASSERT_TRUE(read.ok()) << read.error().describe();
    EXPECT_EQ(read->name, std::string(extension) == ".npy" ? "" : "x");
    EXPECT_EQ(read->tensor.dtype(), DType::int16);
    EXPECT_TRUE(std::ranges::equal(read->tensor.shape(), tensor.shape()));
    EXPECT_TRUE(std::ranges::equal(read->tensor.bytes(), tensor.bytes()));
  }
}

TEST(TensorFile, KeepsStringsAndPackedElements) {
  const io::TestFolder folder;
  for (const char* file : {"t.npy", "t.pb"}) {
    ASSERT_TRUE(write_tensor(folder / file, texts()).ok());
    const Result<NamedTensor> read = read_tensor(folder / file);
    ASSERT_TRUE(read.ok()) << read.error().describe();
    const Tensor expected = texts();
    EXPECT_TRUE(std::ranges::equal(read->tensor.strings().data, expected.strings().data));
    EXPECT_TRUE(std::ranges::equal(read->tensor.strings().offsets, expected.strings().offsets));

    const Tensor packed = numbers(DType::int4, {3}, "\x21\x0F");
    ASSERT_TRUE(write_tensor(folder / file, packed, {.overwrite = true}).ok());
    const Result<NamedTensor> again = read_tensor(folder / file, {.from = DType::int4});
    ASSERT_TRUE(again.ok()) << again.error().describe();
    EXPECT_EQ(again->tensor.dtype(), DType::int4);
    EXPECT_TRUE(std::ranges::equal(again->tensor.bytes(), packed.bytes()));
  }
}

TEST(TensorFile, IsNotOverwrittenUnlessAsked) {
  const io::TestFolder folder;
  const Tensor tensor = numbers(DType::uint8, {}, "\x07");
  ASSERT_TRUE(write_tensor(folder / "t.npy", tensor).ok());
  const Result<void> again = write_tensor(folder / "t.npy", tensor);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(again.error().file, folder / "t.npy");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(TensorFile, TheTypeOfAnOpaqueFileIsWhatTheReaderSays) {
  const io::TestFolder folder;
  std::string header = "{'descr': '|V1', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  header += '\n';
  const std::string npy =
      std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + "\x38\x7E";
  io::put_file(folder / "opaque.npy", npy);
  EXPECT_EQ(read_tensor(folder / "opaque.npy").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ((*read_tensor(folder / "opaque.npy", {.from = DType::float8_e4m3fn})).tensor.dtype(), DType::float8_e4m3fn);
  EXPECT_FALSE(read_tensor(folder / "opaque.npy", {.from = DType::bfloat16}).ok());

  // The type in the file takes precedence over `from`.
  ASSERT_TRUE(write_tensor(folder / "t.npy", numbers(DType::uint8, {}, "\x07")).ok());
  EXPECT_EQ((*read_tensor(folder / "t.npy", {.from = DType::float8_e4m3fn})).tensor.dtype(), DType::uint8);
}

TEST(TensorFile, OfSeveralTensorsOneIsNamed) {
  const io::TestFolder folder;
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  io::put_file(folder / "two.safetensors", file + header + "\x01\x02");
  EXPECT_EQ((*read_tensor(folder / "two.safetensors", {.tensor = "b"})).tensor.dtype(), DType::int8);
  EXPECT_EQ(read_tensor(folder / "two.safetensors").error().code, ErrorCode::invalid_argument);
  const Result<NamedTensor> missing = read_tensor(folder / "two.safetensors", {.tensor = "c"});
  EXPECT_EQ(missing.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(missing.error().tensor, "c");
}

TEST(TensorFile, WhatCannotBeHeldLeavesNoFile) {
  const io::TestFolder folder;
  const Result<void> written = write_tensor(folder / "t.safetensors", texts());
  EXPECT_EQ(written.error().code, ErrorCode::unsupported);
  EXPECT_EQ(write_tensor(folder / "t.unknown", texts()).error().code, ErrorCode::unsupported);
  EXPECT_EQ(write_tensor(folder / "t.npy", texts(), {.format = "nothing"}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(TensorFile, WritesManyTensorsAndReadsThemOneByOne) {
  const io::TestFolder folder;
  const std::vector<NamedTensor> tensors = {{.name = "b", .tensor = numbers(DType::float8_e4m3fn, {2}, "\x38\x7E")},
                                            {.name = "a", .tensor = numbers(DType::float64, {1}, "12345678")},
                                            {.name = "c", .tensor = numbers(DType::float4_e2m1fn, {2}, "\x21")}};
  for (const char* name : {"new/t.safetensors", "new/t.npz"}) {
    EXPECT_EQ(write_tensors(folder / name, tensors).ok(), std::string(name) == "new/t.npz");
    const WriteTensorsOptions options{.metadata = {{"format", "pt"}}, .overwrite = true, .parents = true};
    const Result<void> written = write_tensors(folder / name, tensors, options);
    ASSERT_TRUE(written.ok()) << written.error().describe();
    Result<TensorFile> file = TensorFile::open(folder / name, {.from = SourceTypes{DType::float8_e4m3fn}});
    ASSERT_TRUE(file.ok()) << file.error().describe();
    ASSERT_EQ(file->summary().tensors.size(), 3u);
    EXPECT_EQ(file->summary().metadata.size(), file->summary().format == "safetensors" ? 1u : 0u);
    for (std::size_t index = 3; index-- > 0;) {
      const std::string& found = file->summary().tensors[index].name;
      const auto expected = std::ranges::find(tensors, found, &NamedTensor::name);
      ASSERT_NE(expected, tensors.end());
      if (file->summary().format == "npz" && found == "c") continue;  // opaque, and not of the type that was named
      const Result<Tensor> read = file->read(index);
      ASSERT_TRUE(read.ok()) << read.error().describe();
      EXPECT_EQ(read->dtype(), expected->tensor.dtype());
      EXPECT_TRUE(std::ranges::equal(read->bytes(), expected->tensor.bytes()));
    }
    const std::size_t wide = file->summary().tensors[0].name == "a"   ? 0
                             : file->summary().tensors[1].name == "a" ? 1
                                                                      : 2;
    const Result<Tensor> some = file->read(wide, 0, 1);
    ASSERT_TRUE(some.ok()) << some.error().describe();
    EXPECT_EQ(some->bytes().size(), 8u);
    EXPECT_EQ((*file->read(wide, 1, 0)).count(), 0u);
    for (const auto& [first, count] : {std::pair{0u, 2u}, {2u, 0u}, {~0u, 1u}}) {
      EXPECT_EQ(file->read(wide, first, count).error().code, ErrorCode::invalid_argument);
    }
    const Result<Tensor> none = file->read(3);
    EXPECT_EQ(none.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(none.error().file, folder / name);
  }
  EXPECT_EQ(write_tensors(folder / "t.npy", tensors).error().code, ErrorCode::unsupported);
  EXPECT_EQ(write_tensors(folder / "t.npz", {{NamedTensor{}}}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(folder.entries(), 1u);
}

}  // namespace
}  // namespace tensorcast
