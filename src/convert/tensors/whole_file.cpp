// SPDX-License-Identifier: Apache-2.0
#include "tensorcast/whole_file.hpp"

#include <fmt/format.h>

#include <span>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/input_file.hpp"
#include "io/output_file.hpp"
#include "quantized/layout/open_input.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<std::string> read_whole_file(const std::string& path, std::uint64_t max_bytes) {
  return guarded(path, [&]() -> Result<std::string> {
    const io::InputFile file = TRY(io::InputFile::open(path));
    if (file.size() > max_bytes) {
      return in_file(path, unsupported(fmt::format("the file has {} bytes; {} are allowed", file.size(), max_bytes)));
    }
    std::string bytes(file.size(), '\0');
    TRY(file.read(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  });
}

Result<std::string> read_other_data(const std::string& path) {
  return guarded(path, [&]() -> Result<std::string> {
    const file_conversion::OpenedInput input = TRY(file_conversion::open_input(path, "", {}));
    return std::string(input.reader->other_data());
  });
}

Result<void> write_whole_file(const std::string& path, std::string_view bytes, const WriteFileOptions& options) {
  return guarded(path, [&]() -> Result<void> {
    io::OutputFile file = TRY(io::OutputFile::create(path, options.overwrite));
    TRY(file.append(std::as_bytes(std::span(bytes))));
    return file.commit();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
