// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/tensor_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

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

TEST(TensorFile, StringsHaveTheRandomWordsOfTheirName) {
  const io::TestFolder folder;
  StringBuffer texts{.data = {}, .offsets = {0}};
  std::vector<float> values(64, 1.5F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    texts.data.insert(texts.data.end(), {'1', '.', '5'});
    texts.offsets.push_back(static_cast<std::int64_t>(texts.data.size()));
  }
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  ASSERT_TRUE(write_tensor(folder / "texts.pb", Tensor::own({64}, texts).value(), {.name = "x"}).ok());
  ASSERT_TRUE(write_tensor(folder / "numbers.pb", numbers(DType::float32, {64}, bytes), {.name = "x"}).ok());
  const CastOptions options{.rounding = Rounding::stochastic, .seed = 5};
  TensorFile texts_file = TensorFile::open(folder / "texts.pb").value();
  TensorFile numbers_file = TensorFile::open(folder / "numbers.pb").value();
  const Tensor of_texts = texts_file.read(0, DType::int8, options).value();
  const Tensor of_numbers = numbers_file.read(0, DType::int8, options).value();
  EXPECT_TRUE(std::ranges::equal(of_texts.bytes(), of_numbers.bytes()));
}

// Bits behind the last element are zero, whatever the buffer had and whatever follows in the file.
TEST(TensorFile, ReadsPartsOfPackedElementsWithZerosBehind) {
  const io::TestFolder folder;
  ASSERT_TRUE(write_tensor(folder / "t.npy", numbers(DType::int4, {5}, "\x21\x43\x05")).ok());
  TensorFile file = TensorFile::open(folder / "t.npy", {.from = DType::int4}).value();
  const auto bytes = [](const Tensor& tensor) {
    return std::string(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size());
  };
  EXPECT_EQ(bytes(file.read(0, 0, 3).value()), "\x21\x03");
  const IndexRange from_1_to_4[] = {{1, 4}};
  EXPECT_EQ(bytes(file.read_slice(0, from_1_to_4).value()), "\x32\x04");
  std::byte out[2];
  for (const DType to : {DType::int4, DType::uint4}) {
    for (const bool in_slices : {false, true}) {
      std::ranges::fill(out, std::byte{0xff});
      const MutableTensorView view{to, {3}, out};
      ASSERT_TRUE(in_slices ? file.read_slice(0, from_1_to_4, view) : file.read(0, 0, view));
      EXPECT_EQ(std::to_integer<int>(out[1]), in_slices ? 4 : 3) << name(to);
    }
  }
  const Result<void> late = file.read(0, 1, {DType::int4, {3}, out});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().hint, "begin at a multiple of 8, or read a slice, which may begin anywhere");
}

