#include "tensorcast/whole_file.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <span>

#include "convert/open_input.hpp"
#include "dtype/guarded.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<std::string> read_whole_file(const std::string& path, std::uint64_t max_bytes) {
  return guarded(path, [&]() -> Result<std::string> {
    const Result<io::InputFile> file = io::InputFile::open(path);
    if (!file) return file.error();
    if (file->size() > max_bytes) {
      return Error{.code = ErrorCode::unsupported,
                   .message = fmt::format("the file has {} bytes; {} are allowed", file->size(), max_bytes),
                   .file = path};
    }
    std::string bytes(file->size(), '\0');
    if (auto got = file->read(0, std::as_writable_bytes(std::span(bytes))); !got) return std::move(got).error();
    return bytes;
  });
}

Result<std::string> read_other_data(const std::string& path) {
  return guarded(path, [&]() -> Result<std::string> {
    const Result<file_conversion::OpenedInput> input = file_conversion::open_input(path, "", {});
    if (!input) return input.error();
    return std::string(input->reader->other_data());
  });
}

Result<void> write_whole_file(const std::string& path, std::string_view bytes, const WriteFileOptions& options) {
  return guarded(path, [&]() -> Result<void> {
    Result<io::OutputFile> file = io::OutputFile::create(path, options.overwrite);
    if (!file) return std::move(file).error();
    if (auto put = file->append(std::as_bytes(std::span(bytes))); !put) return put;
    return file->commit();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
