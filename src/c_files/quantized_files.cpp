// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "c_api/c_call.hpp"
#include "c_files/callers_slice.hpp"
#include "c_files/callers_source.hpp"
#include "dtype/try.hpp"
#include "tensorcast/c_files.h"
#include "tensorcast/quantized_file.hpp"

struct tc_quantized_file {
  tensorcast::QuantizedFile file;
};

template <>
struct tensorcast::c_api::Growth<tc_quantized_layer> {
  static constexpr const char* name = "tc_quantized_layer";
  static constexpr std::array sizes = {offsetof(tc_quantized_layer, problem) + sizeof(tc_quantized_layer::problem)};
};
template <>
struct tensorcast::c_api::Growth<tc_quantized_part> {
  static constexpr const char* name = "tc_quantized_part";
  static constexpr std::array sizes = {offsetof(tc_quantized_part, dtype) + sizeof(tc_quantized_part::dtype)};
};

namespace {

using namespace tensorcast::c_api;
using tensorcast::DType;
using tensorcast::QuantizedLayer;
using tensorcast::QuantizedPart;
using tensorcast::Result;

// The sizes of the first release.

Result<void> check_layer(const tc_quantized_file* file, size_t layer) {
  if (file == nullptr) return invalid("the file is null");
  if (layer >= file->file.layers().size()) return invalid("the file has no layer of this index");
  return {};
}

Result<void> check_part(const tc_quantized_file* file, size_t layer, size_t part) {
  TRY(check_layer(file, layer));
  if (part >= file->file.parts(layer).size()) return invalid("the layer has no tensor of this index");
  return {};
}

}  // namespace

extern "C" {

tc_status tc_quantized_file_open(const char* path, tc_quantized_file** file) {
  return run([&]() -> Result<void> {
    if (path == nullptr || file == nullptr) return invalid("a pointer is null");
    tensorcast::QuantizedFile opened = TRY(tensorcast::QuantizedFile::open(path));
    *file = std::make_unique<tc_quantized_file>(tc_quantized_file{std::move(opened)}).release();
    return {};
  });
}

tc_status tc_quantized_file_open_source(const tc_source* source, const char* name, tc_quantized_file** file) {
  return run([&]() -> Result<void> {
    if (file == nullptr) return invalid("a pointer is null");
    tensorcast::QuantizedFile opened =
        TRY(tensorcast::QuantizedFile::open(TRY(callers_source(source)), name_of_source(name)));
    *file = std::make_unique<tc_quantized_file>(tc_quantized_file{std::move(opened)}).release();
    return {};
  });
}

void tc_quantized_file_close(tc_quantized_file* file) { delete file; }

size_t tc_quantized_file_layer_count(const tc_quantized_file* file) {
  return file == nullptr ? 0 : file->file.layers().size();
}

tc_status tc_quantized_file_layer(const tc_quantized_file* file, size_t layer, tc_quantized_layer* description) {
  return run([&]() -> Result<void> {
    TRY(check_layer(file, layer));
    if (description == nullptr) return invalid("the description is null");
    const QuantizedLayer& found = file->file.layers()[layer];
    return fill_struct(description, tc_quantized_layer{.struct_size = 0,
                                                       .name = found.name.c_str(),
                                                       .spelling = found.spelling.c_str(),
                                                       .scheme = found.scheme.c_str(),
                                                       .shape = found.shape.data(),
                                                       .rank = found.shape.size(),
                                                       .block_rows = found.block_rows,
                                                       .block_columns = found.block_columns,
                                                       .part_count = file->file.parts(layer).size(),
                                                       .problem = found.problem.c_str()});
  });
}

tc_status tc_quantized_file_part(const tc_quantized_file* file, size_t layer, size_t part,
                                 tc_quantized_part* description) {
  return run([&]() -> Result<void> {
    TRY(check_part(file, layer, part));
    if (description == nullptr) return invalid("the description is null");
    const QuantizedPart& found = file->file.parts(layer)[part];
    return fill_struct(description, tc_quantized_part{.struct_size = 0,
                                                      .role = found.role.data(),
                                                      .name = found.name.c_str(),
                                                      .shape = found.shape.data(),
                                                      .rank = found.shape.size(),
                                                      .bytes = found.bytes,
                                                      .dtype = static_cast<tc_dtype>(found.dtype)});
  });
}

tc_status tc_quantized_file_read_part(tc_quantized_file* file, size_t layer, size_t part, void* dst) {
  return run([&]() -> Result<void> {
    TRY(check_part(file, layer, part));
    tensorcast::Tensor read = TRY(file->file.read_part(layer, part));
    const tensorcast::Tensor tensor = std::move(read);
    if (tensor.bytes().empty()) return {};
    if (dst == nullptr) return invalid("a buffer is null");
    std::memcpy(dst, tensor.bytes().data(), tensor.bytes().size());
    return {};
  });
}

tc_status tc_quantized_file_dequantize(tc_quantized_file* file, size_t layer, uint64_t first, uint64_t count, void* dst,
                                       tc_dtype to, const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    TRY(check_layer(file, layer));
    const tc_cast_options given = TRY(read_options(options));
    if (dst == nullptr && count != 0) return invalid("a buffer is null");
    const auto target = static_cast<DType>(to);
    if (!tensorcast::is_castable(target)) return invalid("no type has this number");
    const tensorcast::Shape shape{static_cast<int64_t>(count)};
    const std::size_t elements = TRY(element_count(shape));
    CallersPool pool(given);
    return file->file.dequantize(
        layer, first, {target, shape, {static_cast<std::byte*>(dst), tensorcast::storage_bytes(target, elements)}},
        options_of(given), pool.execution());
  });
}

tc_status tc_quantized_file_dequantize_slice(tc_quantized_file* file, size_t layer, const uint64_t* begin,
                                             const uint64_t* end, size_t ranges, void* dst, size_t dst_bytes,
                                             tc_dtype to, const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    TRY(check_layer(file, layer));
    const tc_cast_options given = TRY(read_options(options));
    const std::vector<int64_t>& shape = file->file.layers()[layer].shape;
    const std::vector<tensorcast::IndexRange> slice = TRY(callers_ranges(begin, end, ranges, shape.size()));
    const auto part = TRY(tensorcast::formats::ArrayPart::create(shape, slice));
    const auto out = TRY(callers_view(part, static_cast<DType>(to), dst, dst_bytes));
    CallersPool pool(given);
    return file->file.dequantize_slice(layer, slice, out, options_of(given), pool.execution());
  });
}

}  // extern "C"
