// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "io/input_file.hpp"
#include "models/model_format.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using models::model_formats;
using models::ModelFormat;

constexpr std::size_t recognized_bytes = 4096;

bool has_extension(std::string_view path, const ModelFormat& format) {
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  return std::ranges::any_of(format.extensions, [&](std::string_view extension) {
    return name.size() > extension.size() && name.ends_with(extension);
  });
}

Result<const ModelFormat*> format_by_name(const std::string& wanted) {
  std::vector<std::string_view> names;
  for (const ModelFormat& format : model_formats()) {
    if (format.name == wanted) return &format;
    names.push_back(format.name);
  }
  return invalid(fmt::format("there is no model format \"{}\"", wanted),
                 fmt::format("known are {}", fmt::join(names, ", ")));
}

// An extension that fits the content takes precedence, as for files of tensors.
Result<const ModelFormat*> detect_format(const std::string& path) {
  const io::InputFile file = TRY(io::InputFile::open(path));
  std::vector<std::byte> head(std::min<std::uint64_t>(file.size(), recognized_bytes));
  TRY(file.read(0, head));

  const ModelFormat* by_extension = nullptr;
  const ModelFormat* by_content = nullptr;
  std::vector<std::string_view> extensions;
  for (const ModelFormat& format : model_formats()) {
    extensions.insert(extensions.end(), format.extensions.begin(), format.extensions.end());
    const bool extension_fits = has_extension(path, format);
    const bool content_fits = format.recognizes(head);
    if (extension_fits && content_fits) return &format;
    if (extension_fits && by_extension == nullptr) by_extension = &format;
    if (content_fits && by_content == nullptr) by_content = &format;
  }
  if (by_content != nullptr) return by_content;
  if (by_extension != nullptr) return by_extension;  // its reader has the best error message
  return in_file(path, unsupported("the file is not a model of a known format",
                                   fmt::format("known are {}", fmt::join(extensions, ", "))));
}

// Compiles the graph to find errors that the reader cannot, as the file's name is known here.
Result<Model> checked(const ModelFormat& format, Result<Graph> graph) {
  Graph whole = TRY(std::move(graph));
  TRY(Program::compile(whole));
  return Model{std::string(format.name), std::move(whole)};
}

Result<Model> load(const std::string& path, const LoadModelOptions& options) {
  const ModelFormat* format = TRY(options.format.empty() ? detect_format(path) : format_by_name(options.format));
  return checked(*format, format->load(path, options));
}

// Chooses the format that recognizes the bytes; without one, the first that is read from memory, for its error message.
Result<const ModelFormat*> detect_format(std::span<const std::byte> bytes) {
  const std::span<const std::byte> head = bytes.first(std::min(bytes.size(), recognized_bytes));
  const ModelFormat* readable = nullptr;
  for (const ModelFormat& format : model_formats()) {
    if (format.recognizes(head)) return &format;
    if (format.parse != nullptr && readable == nullptr) readable = &format;
  }
  return readable;
}

Result<Model> parse(std::span<const std::byte> bytes, const LoadModelOptions& options) {
  const ModelFormat* format = TRY(options.format.empty() ? detect_format(bytes) : format_by_name(options.format));
  if (format->parse == nullptr) {
    return unsupported(fmt::format("models of format {} are not read from memory", format->name),
                       "write the model to a file, and give its path");
  }
  return checked(*format, format->parse(io::InputFile::in_memory(bytes)));
}

}  // namespace

Result<Model> load_model(const std::string& path, const LoadModelOptions& options) {
  Result<Model> model = guarded(path, [&] { return load(path, options); });
  if (!model && model.error().file.empty() && model.error().code != ErrorCode::internal) model.error().file = path;
  return model;
}

Result<Model> parse_model(std::span<const std::byte> bytes, const LoadModelOptions& options) {
  return guarded([&] { return parse(bytes, options); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
