// SPDX-License-Identifier: Apache-2.0
// A fuzz target calls every function of a reader on arbitrary bytes. Errors are allowed, crashes are not.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "formats/format.hpp"
#include "io/input_file.hpp"

namespace tensorcast::formats::fuzzing {

// `data` is the file, held in memory; its last byte also selects the type of opaque descriptors.
inline int read_everything(const Format& format, const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const int fd = ::memfd_create("input", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) std::abort();

  ReadOptions options;
  if (const std::size_t choice = data[size - 1] % (all_dtypes().size() + 1); choice != 0)
    options.from = all_dtypes()[choice - 1];
  const Result<io::InputFile> file = io::InputFile::open(path);
  if (!file) std::abort();
  Result<std::unique_ptr<Reader>> reader = format.open(*file, options);
  if (!reader) return 0;
  for (std::size_t index = 0; index < (*reader)->tensors().size(); ++index) {
    const TensorInfo& info = (*reader)->tensors()[index];
    if (info.problem) continue;
    if (info.dtype == DType::string) {
      constexpr std::size_t block_bytes = std::size_t{1} << 16;
      for (std::uint64_t first = 0; first < info.count && first < (std::uint64_t{1} << 20);) {
        const Result<StringBuffer> strings = (*reader)->read_strings(index, first, block_bytes);
        if (!strings) break;
        first += strings->offsets.size() - 1;
        if (strings->offsets.size() < 2 || first > info.count) std::abort();
        if (first < info.count && !is_full_block(*strings, block_bytes)) std::abort();
      }
      continue;
    }
    const bool is_foreign = info.dtype == DType::undefined;
    if (!is_foreign && info.bytes != storage_bytes(info.dtype, info.count)) std::abort();
    std::vector<std::byte> bytes(std::min<std::uint64_t>(info.bytes, std::uint64_t{1} << 16));
    for (std::uint64_t done = 0; done < std::min<std::uint64_t>(info.bytes, std::uint64_t{1} << 24);) {
      const std::uint64_t step = std::min<std::uint64_t>(bytes.size(), info.bytes - done);
      if (!(*reader)->read(index, done, std::span(bytes).first(step))) break;
      done += step;
    }
  }
  return 0;
}

}  // namespace tensorcast::formats::fuzzing
