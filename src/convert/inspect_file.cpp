// What is inside files, and which files there are.
#include "convert/name_pattern.hpp"
#include "convert/open_input.hpp"
#include "dtype/guarded.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast {

Result<FileSummary> inspect_file(const std::string& path, const std::optional<RawLayout>& raw, DType from) {
  return guarded([&]() -> Result<FileSummary> {
    const Result<convert::OpenedInput> input = convert::open_input(path, "", {.raw = raw, .from = from});
    if (!input) return input.error();
    FileSummary summary{
        .format = std::string(input->format->name), .tensors = {}, .metadata = input->reader->metadata()};
    for (const formats::TensorInfo& tensor : input->reader->tensors()) {
      summary.tensors.push_back(TensorSummary{.name = tensor.name,
                                              .dtype = tensor.dtype,
                                              .shape = tensor.shape,
                                              .bytes = tensor.bytes,
                                              .foreign_dtype = tensor.foreign_dtype});
    }
    return summary;
  });
}

Result<void> check_pattern(const std::string& pattern) {
  return guarded([&]() -> Result<void> {
    const Result<convert::NamePattern> compiled = convert::NamePattern::compile(pattern);
    return compiled ? Result<void>() : compiled.error();
  });
}

std::vector<std::string_view> file_formats() {
  std::vector<std::string_view> names;
  for (const formats::Format* format : formats::all_formats()) names.push_back(format->name);
  return names;
}

std::vector<std::string_view> file_formats_for(DType dtype) {
  std::vector<std::string_view> names;
  for (const formats::Format* format : formats::all_formats()) {
    if (format->can_hold(dtype)) names.push_back(format->name);
  }
  return names;
}

}  // namespace tensorcast
