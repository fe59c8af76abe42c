// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "c_api/c_call.hpp"
#include "c_files/callers_slice.hpp"
#include "c_files/callers_source.hpp"
#include "dtype/try.hpp"
#include "tensorcast/c_files.h"
#include "tensorcast/tensor_file.hpp"

struct tc_file {
  tensorcast::TensorFile file;
};

template <>
struct tensorcast::c_api::Growth<tc_tensor_info> {
  static constexpr const char* name = "tc_tensor_info";
  static constexpr std::array sizes = {offsetof(tc_tensor_info, dtype) + sizeof(tc_tensor_info::dtype)};
};
template <>
struct tensorcast::c_api::Growth<tc_open_options> {
  static constexpr const char* name = "tc_open_options";
  static constexpr std::array sizes = {offsetof(tc_open_options, from) + sizeof(tc_open_options::from)};
};
template <>
struct tensorcast::c_api::Growth<tc_write_options> {
  static constexpr const char* name = "tc_write_options";
  static constexpr std::array sizes = {offsetof(tc_write_options, parents) + sizeof(tc_write_options::parents)};
};

namespace {

using namespace tensorcast::c_api;
using tensorcast::DType;
using tensorcast::formatted;
using tensorcast::NamedTensor;
using tensorcast::OpenTensorFileOptions;
using tensorcast::Result;
using tensorcast::Tensor;
using tensorcast::TensorFile;
using tensorcast::TensorSummary;
using tensorcast::TensorView;
using tensorcast::WriteTensorsOptions;

Result<OpenTensorFileOptions> open_options(const tc_open_options& given) {
  OpenTensorFileOptions read;
  if (given.format != nullptr) read.format = given.format;
  DType from = DType::undefined;
  if (given.from != TC_UNDEFINED) from = TRY(castable(given.from));
  if (given.shape == nullptr) {
    if (given.rank != 0) return invalid("the shape is null");
    read.from.all = from;
    return read;
  }
  if (given.rank > most_dimensions) return invalid("more than 1024 dimensions");
  if (from == DType::undefined) return invalid("a shape is given and no type", "set `from`");
  read.raw = tensorcast::RawLayout{from, std::vector<std::int64_t>(given.shape, given.shape + given.rank)};
  return read;
}

tc_status open(const char* path, const tc_open_options* options, tc_file** file) {
  return run([&]() -> Result<void> {
    tc_open_options given = TC_OPEN_OPTIONS_INIT;
    if (options != nullptr) given = TRY(read_struct(given, options));
    if (file == nullptr || (path == nullptr && given.source == nullptr)) return invalid("a pointer is null");
    const OpenTensorFileOptions read = TRY(open_options(given));
    TensorFile opened =
        TRY(given.source == nullptr ? TensorFile::open(path, read)
                                    : TensorFile::open(TRY(callers_source(given.source)), name_of_source(path), read));
    *file = std::make_unique<tc_file>(tc_file{std::move(opened)}).release();
    return {};
  });
}

Result<const TensorSummary*> tensor_of(const tc_file* file, size_t index) {
  if (file == nullptr) return invalid("the file is null");
  const auto& tensors = file->file.summary().tensors;
  if (index < tensors.size()) return &tensors[index];
  return invalid(formatted("the file has {} tensors, and so none of index {}", tensors.size(), index));
}

// Elements that are read as they are stored are not cast.
Result<void> check_stored(const tc_cast_options& given) {
  if (options_of(given) == tensorcast::CastOptions()) return {};
  return invalid("options of a cast are given for elements that are read as they are stored",
                 "name a type, or leave the options out");
}

// Copies stored elements, or bytes of a type without a number, in pieces.
Result<void> read_stored(TensorFile& file, size_t index, uint64_t first, uint64_t count, unsigned char* dst) {
  constexpr uint64_t piece = uint64_t{1} << 20;
  uint64_t done = 0;
  do {  // also of no elements, whose place is checked
    const uint64_t n = std::min(piece, count - done);
    const Tensor read = TRY(file.read(index, first + done, n));
    if (n != 0) std::memcpy(dst, read.bytes().data(), read.bytes().size());
    dst += read.bytes().size();
    done += n;
  } while (done < count);
  return {};
}

Result<std::vector<NamedTensor>> named(const char* const* names, const tc_array* arrays, size_t count) {
  std::vector<NamedTensor> tensors;
  if (count != 0 && (names == nullptr || arrays == nullptr)) return invalid("a pointer is null");
  tensors.reserve(std::min<size_t>(count, 1024));
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr) return invalid(formatted("the name of array {} is null", i));
    TensorView view = TRY(view_of(arrays[i]));
    if (arrays[i].data == nullptr) {  // right for an array without elements
      static constexpr std::byte nothing{};
      tc_array array = arrays[i];
      array.data = &nothing;
      view = TRY(view_of(array));
      if (!view.bytes.empty()) return invalid(formatted("the data of \"{}\" are null", names[i]));
    }
    if (!tensorcast::is_castable(view.dtype)) {
      return invalid(formatted("\"{}\" has dtype number {}, which is not that of an array", names[i], arrays[i].dtype));
    }
    Tensor tensor = TRY(Tensor::share(view, nullptr));
    tensors.push_back({names[i], std::move(tensor)});
  }
  return tensors;
}

