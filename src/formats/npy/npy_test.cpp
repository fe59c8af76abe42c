// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "formats/format_list.hpp"
#include "formats/format_testing.hpp"
#include "formats/npy/npy_dtypes.hpp"
#include "formats/npy/npy_header.hpp"

namespace tensorcast::formats {
namespace {

using testing::FileTensor;
using testing::make_strings;
using testing::make_tensor;
using testing::read_all;
using testing::TempFolder;
using testing::write_all;

// A .npy as NumPy lays it out; `dict` is what stands between the braces.
std::string npy_file(const std::string& dict, const std::string& data) {
  std::string header = "{" + dict + "}";
  header.append(64 - (10 + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

std::string npy_array(const std::string& descr, const std::string& shape, const std::string& data,
                      bool fortran = false) {
  return npy_file(
      "'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", ",
      data);
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(NpyHeader, IsByteForByteWhatNumPyWrites) {
  const std::int64_t shape[] = {0, 3};
  const std::string header = npy::format_header("<i8", shape);
  EXPECT_EQ(header.size(), 128u);
  EXPECT_EQ(header, std::string("\x93NUMPY\x01\x00v\x00", 10) +
                        "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 3), }" + std::string(58, ' ') + "\n");
  EXPECT_NE(npy::format_header("<f4", {}).find("'shape': (), }"), std::string::npos);
  const std::int64_t one[] = {7};
  EXPECT_NE(npy::format_header("<f4", one).find("'shape': (7,), }"), std::string::npos);
  const std::vector<std::int64_t> many(npy::max_rank, std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(npy::format_header("<f4", many).size() % 64, 0u);
}

TEST(NpyDtypes, EveryTypeHasADescriptorThatIsReadBack) {
  for (const DType dtype : all_dtypes()) {
    const std::string descr = npy::format_descr(dtype, 5);
    const Result<npy::ElementLayout> layout = npy::parse_descr(descr, npy::is_opaque(dtype) ? dtype : DType::undefined);
    ASSERT_TRUE(layout.ok()) << descr;
    EXPECT_EQ(layout->dtype, dtype) << descr;
  }
  EXPECT_EQ(npy::format_descr(DType::bfloat16), "<V2");
  EXPECT_EQ(npy::format_descr(DType::int4), "<V1");
  EXPECT_EQ(npy::format_descr(DType::float8_e5m2), "<V1");  // NumPy cannot load the <f1 that ml_dtypes writes
  EXPECT_EQ((*npy::parse_descr("<f1", DType::undefined)).dtype, DType::float8_e5m2);
  EXPECT_EQ(npy::format_descr(DType::boolean), "|b1");
  EXPECT_EQ(npy::format_descr(DType::string, 0), "<U1");
}

TEST(NpyDtypes, CharactersOfTypesAreRead) {
  constexpr std::pair<const char*, DType> known[] = {
      {"?", DType::boolean}, {"b", DType::int8},     {"<h", DType::int16},  {"i", DType::int32},
      {"<q", DType::int64},  {"B", DType::uint8},    {">H", DType::uint16}, {"I", DType::uint32},
      {"Q", DType::uint64},  {"<e", DType::float16}, {"f", DType::float32}, {">d", DType::float64}};
  for (const auto& [descr, dtype] : known) {
    const Result<npy::ElementLayout> layout = npy::parse_descr(descr, DType::undefined);
    ASSERT_TRUE(layout.ok()) << descr;
    EXPECT_EQ(layout->dtype, dtype) << descr;
    EXPECT_EQ(layout->item_bytes, npy::item_bytes(dtype)) << descr;
    EXPECT_EQ(layout->big_endian, *descr == '>') << descr;
  }
  EXPECT_FALSE(npy::parse_descr("<l", DType::undefined).ok());  // 32 bits on Windows
}

TEST(NpyDtypes, OpaqueTypesAskForFrom) {
  const Error missing = npy::parse_descr("|V1", DType::undefined).error();
  EXPECT_EQ(missing.code, ErrorCode::invalid_argument);
  EXPECT_NE(missing.hint.find("float8_e4m3fn"), std::string::npos);
  EXPECT_EQ(missing.hint.find("bfloat16"), std::string::npos);
  const Error wrong = npy::parse_descr("<V2", DType::float8_e4m3fn).error();
  EXPECT_EQ(wrong.code, ErrorCode::invalid_argument);
  EXPECT_NE(wrong.hint.find("bfloat16"), std::string::npos);
  EXPECT_EQ((*npy::parse_descr("|V4", DType::float32)).dtype, DType::float32);
}

TEST(NpyFormat, RoundTripsEveryNumberType) {
  const TempFolder folder;
  for (const DType dtype : all_dtypes()) {
    if (dtype == DType::string) continue;
    std::string bytes(storage_bytes(dtype, 5 * 3), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 37 + 1);
    const int tail_bits = 15 * bit_width(dtype) % 8;
    if (tail_bits != 0) bytes.back() = static_cast<char>(bytes.back() & ((1 << tail_bits) - 1));
    const std::string path = folder.file("a.npy");
    ASSERT_TRUE(write_all(npy_format, path, {make_tensor("", dtype, {5, 3}, bytes)}, {}, 3).ok());
    const auto tensors =
        read_all(npy_format, path, {.raw = {}, .from = npy::is_opaque(dtype) ? dtype : DType::undefined}, 7);
    ASSERT_TRUE(tensors.ok()) << tensors.error().describe();
    EXPECT_EQ((*tensors)[0].info.dtype, dtype);
    EXPECT_EQ((*tensors)[0].info.shape, (std::vector<std::int64_t>{5, 3}));
    EXPECT_EQ((*tensors)[0].bytes, bytes) << name(dtype);
  }
}

TEST(NpyFormat, TypesUnder8BitsTakeAByteEachAndUpperBitsMeanNothing) {
  const TempFolder folder;
  const std::string path = folder.put("a.npy", npy_array("|V1", "(3,)", "\xFF\x07\x38"));
  const auto tensors = read_all(npy_format, path, {.raw = {}, .from = DType::int4});
  ASSERT_TRUE(tensors.ok());
  EXPECT_EQ((*tensors)[0].bytes, "\x7F\x08");
  ASSERT_TRUE(write_all(npy_format, path, *tensors).ok());
  const std::string written = testing::file_content(path);
  EXPECT_EQ(written.substr(written.size() - 3), "\x0F\x07\x08");
}

TEST(NpyFormat, SwapsBigEndianInStepsOfAnySize) {
  const TempFolder folder;
  const std::string path = folder.put("a.npy", npy_array(">i4", "(3,)", std::string("\0\0\0\1\0\0\0\2\0\0\1\0", 12)));
  for (const std::size_t step : {1, 3, 4, 5, 12}) {
    const auto tensors = read_all(npy_format, path, {}, step);
    ASSERT_TRUE(tensors.ok());
    EXPECT_EQ((*tensors)[0].bytes, bytes_of<std::int32_t>({1, 2, 256})) << step;
  }
}

TEST(NpyFormat, FortranOrderBecomesCOrder) {
  const TempFolder folder;
  // shape (2, 3): columns lie together in the file.
  const std::string path =
      folder.put("a.npy", npy_array("<i2", "(2, 3)", bytes_of<std::int16_t>({0, 3, 1, 4, 2, 5}), true));
  for (const std::size_t step : {1, 4, 100}) {
    const auto tensors = read_all(npy_format, path, {}, step);
    ASSERT_TRUE(tensors.ok());
    EXPECT_EQ((*tensors)[0].bytes, bytes_of<std::int16_t>({0, 1, 2, 3, 4, 5})) << step;
  }
  (void)folder.put("a.npy", npy_array(">U1", "(2, 2)", std::string("\0\0\0a\0\0\0c\0\0\0b\0\0\0d", 16), true));
  const auto strings = read_all(npy_format, path);
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ(testing::texts_of((*strings)[0].strings), (std::vector<std::string>{"a", "b", "c", "d"}));
}

// Larger than one block of rows, in each of the ways in which blocks are cut.
TEST(NpyFormat, SlowFortranOrderIsReorderedInBlocks) {
  const TempFolder folder;
  const std::vector<std::vector<std::int64_t>> shapes = {
      {3000, 1, 4000},    // blocks of whole rows, cut out of columns that lie far apart
      {500, 100, 300},    // short pieces that lie close together
      {2, 3, 3'000'000},  // one row is larger than a block
  };
  for (const std::vector<std::int64_t>& shape : shapes) {
    const auto count = static_cast<std::uint64_t>(shape[0] * shape[1] * shape[2]);
    std::vector<std::int32_t> values(count);
    std::size_t position = 0;
    for (std::int64_t k = 0; k < shape[2]; ++k) {
      for (std::int64_t j = 0; j < shape[1]; ++j) {
        for (std::int64_t i = 0; i < shape[0]; ++i) {
          values[position++] = static_cast<std::int32_t>((i * shape[1] + j) * shape[2] + k);
        }
      }
    }
    const std::string text =
        "(" + std::to_string(shape[0]) + ", " + std::to_string(shape[1]) + ", " + std::to_string(shape[2]) + ")";
    const std::string path = folder.put("a.npy", npy_array("<i4", text, bytes_of(values), true));
    std::iota(values.begin(), values.end(), 0);
    const auto tensors = read_all(npy_format, path);
    ASSERT_TRUE(tensors.ok());
    EXPECT_TRUE((*tensors)[0].bytes == bytes_of(values)) << text;
  }
}

TEST(NpyFormat, StringsAreUnicodeOfTheLongestWidth) {
  const TempFolder folder;
  const std::vector<std::string> texts = {"a", "", "\xE2\x82\xAC", "\xF0\x9F\x98\x80 ok", std::string("x\0y", 3)};
  const std::string path = folder.file("a.npy");
  ASSERT_TRUE(write_all(npy_format, path, {make_strings("", {5}, texts)}).ok());
  EXPECT_NE(testing::file_content(path).find("'<U4'"), std::string::npos);
  const auto tensors = read_all(npy_format, path);
  ASSERT_TRUE(tensors.ok());
  EXPECT_EQ(testing::texts_of((*tensors)[0].strings), texts);
  EXPECT_EQ((*tensors)[0].info.bytes, 5 * 4 * 4u);
}

TEST(NpyFormat, StringsThatNumPyCannotHoldNameTheElement) {
  const TempFolder folder;
  const Result<void> nul =
      write_all(npy_format, folder.file("a.npy"), {make_strings("", {2}, {"a", std::string("b\0", 2)})});
  EXPECT_EQ(nul.error().code, ErrorCode::unsupported);
  EXPECT_EQ(nul.error().element, 1u);
  for (const std::string bad :
       {"\xFF", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    const Result<void> written = write_all(npy_format, folder.file("a.npy"), {make_strings("", {1}, {bad})});
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(written.error().code, ErrorCode::parse);
  }
  std::vector<std::string> padded(30'000, "");
  padded[7] = std::string(10'000, 'x');
  EXPECT_EQ(write_all(npy_format, folder.file("a.npy"), {make_strings("", {30'000}, padded)}).error().code,
            ErrorCode::unsupported);
}

TEST(NpyFormat, ZeroElementsScalarsAndHugeEmptyShapes) {
  const TempFolder folder;
  const std::string path = folder.put("a.npy", npy_array("<f4", "(9223372036854775807, 9223372036854775807, 0)", ""));
  const auto empty = read_all(npy_format, path);
  ASSERT_TRUE(empty.ok()) << empty.error().describe();
  EXPECT_EQ((*empty)[0].info.count, 0u);
  (void)folder.put("a.npy", npy_array("<f4", "()", "abcd"));
  const auto scalar = read_all(npy_format, path);
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ((*scalar)[0].info.count, 1u);
  EXPECT_EQ((*scalar)[0].bytes, "abcd");
}

TEST(NpyFormat, LongHeadersAreRefusedBeforeTheyAreRead) {
  const TempFolder folder;
  std::string file("\x93NUMPY\x02\x00\x01\x00\x10\x00", 12);  // 1 MiB and one byte
  file.append((1 << 20) + 1, ' ');
  const Error error = read_all(npy_format, folder.put("a.npy", file)).error();
  EXPECT_EQ(error.code, ErrorCode::parse);
  EXPECT_EQ(error.message, "malformed npy header: it claims 1048577 bytes");
}

TEST(NpyFormat, HoldsOneArrayOfUpTo64Dimensions) {
  const TempFolder folder;
  const FileTensor tensor = make_tensor("", DType::uint8, {1}, "x");
  EXPECT_EQ(write_all(npy_format, folder.file("a.npy"), {tensor, tensor}).error().code, ErrorCode::unsupported);
  EXPECT_TRUE(write_all(npy_format, folder.file("a.npy"),
                        {make_tensor("", DType::uint8, std::vector<std::int64_t>(64, 1), "x")})
                  .ok());
  EXPECT_EQ(write_all(npy_format, folder.file("a.npy"),
                      {make_tensor("", DType::uint8, std::vector<std::int64_t>(65, 1), "x")})
                .error()
                .code,
            ErrorCode::unsupported);
}

}  // namespace
}  // namespace tensorcast::formats
