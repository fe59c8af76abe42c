// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include <cstring>
#include <numeric>

#include "formats/format_list.hpp"
#include "formats/format_testing.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"

namespace tensorcast::formats {
namespace {

using onnx::Field;
using testing::file_content;
using testing::FileTensor;
using testing::make_strings;
using testing::make_tensor;
using testing::read_all;
using testing::TempFolder;
using testing::write_all;

constexpr protozero::pbf_tag_type tag(Field field) { return static_cast<protozero::pbf_tag_type>(field); }

// A message of these dimensions and type; `add_data` writes the rest.
template <class AddData>
std::string message(DType dtype, const std::vector<std::int64_t>& shape, AddData add_data) {
  std::string text;
  protozero::pbf_writer writer(text);
  writer.add_packed_int64(tag(Field::dims), shape.begin(), shape.end());
  writer.add_int32(tag(Field::data_type), static_cast<std::int32_t>(dtype));
  add_data(writer);
  return text;
}

Result<FileTensor> read_one(const std::string& content, std::size_t step = 1 << 20) {
  const TempFolder folder;
  Result<std::vector<FileTensor>> tensors = read_all(tensor_proto_format, folder.put("a.pb", content), {}, step);
  if (!tensors) return std::move(tensors).error();
  return std::move(tensors->front());
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(TensorProtoFormat, RoundTripsEveryType) {
  const TempFolder folder;
  for (const DType dtype : all_dtypes()) {
    EXPECT_EQ(tensor_proto_format.can_hold(dtype), is_onnx(dtype)) << name(dtype);
    if (!is_onnx(dtype)) continue;
    FileTensor tensor = dtype == DType::string
                            ? make_strings("w", {3}, {"a", "", "\xC3\xA9"})
                            : make_tensor("w", dtype, {5, 3}, std::string(storage_bytes(dtype, 15), '\x05'));
    const std::string path = folder.file("a.pb");
    ASSERT_TRUE(write_all(tensor_proto_format, path, {tensor}, {}, 3).ok());
    const auto read = read_all(tensor_proto_format, path, {}, 7);
    ASSERT_TRUE(read.ok()) << read.error().describe();
    EXPECT_EQ((*read)[0].info.name, "w");
    EXPECT_EQ((*read)[0].info.dtype, dtype);
    EXPECT_EQ((*read)[0].info.shape, tensor.info.shape);
    EXPECT_EQ((*read)[0].info.bytes, tensor.info.bytes);
    EXPECT_EQ((*read)[0].bytes, tensor.bytes);
    EXPECT_EQ(testing::texts_of((*read)[0].strings), testing::texts_of(tensor.strings));
  }
}

TEST(TensorProtoFormat, WritesFieldsInAscendingOrder) {
  const TempFolder folder;
  const WriteOptions options{.metadata = {{"format", "pt"}, {"doc_string", "words"}}, .source_format = "safetensors"};
  ASSERT_TRUE(
      write_all(tensor_proto_format, folder.file("a.pb"), {make_tensor("w", DType::uint8, {2}, "ab")}, options).ok());
  EXPECT_EQ(file_content(folder.file("a.pb")), std::string("\x08\x02\x10\x02\x42\x01w\x4A\x02"
                                                           "ab\x62\x05words\x82\x01\x0C\x0A\x06"
                                                           "format\x12\x02pt"));
  const Result<io::InputFile> file = io::InputFile::open(folder.file("a.pb"));
  const Result<std::unique_ptr<Reader>> reader = tensor_proto_format.open(*file, {});
  EXPECT_EQ((*reader)->metadata(), (Metadata{{"doc_string", "words"}, {"format", "pt"}}));
}

TEST(TensorProtoFormat, ReadsFloat6FromOneCodeAValue) {
  const std::vector<std::int32_t> values = {0x01, 0x3E, 0x15, 0x20, 0x3F};
  const auto text_of = [](const std::vector<std::int32_t>& codes) {
    return message(DType::float6_e2m3fn, {static_cast<std::int64_t>(codes.size())}, [&](protozero::pbf_writer& writer) {
      writer.add_packed_int32(tag(Field::int32_data), codes.begin(), codes.end());
    });
  };
  for (const std::size_t step : {1, 2, 100}) {
    const Result<FileTensor> tensor = read_one(text_of(values), step);
    ASSERT_TRUE(tensor.ok()) << tensor.error().describe();
    EXPECT_EQ(tensor->bytes, "\x81\x5F\x81\x3F");
  }
  for (const std::int32_t no_code : {64, -1}) {
    const Error error = read_one(text_of({1, no_code}), 100).error();
    EXPECT_EQ(error.code, ErrorCode::parse);
    EXPECT_EQ(error.element, 1u);
  }
}

TEST(TensorProtoFormat, ReadsEveryTypeFromItsTypedField) {
  for (const DType dtype : all_dtypes()) {
    if (!is_onnx(dtype) || onnx::typed_field(dtype) != Field::int32_data || onnx::has_value_per_code(dtype)) continue;
    const std::uint64_t width = onnx::bytes_per_value(dtype);
    const std::int64_t count = 3 * 8 / std::min(bit_width(dtype), 8);
    const std::vector<std::int32_t> values = {1, 127, width == 4 ? -7 : 0x81};
    std::string expected;
    for (const std::int32_t value : values) expected.append(reinterpret_cast<const char*>(&value), width);
    const std::string text = message(dtype, {count}, [&](protozero::pbf_writer& writer) {
      writer.add_packed_int32(tag(Field::int32_data), values.begin(), values.end());
    });
    for (const std::size_t step : {1, 2, 100}) {
      const Result<FileTensor> tensor = read_one(text, step);
      ASSERT_TRUE(tensor.ok()) << tensor.error().describe();
      EXPECT_EQ(tensor->bytes, expected) << name(dtype);
    }
  }
  const std::vector<float> floats = {1.5f, -2.0f};
  EXPECT_EQ((*read_one(message(DType::float32, {2},
                               [&](protozero::pbf_writer& writer) {
                                 writer.add_packed_float(tag(Field::float_data), floats.begin(), floats.end());
                               })))
                .bytes,
            bytes_of(floats));
  const std::vector<double> doubles = {1.5, -2.0};
  EXPECT_EQ((*read_one(message(DType::float64, {2},
                               [&](protozero::pbf_writer& writer) {
                                 for (const double value : doubles) writer.add_double(tag(Field::double_data), value);
                               })))
                .bytes,
            bytes_of(doubles));
  const std::vector<std::int64_t> longs = {-1, INT64_MIN, INT64_MAX};
  EXPECT_EQ((*read_one(message(DType::int64, {3},
                               [&](protozero::pbf_writer& writer) {
                                 for (const std::int64_t value : longs) writer.add_int64(tag(Field::int64_data), value);
                               })))
                .bytes,
            bytes_of(longs));
  const std::vector<std::uint64_t> unsigned_longs = {0, UINT64_MAX};
  EXPECT_EQ((*read_one(message(DType::uint64, {2},
                               [&](protozero::pbf_writer& writer) {
                                 writer.add_packed_uint64(tag(Field::uint64_data), unsigned_longs.begin(),
                                                          unsigned_longs.end());
                               })))
                .bytes,
            bytes_of(unsigned_longs));
  EXPECT_EQ((*read_one(message(
                 DType::uint32, {1},
                 [&](protozero::pbf_writer& writer) { writer.add_uint64(tag(Field::uint64_data), UINT32_MAX); })))
                .bytes,
            std::string(4, '\xFF'));
}

TEST(TensorProtoFormat, NarrowIntegersMayBeSignedOrCodes) {
  const auto read_int8 = [](std::int32_t value) {
    return read_one(message(DType::int8, {1},
                            [&](protozero::pbf_writer& writer) { writer.add_int32(tag(Field::int32_data), value); }));
  };
  EXPECT_EQ((*read_int8(-128)).bytes, "\x80");
  EXPECT_EQ((*read_int8(255)).bytes, "\xFF");
  EXPECT_EQ(read_int8(-129).error().message, "int32_data holds -129, which is not a value of int8");
  EXPECT_EQ(read_int8(256).error().element, 0u);
}

TEST(TensorProtoFormat, ValuesMayBeSplitOverManyFields) {
  std::vector<std::int32_t> values(100'000);
  std::iota(values.begin(), values.end(), -50'000);
  const std::string text = message(DType::int32, {100'000}, [&](protozero::pbf_writer& writer) {
    for (std::size_t i = 0; i < values.size(); i += 1000) {
      writer.add_int32(tag(Field::int32_data), values[i]);
      writer.add_string(tag(Field::name), "again");
      writer.add_packed_int32(tag(Field::int32_data), values.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                              values.begin() + static_cast<std::ptrdiff_t>(i) + 1000);
    }
    writer.add_string(tag(Field::doc_string), std::string(100'000, 'd'));
  });
  for (const std::size_t step : {4'096, 10'000, 1 << 20}) {
    const Result<FileTensor> tensor = read_one(text, step);
    ASSERT_TRUE(tensor.ok()) << tensor.error().describe();
    EXPECT_TRUE(tensor->bytes == bytes_of(values));
  }
}

TEST(TensorProtoFormat, TypedDataCanBeReadAgain) {
  const TempFolder folder;
  std::vector<std::int32_t> values(40'000);
  std::iota(values.begin(), values.end(), 0);
  const std::string path = folder.put("a.pb", message(DType::int32, {40'000}, [&](protozero::pbf_writer& writer) {
                                        writer.add_packed_int32(tag(Field::int32_data), values.begin(), values.end());
                                      }));
  const Result<io::InputFile> file = io::InputFile::open(path);
  const Result<std::unique_ptr<Reader>> reader = tensor_proto_format.open(*file, {});
  ASSERT_TRUE(reader.ok());
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<std::int32_t> read(values.size());
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(read));
    ASSERT_TRUE((*reader)->read(0, 0, bytes.first(100'002)).ok());
    ASSERT_TRUE((*reader)->read(0, 100'002, bytes.subspan(100'002)).ok());
    EXPECT_EQ(read, values);
  }
}

TEST(TensorProtoFormat, ExternalDataIsFoundBesideTheFile) {
  const std::string folder = std::string(TENSORCAST_SOURCE_DIR) + "/src/formats/onnx/testdata/";
  const auto tensors = read_all(tensor_proto_format, folder + "valid/external.pb");
  ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
  EXPECT_EQ((*tensors)[0].bytes, bytes_of<float>({0.0f, 1.0f}));
  EXPECT_EQ(
      read_all(tensor_proto_format, folder + "invalid/parse--external-goes-up.pb").error().message,
      "external data \"../valid/data/weights.bin\": the location of the data leads out of the folder: it goes up");
}

TEST(TensorProtoFormat, MessagesOverTwoGigabytesAreNotWritten) {
  const TempFolder folder;
  FileTensor tensor = make_tensor("", DType::uint8, {1}, "x");
  tensor.info.count = tensor.info.bytes = (std::uint64_t{1} << 31) - 5;
  tensor.info.shape = {static_cast<std::int64_t>(tensor.info.count)};
  const Error error = write_all(tensor_proto_format, folder.file("a.pb"), {tensor}).error();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_NE(error.hint.find("safetensors"), std::string::npos);
}

TEST(TensorProtoFormat, FilesOverTwoGigabytesAreNotRead) {
  const TempFolder folder;
  const std::string path = folder.put("a.pb", "");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 31);
  EXPECT_EQ(read_all(tensor_proto_format, path).error().code, ErrorCode::parse);
}

}  // namespace
}  // namespace tensorcast::formats