Result<WriteTensorsOptions> write_options(const tc_write_options* options) {
  WriteTensorsOptions read;
  if (options == nullptr) return read;
  const tc_write_options given = TRY(read_struct(tc_write_options TC_WRITE_OPTIONS_INIT, options));
  if (given.format != nullptr) read.format = given.format;
  read.overwrite = given.overwrite != 0;
  read.parents = given.parents != 0;
  const bool listed = given.metadata_names != nullptr && given.metadata_texts != nullptr;
  if (given.metadata_count != 0 && !listed) return invalid("the metadata are null");
  for (size_t i = 0; i < given.metadata_count; ++i) {
    if (given.metadata_names[i] == nullptr || given.metadata_texts[i] == nullptr) {
      return invalid(formatted("entry {} of the metadata is null", i));
    }
    read.metadata.emplace_back(given.metadata_names[i], given.metadata_texts[i]);
  }
  return read;
}

}  // namespace

extern "C" {

tc_status tc_file_open(const char* path, tc_file** file) { return open(path, nullptr, file); }

tc_status tc_file_open_source(const tc_source* source, const char* name, tc_file** file) {
  if (source == nullptr) return run([]() -> Result<void> { return invalid("the source is null"); });
  tc_open_options options = TC_OPEN_OPTIONS_INIT;
  options.source = source;
  return open(name, &options, file);
}

tc_status tc_file_open_with(const char* path, const tc_open_options* options, tc_file** file) {
  return open(path, options, file);
}

void tc_file_close(tc_file* file) { delete file; }

size_t tc_file_count(const tc_file* file) { return file == nullptr ? 0 : file->file.summary().tensors.size(); }

const char* tc_file_format(const tc_file* file) { return file == nullptr ? "" : file->file.summary().format.c_str(); }

tc_status tc_file_tensor(const tc_file* file, size_t index, tc_tensor_info* info) {
  return run([&]() -> Result<void> {
    const TensorSummary& tensor = *TRY(tensor_of(file, index));
    if (info == nullptr) return invalid("the info is null");
    return fill_struct(info, tc_tensor_info{.struct_size = 0,
                                            .name = tensor.name.c_str(),
                                            .shape = tensor.shape.data(),
                                            .rank = tensor.shape.size(),
                                            .bytes = tensor.bytes,
                                            .foreign_dtype = tensor.foreign_dtype.c_str(),
                                            .problem = tensor.problem.c_str(),
                                            .dtype = static_cast<tc_dtype>(tensor.dtype)});
  });
}

tc_status tc_file_read(tc_file* file, size_t index, uint64_t first, uint64_t count, void* dst, size_t dst_bytes,
                       tc_dtype to, const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    const TensorSummary& tensor = *TRY(tensor_of(file, index));
    const tc_cast_options given = TRY(read_options(options));
    const bool stored = to == TC_UNDEFINED;
    if (stored) TRY(check_stored(given));
    const DType read = stored && tensor.dtype == DType::undefined ? DType::uint8
                       : stored                                   ? tensor.dtype
                                                                  : static_cast<DType>(to);
    if (read == DType::string) {
      return invalid(stored ? "strings are not read as they are stored" : "elements are not read as strings",
                     "read them as numbers");
    }
    if (!tensorcast::is_castable(read)) return invalid(formatted("dtype number {} does not exist", to));
    const size_t bytes = tensorcast::storage_bytes(read, count);
    if (dst == nullptr && bytes != 0) return invalid("the buffer is null");
    if (bytes > dst_bytes) {
      return invalid(
          formatted("{} elements of {} take {} bytes, and the buffer has {}", count, name(read), bytes, dst_bytes));
    }
    if (stored) return read_stored(file->file, index, first, count, static_cast<unsigned char*>(dst));
    const tensorcast::Shape shape{static_cast<int64_t>(count)};
    CallersPool pool(given);
    return file->file.read(index, first, {read, shape, {static_cast<std::byte*>(dst), bytes}}, options_of(given),
                           pool.execution());
  });
}

tc_status tc_file_read_slice(tc_file* file, size_t index, const uint64_t* begin, const uint64_t* end, size_t ranges,
                             void* dst, size_t dst_bytes, tc_dtype to, const tc_cast_options* options) {
  return run([&]() -> Result<void> {
    const TensorSummary& tensor = *TRY(tensor_of(file, index));
    const tc_cast_options given = TRY(read_options(options));
    const std::vector<tensorcast::IndexRange> slice = TRY(callers_ranges(begin, end, ranges, tensor.shape.size()));
    if (to == TC_UNDEFINED) {
      TRY(check_stored(given));
      const Tensor read = TRY(file->file.read_slice(index, slice));
      if (read.bytes().size() > dst_bytes) {
        return invalid(formatted("the part takes {} bytes, and the buffer has {}", read.bytes().size(), dst_bytes));
      }
      if (read.bytes().empty()) return {};
      if (dst == nullptr) return invalid("the buffer is null");
      std::memcpy(dst, read.bytes().data(), read.bytes().size());
      return {};
    }
    const auto part = TRY(tensorcast::formats::ArrayPart::create(tensor.shape, slice));
    const auto out = TRY(callers_view(part, static_cast<DType>(to), dst, dst_bytes));
    CallersPool pool(given);
    return file->file.read_slice(index, slice, out, options_of(given), pool.execution());
  });
}

tc_status tc_write_file(const char* path, const char* const* names, const tc_array* arrays, size_t count,
                        const tc_write_options* options) {
  return run([&]() -> Result<void> {
    if (path == nullptr) return invalid("the path is null");
    const WriteTensorsOptions given = TRY(write_options(options));
    return tensorcast::write_tensors(path, TRY(named(names, arrays, count)), given);
  });
}

}  // extern "C"
