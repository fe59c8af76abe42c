// SPDX-License-Identifier: Apache-2.0
#include "quantized/layout/open_input.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::file_conversion {
namespace {

Result<const formats::Format*> choose_format(const io::InputFile& file, const std::string& format_name, bool is_raw) {
  if (!format_name.empty()) return format_by_name(format_name);
  if (is_raw) return format_by_name("raw");
  return formats::detect_format(file);
}

// Checks that every tensor named in `from` exists, and that the file does not say other types.
Result<void> check_types(const formats::Reader& reader, const SourceTypes& from) {
  const std::vector<formats::TensorInfo>& tensors = reader.tensors();
  const std::string hint = "`from` is for files that do not say it";
  for (const auto& [tensor, dtype] : from.named) {
    const auto found = std::ranges::find(tensors, tensor, &formats::TensorInfo::name);
    if (found == tensors.end()) {
      return invalid(fmt::format("`from` names \"{}\", which is not in the file", tensor),
                     "`tcast inspect` lists the names");
    }
    if (found->dtype == dtype || found->problem != nullptr) continue;
    return invalid(fmt::format("the file says that \"{}\" is {}, not {}", tensor, found->type_name(), name(dtype)),
                   hint);
  }
  if (from.all == DType::undefined || tensors.empty()) return {};
  if (std::ranges::any_of(tensors, [&](auto& t) { return t.dtype == from.all || t.problem != nullptr; })) return {};
  if (tensors.size() > 1) return invalid(fmt::format("none of the file's tensors is {}", name(from.all)), hint);
  return invalid(fmt::format("the file says that its elements are {}, not {}", tensors[0].type_name(), name(from.all)),
                 hint);
}

}  // namespace

Result<const formats::Format*> format_by_name(const std::string& name) {
  if (const formats::Format* format = formats::find_format(name)) return format;
  return invalid(fmt::format("there is no file format \"{}\"", name),
                 fmt::format("there are {}", fmt::join(file_formats(), ", ")));
}

Result<const formats::Format*> output_format(const std::string& path, const std::string& name) {
  const Result<const formats::Format*> format = format_by_name(name);
  return format ? formats::format_for_output(path, name) : format;
}

Result<OpenedInput> open_input(const std::string& path, const std::string& format_name,
                               const formats::ReadOptions& options, const std::shared_ptr<ByteSource>& source) {
  io::InputFile file = TRY(source == nullptr ? io::InputFile::open(path) : io::InputFile::of(source, path));
  OpenedInput input{.file = std::make_unique<io::InputFile>(std::move(file)), .format = nullptr, .reader = nullptr};
  input.format = TRY(choose_format(*input.file, format_name, options.raw.has_value()));
  input.reader = TRY(in_file(path, input.format->open(*input.file, options)));
  TRY(in_file(path, check_types(*input.reader, options.from)));
  return input;
}

Result<OpenedInput> open_model_file(const std::string& path, const std::string& format_name,
                                    const formats::ReadOptions& options, const std::shared_ptr<ByteSource>& source) {
  Result<OpenedInput> input = open_input(path, format_name, options, source);
  if (!input || !input->format->many_tensors) return input;
  if (source == nullptr) input->configs = config_texts_beside(path);
  add_config_texts(input->reader->metadata(), input->configs);
  return input;
}

FileSummary summary_of(const OpenedInput& input) {
  FileSummary summary{.format = std::string(input.format->name), .tensors = {}, .metadata = input.reader->metadata()};
  for (const formats::TensorInfo& tensor : input.reader->tensors()) {
    summary.tensors.push_back(TensorSummary{.name = tensor.name,
                                            .dtype = tensor.dtype,
                                            .shape = tensor.shape,
                                            .bytes = tensor.bytes,
                                            .foreign_dtype = tensor.foreign_dtype,
                                            .problem = tensor.problem ? tensor.problem->message : std::string()});
  }
  summary.warnings = input.reader->warnings();
  return summary;
}

formats::TensorInfo readable(const formats::TensorInfo& stored) {
  if (stored.dtype != DType::undefined) return stored;
  formats::TensorInfo info = stored;
  info.dtype = DType::uint8;
  info.count = info.bytes;
  std::uint64_t rows = 1;
  if (!info.shape.empty()) info.shape.pop_back();
  for (const std::int64_t size : info.shape) rows *= static_cast<std::uint64_t>(size);
  if (rows == 0 || info.bytes % rows != 0) rows = 1, info.shape.clear();
  info.shape.push_back(static_cast<std::int64_t>(info.bytes / rows));
  return info;
}

quantized::FoundLayers layers_of(const OpenedInput& input) {
  if (!input.format->many_tensors) return {};
  return quantized::find_layers(input.reader->tensors(), input.configs, quantized::read_with(*input.reader));
}

}  // namespace tensorcast::file_conversion
