// SPDX-License-Identifier: Apache-2.0
// Opens arbitrary bytes by the C interface's own reads, and reads all that they hold into buffers of exactly their
// size.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fuzzing.hpp"
#include "tensorcast/c_files.h"

namespace {

using tensorcast::fuzzing::expect_no_defect;

constexpr std::size_t most_tensors = 64;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;

// The last byte chooses how the source behaves and what it is called, so that files are seeds as they are.
struct Bytes {
  const std::uint8_t* data;
  std::size_t size;
  std::size_t failing;  // the read that fails; 0: none
  std::size_t reads = 0;

  static tc_status read(void* context, uint64_t offset, void* dst, size_t bytes) {
    Bytes& self = *static_cast<Bytes*>(context);
    if (offset > self.size || bytes > self.size - offset) std::abort();  // it was told the size
    if (++self.reads == self.failing) return TC_IO;
    std::memcpy(dst, self.data + offset, bytes);
    return TC_OK;
  }
};

// Elements of a tensor; `most_bytes` if there are that many or more.
std::uint64_t count_of(const tc_tensor_info& info) {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < info.rank; ++i) {
    if (info.shape[i] < 0) std::abort();
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(info.shape[i]), &count)) return most_bytes;
  }
  return count;
}

// A part that begins and ends inside each dimension.
struct Slice {
  Slice(const std::int64_t* shape, std::size_t rank) {
    for (std::size_t i = 0; i < rank; ++i) {
      const auto size = static_cast<std::uint64_t>(shape[i]);
      std::uint64_t indices = std::min<std::uint64_t>(size - size / 4, 200);
      if (count * indices > most_bytes / 4) indices = 1;
      begin.push_back(size / 4);
      end.push_back(size / 4 + indices);
      count *= indices;
    }
  }

  std::vector<std::uint64_t> begin, end;
  std::uint64_t count = 1;
};

void read(tc_file* file, std::size_t index, std::uint64_t first, std::uint64_t count, tc_dtype to, tc_dtype stored) {
  const std::size_t bytes = tc_storage_bytes(to == TC_UNDEFINED ? stored : to, count);
  if (bytes > most_bytes) return;
  const std::unique_ptr<unsigned char[]> dst(new unsigned char[bytes]);  // exact: one byte more is an error of ASan
  expect_no_defect(tc_file_read(file, index, first, count, dst.get(), bytes, to, nullptr));
  if (bytes != 0 && tc_file_read(file, index, first, count, dst.get(), bytes - 1, to, nullptr) == TC_OK) std::abort();
}

void read_tensors(tc_file* file) {
  for (std::size_t index = 0; index < tc_file_count(file) && index < most_tensors; ++index) {
    tc_tensor_info info = TC_TENSOR_INFO_INIT;
    if (tc_file_tensor(file, index, &info) != TC_OK) std::abort();
    const std::uint64_t count = count_of(info);
    const bool foreign = info.dtype == TC_UNDEFINED;
    const std::uint64_t stored = foreign ? info.bytes : count;
    const tc_dtype own = foreign ? TC_UINT8 : info.dtype;
    if (info.dtype != TC_STRING && stored < most_bytes) {
      read(file, index, 0, stored, TC_UNDEFINED, own);
      read(file, index, stored / 16 * 8, stored - stored / 16 * 8, TC_UNDEFINED, own);
      read(file, index, 8, stored, TC_UNDEFINED, own);
    }
    if (count >= most_bytes) continue;
    for (const tc_dtype to : {TC_FLOAT32, TC_UINT4, TC_FLOAT64}) read(file, index, 0, count, to, to);
    read(file, index, count / 16 * 8, count - count / 16 * 8, TC_BFLOAT16, TC_BFLOAT16);
    const Slice slice(info.shape, info.rank);
    const std::unique_ptr<float[]> numbers(new float[slice.count]);
    expect_no_defect(tc_file_read_slice(file, index, slice.begin.data(), slice.end.data(), info.rank, numbers.get(),
                                        slice.count * sizeof(float), TC_FLOAT32, nullptr));
  }
  tc_tensor_info none = TC_TENSOR_INFO_INIT;
  if (tc_file_tensor(file, tc_file_count(file), &none) != TC_INVALID_ARGUMENT) std::abort();
}

void read_layers(tc_quantized_file* file) {
  for (std::size_t layer = 0; layer < tc_quantized_file_layer_count(file) && layer < most_tensors; ++layer) {
    tc_quantized_layer found = TC_QUANTIZED_LAYER_INIT;
    if (tc_quantized_file_layer(file, layer, &found) != TC_OK) std::abort();
    for (std::size_t part = 0; part < found.part_count; ++part) {
      tc_quantized_part stored = TC_QUANTIZED_PART_INIT;
      if (tc_quantized_file_part(file, layer, part, &stored) != TC_OK) std::abort();
      if (stored.bytes >= most_bytes) continue;
      const std::unique_ptr<unsigned char[]> dst(new unsigned char[stored.bytes]);
      expect_no_defect(tc_quantized_file_read_part(file, layer, part, dst.get()));
    }
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < found.rank && count < most_bytes; ++i) {
      count *= static_cast<std::uint64_t>(found.shape[i]) % most_bytes;
    }
    if (count >= most_bytes) continue;
    const std::unique_ptr<float[]> numbers(new float[count]);
    expect_no_defect(tc_quantized_file_dequantize(file, layer, 0, count, numbers.get(), TC_FLOAT32, nullptr));
    const Slice slice(found.shape, found.rank);
    const std::unique_ptr<float[]> some(new float[slice.count]);
    const tc_status sliced =
        tc_quantized_file_dequantize_slice(file, layer, slice.begin.data(), slice.end.data(), found.rank, some.get(),
                                           slice.count * sizeof(float), TC_FLOAT32, nullptr);
    expect_no_defect(sliced);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<const char*, 7> names = {nullptr, "a.npy", "a.npz", "a.safetensors", "a.pb", "a.gguf", "a.pt"};
  if (size == 0) return 0;
  const std::uint8_t choice = data[size - 1];
  // A copy of exactly the size, so that a read behind it is an error of ASan.
  const std::unique_ptr<std::uint8_t[]> exact(new std::uint8_t[size]);
  std::memcpy(exact.get(), data, size);
  Bytes bytes{.data = exact.get(), .size = size, .failing = choice >= 224 ? choice - 223u : 0};
  tc_source source = TC_SOURCE_INIT;
  source.context = &bytes;
  source.size = size;
  source.read = Bytes::read;
  const char* const name = names[choice % names.size()];
  tc_file* file = nullptr;
  const tc_status opened = tc_file_open_source(&source, name, &file);
  expect_no_defect(opened);
  if (opened == TC_OK) read_tensors(file);
  tc_file_close(file);
  tc_quantized_file* layers = nullptr;
  const tc_status found = tc_quantized_file_open_source(&source, name, &layers);
  expect_no_defect(found);
  if (found == TC_OK) read_layers(layers);
  tc_quantized_file_close(layers);
  return 0;
}
