// SPDX-License-Identifier: Apache-2.0
// Shared by tests of file formats: a temporary folder, and functions that read or write a whole file.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "io/input_file.hpp"
#include "io/memory_budget.hpp"
#include "io/output_file.hpp"

namespace tensorcast::formats::testing {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tensorcast-formats-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string put(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(file(name)).parent_path());
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] inline std::string file_content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// A tensor with all of its data.
struct FileTensor {
  TensorInfo info;
  std::string bytes;     // numbers
  StringBuffer strings;  // strings
};

[[nodiscard]] inline FileTensor make_tensor(std::string name, DType dtype, std::vector<std::int64_t> shape,
                                            std::string bytes) {
  FileTensor tensor;
  tensor.info.name = std::move(name);
  tensor.info.dtype = dtype;
  tensor.info.shape = std::move(shape);
  tensor.info.count = element_count(tensor.info.shape).value();
  tensor.info.bytes = bytes.size();
  tensor.bytes = std::move(bytes);
  return tensor;
}

[[nodiscard]] inline FileTensor make_strings(std::string name, std::vector<std::int64_t> shape,
                                             const std::vector<std::string>& texts) {
  FileTensor tensor = make_tensor(std::move(name), DType::string, std::move(shape), {});
  tensor.strings.offsets.push_back(0);
  for (const std::string& text : texts) {
    tensor.strings.data.insert(tensor.strings.data.end(), text.begin(), text.end());
    tensor.strings.offsets.push_back(static_cast<std::int64_t>(tensor.strings.data.size()));
  }
  tensor.info.bytes = tensor.strings.data.size();
  return tensor;
}

[[nodiscard]] inline std::vector<std::string> texts_of(const StringBuffer& strings) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i + 1 < strings.offsets.size(); ++i) {
    texts.emplace_back(strings.data.data() + strings.offsets[i], strings.data.data() + strings.offsets[i + 1]);
  }
  return texts;
}

// Reads everything in a file in steps of at most `step` bytes.
[[nodiscard]] inline Result<std::vector<FileTensor>> read_all(const Format& format, const std::string& path,
                                                              const ReadOptions& options = {},
                                                              std::size_t step = 1 << 20) {
  Result<io::InputFile> file = io::InputFile::open(path);
  if (!file) return std::move(file).error();
  Result<std::unique_ptr<Reader>> reader = format.open(*file, options);
  if (!reader) return std::move(reader).error();
  std::vector<FileTensor> tensors;
  for (std::size_t index = 0; index < (*reader)->tensors().size(); ++index) {
    FileTensor tensor;
    tensor.info = (*reader)->tensors()[index];
    if (tensor.info.problem) return *tensor.info.problem;
    if (tensor.info.dtype == DType::string) {
      Result<StringBuffer> strings = read_all_strings(**reader, index, io::MemoryBudget(file->size()));
      if (!strings) return std::move(strings).error();
      tensor.strings = std::move(*strings);
    } else {
      tensor.bytes.resize(tensor.info.bytes);
      const std::span<std::byte> bytes = std::as_writable_bytes(std::span(tensor.bytes));
      for (std::size_t done = 0; done < bytes.size(); done += step) {
        Result<void> got = (*reader)->read(index, done, bytes.subspan(done, std::min(step, bytes.size() - done)));
        if (!got) return std::move(got).error();
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Writes in steps of at most `step` bytes.
[[nodiscard]] inline Result<void> write_all(const Format& format, const std::string& path,
                                            const std::vector<FileTensor>& tensors, const WriteOptions& options = {},
                                            std::size_t step = 1 << 20) {
  std::vector<TensorInfo> infos;
  for (const FileTensor& tensor : tensors) infos.push_back(tensor.info);
  if (format.check != nullptr) {
    if (Result<void> checked = format.check(infos); !checked) return checked;
  }
  Result<io::OutputFile> file = io::OutputFile::create(path, true);
  if (!file) return std::move(file).error();
  Result<std::unique_ptr<Writer>> writer = format.create(*file, infos, options);
  if (!writer) return std::move(writer).error();
  for (const FileTensor& tensor : tensors) {
    if (tensor.info.dtype == DType::string) {
      if (tensor.info.count == 0) continue;
      if (Result<void> measured = (*writer)->measure_strings(tensor.strings); !measured) return measured;
      if (Result<void> put = (*writer)->append_strings(tensor.strings); !put) return put;
      continue;
    }
    const std::span<const std::byte> bytes = std::as_bytes(std::span(tensor.bytes));
    for (std::size_t done = 0; done < bytes.size(); done += step) {
      Result<void> put = (*writer)->append(bytes.subspan(done, std::min(step, bytes.size() - done)));
      if (!put) return put;
    }
  }
  if (Result<void> finished = (*writer)->finish(); !finished) return finished;
  return file->commit();
}

}  // namespace tensorcast::formats::testing