TEST(TensorFile, AFileThatWasMovedFromIsEmpty) {
  const io::TestFolder folder;
  ASSERT_TRUE(write_tensor(folder / "t.npy", numbers(DType::int8, {2}, "ab")).ok());
  TensorFile file = TensorFile::open(folder / "t.npy").value();
  const TensorFile taken = std::move(file);
  EXPECT_EQ(taken.summary().tensors.size(), 1u);
  EXPECT_TRUE(file.summary().tensors.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(file.path(), "");
  EXPECT_EQ(file.read(0).error().message, "this TensorFile was moved from");
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

// A GGUF file with a tensor "w" of 2 x 32 elements of Q8_0: the codes 0 to 31 at scale 0.5, then their negatives.
std::string gguf_file() {
  std::string file("GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  file += std::string("\1\0\0\0\0\0\0\0w\2\0\0\0\40\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0", 41);
  file.resize(96, '\0');
  for (const int sign : {1, -1}) {
    file += std::string("\0\70", 2);
    for (int code = 0; code < 32; ++code) file += static_cast<char>(sign * code);
  }
  return file;
}

TEST(TensorFile, ReadsBlocksOfGgmlAsBytesAndAsNumbers) {
  const std::string bytes = gguf_file();
  Result<TensorFile> file = TensorFile::open(memory_source(std::as_bytes(std::span(bytes))), "model");
  ASSERT_TRUE(file.ok()) << file.error().describe();
  EXPECT_EQ(file->path(), "model");
  EXPECT_EQ(file->summary().tensors[0].foreign_dtype, "Q8_0");
  const Result<Tensor> stored = file->read(0);
  ASSERT_TRUE(stored.ok()) << stored.error().describe();
  EXPECT_EQ(stored->dtype(), DType::uint8);
  EXPECT_EQ(std::vector(stored->shape().begin(), stored->shape().end()), (std::vector<std::int64_t>{2, 34}));
  EXPECT_EQ(std::memcmp(stored->bytes().data(), bytes.data() + 96, 68), 0);
  const Result<Tensor> last = file->read(0, 66, 2);
  EXPECT_EQ(last->bytes()[1], std::byte(-31));
  EXPECT_EQ(file->read(0, 66, 3).error().code, ErrorCode::invalid_argument);

  const Result<Tensor> decoded = file->read(0, DType::float32);
  ASSERT_TRUE(decoded.ok()) << decoded.error().describe();
  EXPECT_EQ(std::vector(decoded->shape().begin(), decoded->shape().end()), (std::vector<std::int64_t>{2, 32}));
  const float* numbers = reinterpret_cast<const float*>(decoded->bytes().data());
  EXPECT_EQ(numbers[31], 15.5F);
  EXPECT_EQ(numbers[63], -15.5F);

  std::array<std::int8_t, 3> some{};
  const MutableTensorView out{DType::int8, {3}, std::as_writable_bytes(std::span(some))};
  ASSERT_TRUE(file->read(0, 29, out).ok());
  EXPECT_EQ(some, (std::array<std::int8_t, 3>{14, 15, 15}));
  EXPECT_EQ(file->read(0, 62, out).error().code, ErrorCode::invalid_argument);
  const Result<void> refused = file->read(0, 61, {DType::uint8, {3}, out.bytes}, CastOptions::lossless_integers());
  EXPECT_EQ(refused.error().element, 61u);
  EXPECT_EQ(refused.error().tensor, "w");
  EXPECT_EQ(refused.error().file, "model");

  // As the first that is read of a file.
  Result<TensorFile> again = TensorFile::open(memory_source(std::as_bytes(std::span(bytes))), "model");
  const IndexRange slice[] = {{1, 2}, {31, 32}};
  float number = 0;
  ASSERT_TRUE(
      again->read_slice(0, slice, {DType::float32, {1, 1}, std::as_writable_bytes(std::span(&number, 1))}).ok());
  EXPECT_EQ(number, -15.5F);

  const io::TestFolder folder;
  io::put_file(folder / "model.gguf", bytes);
  EXPECT_EQ(read_tensor(folder / "model.gguf").error().message, "elements of type Q8_0 are not supported");
}

TEST(TensorFile, CastsWhatItReads) {
  const io::TestFolder folder;
  const std::vector<NamedTensor> tensors = {
      {.name = "four", .tensor = numbers(DType::float4_e2m1fn, {10}, "\x21\x43\x65\x07\x21")},
      {.name = "texts",
       .tensor = Tensor::own({2}, StringBuffer{.data = {'1', '2', '3'}, .offsets = {0, 1, 3}}).value()}};
  for (const NamedTensor& each : tensors) {
    ASSERT_TRUE(write_tensor(folder / (each.name + ".pb"), each.tensor).ok());
  }
  Result<TensorFile> four = TensorFile::open(folder / "four.pb");
  ASSERT_TRUE(four.ok());
  std::array<float, 2> pair{};
  const MutableTensorView out{DType::float32, {2}, std::as_writable_bytes(std::span(pair))};
  ASSERT_TRUE(four->read(0, 8, out).ok());
  EXPECT_EQ(pair, (std::array{0.5F, 1.0F}));
  EXPECT_EQ(four->read(0, 4, out).error().code, ErrorCode::invalid_argument) << "not at a whole byte of the file";
  EXPECT_EQ(four->read(0, 8, {DType::float32, {1}, out.bytes}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(four->read(0, DType::undefined).error().code, ErrorCode::invalid_argument);
  Result<TensorFile> texts = TensorFile::open(folder / "texts.pb");
  ASSERT_TRUE(texts->read(0, 0, out).ok());
  EXPECT_EQ(pair, (std::array{1.0F, 23.0F}));
  EXPECT_EQ(texts->read(0, 1, {DType::float32, {1}, out.bytes.first(4)}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(texts->read(0, 0, 1).error().code, ErrorCode::invalid_argument);
}

struct Failing final : ByteSource {
  std::string bytes = gguf_file();
  std::uint64_t claimed = bytes.size();
  bool fails = false;
  std::uint64_t size() const override { return claimed; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) override {
    if (fails || offset > bytes.size() || out.size() > bytes.size() - offset) {
      return Error{.code = ErrorCode::io, .message = "the line is cut"};
    }
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return {};
  }
};

TEST(TensorFile, SourcesThatFailShrinkOrLieAreErrors) {
  const auto source = std::make_shared<Failing>();
  Result<TensorFile> file = TensorFile::open(source, "mine");
  ASSERT_TRUE(file.ok()) << file.error().describe();
  source->fails = true;
  EXPECT_EQ(file->read(0).error().describe(), "mine: tensor \"w\": the line is cut");
  source->fails = false;
  source->claimed = 100;
  EXPECT_EQ(file->read(0, DType::float32).error().describe(),
            "mine: tensor \"w\": the source has 100 bytes, and had 164 when it was opened");
  EXPECT_EQ(TensorFile::open(source, "mine").error().file, "mine");
  source->bytes = source->bytes.substr(0, 40);
  source->claimed = std::uint64_t{1} << 60;
  const Result<TensorFile> lied = TensorFile::open(source, "mine");
  EXPECT_EQ(lied.error().describe(), "mine: the line is cut");
  EXPECT_EQ(TensorFile::open(nullptr, "mine").error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace tensorcast
