// SPDX-License-Identifier: Apache-2.0
// Files of tensors in C: from paths, from memory and from a program's own reads.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "io/test_folder.hpp"
#include "tensorcast/c_files.h"

namespace {

// A GGUF file with a tensor "w" of 32 elements of Q8_0: 0.5 times the codes 0 to 31.
std::string gguf() {
  std::string file("GGUF\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
  file += std::string("\1\0\0\0\0\0\0\0w\1\0\0\0\40\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0", 33);
  file.resize(64, '\0');
  file += std::string("\0\70", 2);
  for (int code = 0; code < 32; ++code) file += static_cast<char>(code);
  return file;
}

// Bytes whose reads are counted, and fail from the `fails`-th on.
struct Bytes {
  std::string bytes;
  int reads = 0;
  int fails = -1;
  tc_status status = TC_IO;

  tc_source source() {
    tc_source source = TC_SOURCE_INIT;
    source.context = this;
    source.size = bytes.size();
    source.read = [](void* context, uint64_t offset, void* dst, size_t size) {
      Bytes& self = *static_cast<Bytes*>(context);
      if (self.reads++ == self.fails) return self.status;
      std::memcpy(dst, self.bytes.data() + offset, size);
      return TC_OK;
    };
    return source;
  }
};

class CTensorFiles : public testing::Test {
 protected:
  ~CTensorFiles() override { tc_file_close(file_); }

  void write(const char* name) {
    const float a[6] = {1, 2, 3, 4, 5, 300};
    const unsigned char b[2] = {0x21, 0x43};
    const int64_t shape_a[] = {2, 3}, shape_b[] = {4};
    const char* names[] = {"a", "b"};
    const tc_array arrays[] = {{a, shape_a, 2, TC_FLOAT32}, {b, shape_b, 1, TC_FLOAT4_E2M1FN}};
    const char* keys[] = {"author"};
    const char* texts[] = {"me"};
    tc_write_options options = TC_WRITE_OPTIONS_INIT;
    options.metadata_names = keys;
    options.metadata_texts = texts;
    options.metadata_count = 1;
    options.parents = 1;
    path_ = folder_ / name;
    ASSERT_EQ(tc_write_file(path_.c_str(), names, arrays, 2, &options), TC_OK) << tc_last_error();
  }

  tensorcast::io::TestFolder folder_;
  std::string path_;
  tc_file* file_ = nullptr;
};

TEST_F(CTensorFiles, OptionsThatAreOfNoUseAreRefused) {
  write("options.safetensors");
  ASSERT_EQ(tc_file_open(path_.c_str(), &file_), TC_OK) << tc_last_error();
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  float numbers[6] = {};
  const auto is_read = [&](tc_dtype to) {
    const tc_status whole = tc_file_read(file_, 0, 0, 6, numbers, sizeof numbers, to, &options);
    EXPECT_EQ(tc_file_read_slice(file_, 0, nullptr, nullptr, 0, numbers, sizeof numbers, to, &options), whole);
    return whole == TC_OK;
  };
  options.threads = 1;
  EXPECT_TRUE(is_read(TC_UNDEFINED)) << tc_last_error();
  options.scale = 2;
  EXPECT_TRUE(is_read(TC_FLOAT32)) << tc_last_error();
  EXPECT_FALSE(is_read(TC_UNDEFINED)) << "elements as they are stored have no scale";
  options.scale = 1;
  options.out_of_range = 77;
  EXPECT_FALSE(is_read(TC_UNDEFINED));
  options.out_of_range = 0;
  options.first_element = 2;
  EXPECT_FALSE(is_read(TC_FLOAT32)) << "the file knows the places";
}

TEST_F(CTensorFiles, ReadsBackWhatWasWritten) {
  write("new/t.safetensors");
  ASSERT_EQ(tc_file_open(path_.c_str(), &file_), TC_OK) << tc_last_error();
  ASSERT_EQ(tc_file_count(file_), 2u);
  EXPECT_STREQ(tc_file_format(file_), "safetensors");
  tc_tensor_info info = TC_TENSOR_INFO_INIT;
  ASSERT_EQ(tc_file_tensor(file_, 0, &info), TC_OK);
  EXPECT_STREQ(info.name, "a");
  EXPECT_EQ(info.rank, 2u);
  EXPECT_EQ(info.shape[1], 3);
  EXPECT_EQ(info.bytes, 24u);
  EXPECT_EQ(info.dtype, TC_FLOAT32);
  EXPECT_STREQ(info.foreign_dtype, "");
  EXPECT_STREQ(info.problem, "");
  float all[6] = {};
  ASSERT_EQ(tc_file_read(file_, 0, 0, 6, all, sizeof all, TC_UNDEFINED, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(all[5], 300.0F);
  unsigned char two[2] = {};
  ASSERT_EQ(tc_file_read(file_, 0, 4, 2, two, sizeof two, TC_UINT8, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(two[0], 5);
  EXPECT_EQ(two[1], 44) << "wraps";
  tc_cast_options options = TC_CAST_OPTIONS_INIT;
  options.out_of_range = TC_RANGE_ERROR;
  EXPECT_EQ(tc_file_read(file_, 0, 4, 2, two, sizeof two, TC_UINT8, &options), TC_OUT_OF_RANGE);
  EXPECT_EQ(tc_last_error_element(), 5);
  EXPECT_STREQ(tc_last_error_tensor(), "a");
  EXPECT_EQ(std::string(tc_last_error_file()), path_);
  ASSERT_EQ(tc_file_read(file_, 1, 0, 4, two, sizeof two, TC_UNDEFINED, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(two[1], 0x43);
  EXPECT_EQ(tc_file_read(file_, 0, 6, 0, nullptr, 0, TC_UNDEFINED, nullptr), TC_OK) << "no elements";
}

// NumPy has no name for bfloat16, and a raw file has none at all.
TEST_F(CTensorFiles, OpensWhatDoesNotSayItsType) {
  const unsigned short numbers[2] = {0x3F80, 0x4000};
  const int64_t shape[] = {2}, rows[] = {2, 1}, too_many[] = {3};
  const char* const name = "";
  const tc_array array = {numbers, shape, 1, TC_BFLOAT16};
  const std::string npy = folder_ / "t.npy", raw = folder_ / "t.bin";
  for (const std::string& path : {npy, raw}) {
    ASSERT_EQ(tc_write_file(path.c_str(), &name, &array, 1, nullptr), TC_OK) << tc_last_error();
  }
  EXPECT_NE(tc_file_open(npy.c_str(), &file_), TC_OK);
  tc_open_options options = TC_OPEN_OPTIONS_INIT;
  options.from = TC_BFLOAT16;
  ASSERT_EQ(tc_file_open_with(npy.c_str(), &options, &file_), TC_OK) << tc_last_error();
  float read[2] = {};
  ASSERT_EQ(tc_file_read(file_, 0, 0, 2, read, sizeof read, TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(read[1], 2.0F);
  tc_file_close(std::exchange(file_, nullptr));

  options.shape = rows;
  options.rank = 2;
  ASSERT_EQ(tc_file_open_with(raw.c_str(), &options, &file_), TC_OK) << tc_last_error();
  tc_tensor_info info = TC_TENSOR_INFO_INIT;
  ASSERT_EQ(tc_file_tensor(file_, 0, &info), TC_OK);
  EXPECT_EQ(info.rank, 2u);
  EXPECT_EQ(info.dtype, TC_BFLOAT16);
  tc_file_close(std::exchange(file_, nullptr));
  Bytes bytes{.bytes = std::string("\x80\x3F\0\x40", 4)};
  const tc_source source = bytes.source();
  options.source = &source;
  options.format = "raw";
  ASSERT_EQ(tc_file_open_with(nullptr, &options, &file_), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_file_count(file_), 1u);
  tc_file_close(std::exchange(file_, nullptr));

  const auto refused = [&](const char* why) {
    EXPECT_NE(tc_file_open_with(raw.c_str(), &options, &file_), TC_OK) << why;
    EXPECT_EQ(file_, nullptr) << why;
  };
  options.source = nullptr;
  options.shape = too_many, options.rank = 1;
  refused("other sizes");
  options.shape = rows, options.rank = 1025;
  refused("too many dimensions");
  options.rank = 2, options.from = TC_UNDEFINED;
  refused("no type");
  options.from = TC_UINT1;
  refused("no type of elements");
  options.from = TC_BFLOAT16, options.shape = nullptr;
  refused("no shape");
  options.rank = 0, options.format = "zip";
  refused("no format");
  options.format = nullptr, options.struct_size = 8;
  refused("a size that no release had");
  EXPECT_EQ(tc_file_open_with(nullptr, nullptr, &file_), TC_INVALID_ARGUMENT);
}

TEST_F(CTensorFiles, ReadsFromMemoryAndOwnReads) {
  Bytes bytes{.bytes = gguf()};
  const tc_source source = bytes.source();
  ASSERT_EQ(tc_file_open_source(&source, "mine", &file_), TC_OK) << tc_last_error();
  EXPECT_STREQ(tc_file_format(file_), "gguf");
  tc_tensor_info info = TC_TENSOR_INFO_INIT;
  ASSERT_EQ(tc_file_tensor(file_, 0, &info), TC_OK);
  EXPECT_EQ(info.dtype, TC_UNDEFINED);
  EXPECT_STREQ(info.foreign_dtype, "Q8_0");
  EXPECT_EQ(info.bytes, 34u);
  unsigned char stored[34] = {};
  ASSERT_EQ(tc_file_read(file_, 0, 0, 34, stored, sizeof stored, TC_UNDEFINED, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(stored[33], 31);
  float numbers[32] = {};
  ASSERT_EQ(tc_file_read(file_, 0, 0, 32, numbers, sizeof numbers, TC_FLOAT32, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(numbers[31], 15.5F);

  tc_quantized_file* layers = nullptr;
  ASSERT_EQ(tc_quantized_file_open_source(&source, nullptr, &layers), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_quantized_file_layer_count(layers), 1u);
  tc_quantized_file_close(layers);

  tc_convert_request* request = tc_convert_request_new();
  const std::string output = folder_ / "out.safetensors";
  ASSERT_EQ(tc_convert_request_set_source(request, &source), TC_OK);
  ASSERT_EQ(tc_convert_request_set_input(request, "mine"), TC_OK);
  ASSERT_EQ(tc_convert_request_set_output(request, output.c_str()), TC_OK);
  ASSERT_EQ(tc_convert_request_set_to(request, TC_FLOAT16), TC_OK);
  EXPECT_EQ(tc_convert(request, nullptr), TC_OK) << tc_last_error();
  EXPECT_EQ(tc_convert_request_set_source(request, nullptr), TC_OK);
  EXPECT_EQ(tc_convert(request, nullptr), TC_IO) << "there is no such file";
  tc_convert_request_free(request);
}

TEST_F(CTensorFiles, ASourceThatFailsNamesTheFile) {
  Bytes bytes{.bytes = gguf(), .fails = 0};
  const tc_source source = bytes.source();
  EXPECT_EQ(tc_file_open_source(&source, "mine", &file_), TC_IO);
  EXPECT_STREQ(tc_last_error(), "mine: the source could not read 98 bytes from offset 0: its read returned 5");
  EXPECT_EQ(file_, nullptr);
  bytes.status = TC_CANCELLED;
  bytes.fails = bytes.reads;
  EXPECT_EQ(tc_file_open_source(&source, "mine", &file_), TC_CANCELLED);
  bytes.status = TC_IO;
  bytes.fails = bytes.reads;
  EXPECT_EQ(tc_file_open_source(&source, nullptr, &file_), TC_IO);
  EXPECT_STREQ(tc_last_error_file(), "source");
}

TEST_F(CTensorFiles, MistakesOfReadersAreErrors) {
  write("t.safetensors");
  EXPECT_EQ(tc_file_open(nullptr, &file_), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_open(path_.c_str(), nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_open("/nowhere", &file_), TC_IO);
  tc_source source = TC_SOURCE_INIT;
  EXPECT_EQ(tc_file_open_source(nullptr, "x", &file_), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_open_source(&source, "x", &file_), TC_INVALID_ARGUMENT) << "it has no read";
  source = Bytes{}.source();
  EXPECT_EQ(tc_file_open_source(&source, "x", nullptr), TC_INVALID_ARGUMENT);
  source.struct_size = 8;
  EXPECT_EQ(tc_file_open_source(&source, "x", &file_), TC_INVALID_ARGUMENT);
  ASSERT_EQ(tc_file_open(path_.c_str(), &file_), TC_OK) << tc_last_error();
  tc_tensor_info info = TC_TENSOR_INFO_INIT;
  EXPECT_EQ(tc_file_tensor(nullptr, 0, &info), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_tensor(file_, 0, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_tensor(file_, 2, &info), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "the file has 2 tensors, and so none of index 2");
  info.struct_size = 4;
  EXPECT_EQ(tc_file_tensor(file_, 0, &info), TC_INVALID_ARGUMENT);
  float numbers[6] = {};
  const auto read = [&](uint64_t first, uint64_t count, void* dst, size_t bytes, tc_dtype to) {
    return tc_file_read(file_, 0, first, count, dst, bytes, to, nullptr);
  };
  EXPECT_EQ(read(0, 6, numbers, 23, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_STREQ(tc_last_error_message(), "6 elements of float32 take 24 bytes, and the buffer has 23");
  EXPECT_EQ(read(0, 6, nullptr, 24, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(1, 6, numbers, 24, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(1, 6, numbers, 24, TC_UNDEFINED), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(7, 0, numbers, 24, TC_UNDEFINED), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(~uint64_t{0}, 6, numbers, 24, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(0, ~uint64_t{0}, numbers, 24, TC_UINT4), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(0, ~uint64_t{0}, numbers, ~size_t{0}, TC_FLOAT32), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(0, 6, numbers, 24, TC_STRING), TC_INVALID_ARGUMENT);
  EXPECT_EQ(read(0, 6, numbers, 24, 99), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_read(file_, 2, 0, 6, numbers, 24, TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_read(nullptr, 0, 0, 6, numbers, 24, TC_FLOAT32, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_file_count(nullptr), 0u);
  EXPECT_STREQ(tc_file_format(nullptr), "");
  tc_file_close(nullptr);
}

TEST_F(CTensorFiles, MistakesOfWritersLeaveNoFile) {
  const float numbers[2] = {1, 2};
  const int64_t shape[] = {2}, negative[] = {-2}, none[] = {0};
  const char* names[] = {"a", "a"};
  tc_array arrays[2] = {{numbers, shape, 1, TC_FLOAT32}, {numbers, shape, 1, TC_FLOAT32}};
  const std::string path = folder_ / "t.safetensors";
  const auto write = [&](size_t count, const tc_write_options* options = nullptr) {
    return tc_write_file(path.c_str(), names, arrays, count, options);
  };
  EXPECT_EQ(write(2), TC_UNSUPPORTED) << "one name for two arrays";
  names[1] = nullptr;
  EXPECT_EQ(write(2), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_write_file(nullptr, names, arrays, 1, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_write_file(path.c_str(), nullptr, arrays, 1, nullptr), TC_INVALID_ARGUMENT);
  EXPECT_EQ(tc_write_file(path.c_str(), names, nullptr, 1, nullptr), TC_INVALID_ARGUMENT);
  arrays[0].shape = negative;
  EXPECT_EQ(write(1), TC_INVALID_ARGUMENT);
  arrays[0].shape = nullptr;
  EXPECT_EQ(write(1), TC_INVALID_ARGUMENT);
  arrays[0] = {nullptr, shape, 1, TC_FLOAT32};
  EXPECT_EQ(write(1), TC_INVALID_ARGUMENT);
  arrays[0] = {numbers, shape, 1, TC_UNDEFINED};
  EXPECT_EQ(write(1), TC_INVALID_ARGUMENT);
  arrays[0] = {numbers, shape, 1, TC_STRING};
  EXPECT_EQ(write(1), TC_INVALID_ARGUMENT);
  tc_write_options options = TC_WRITE_OPTIONS_INIT;
  arrays[0] = {nullptr, none, 1, TC_FLOAT32};
  options.metadata_count = 1;
  EXPECT_EQ(write(1, &options), TC_INVALID_ARGUMENT);
  options.metadata_count = 0;
  options.format = "nothing";
  EXPECT_EQ(write(1, &options), TC_INVALID_ARGUMENT);
  options.format = nullptr;
  options.struct_size = 1;
  EXPECT_EQ(write(1, &options), TC_INVALID_ARGUMENT);
  EXPECT_EQ(folder_.entries(), 0u);
  EXPECT_EQ(write(1), TC_OK) << tc_last_error();
  EXPECT_EQ(write(1), TC_INVALID_ARGUMENT) << "it exists";
  options = TC_WRITE_OPTIONS_INIT;
  options.overwrite = 1;
  EXPECT_EQ(write(1, &options), TC_OK) << tc_last_error();
}

}  // namespace
