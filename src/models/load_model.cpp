#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "dtype/guarded.hpp"
#include "io/input_file.hpp"
#include "models/model_format.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast {
namespace {

using models::model_formats;
using models::ModelFormat;

constexpr std::size_t recognized_bytes = 4096;

bool has_extension(std::string_view path, const ModelFormat& format) {
  std::string name(path.substr(path.rfind('/') + 1));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::any_of(format.extensions.begin(), format.extensions.end(), [&](std::string_view extension) {
    return name.size() > extension.size() && name.ends_with(extension);
  });
}

Result<const ModelFormat*> format_by_name(const std::string& wanted) {
  std::vector<std::string_view> names;
  for (const ModelFormat& format : model_formats()) {
    if (format.name == wanted) return &format;
    names.push_back(format.name);
  }
  return Error{.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no model format \"{}\"", wanted),
               .hint = fmt::format("known are {}", fmt::join(names, ", "))};
}

// An extension that fits the content takes precedence, as for files of tensors.
Result<const ModelFormat*> detect_format(const std::string& path) {
  const Result<io::InputFile> file = io::InputFile::open(path);
  if (!file) return file.error();
  std::vector<std::byte> head(std::min<std::uint64_t>(file->size(), recognized_bytes));
  if (Result<void> got = file->read(0, head); !got) return std::move(got).error();

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
  return Error{.code = ErrorCode::unsupported,
               .message = "the file is not a model of a known format",
               .hint = fmt::format("known are {}", fmt::join(extensions, ", ")),
               .file = path};
}

Result<Model> load(const std::string& path, const LoadModelOptions& options) {
  const Result<const ModelFormat*> format =
      options.format.empty() ? detect_format(path) : format_by_name(options.format);
  if (!format) return format.error();
  Result<Graph> graph = (*format)->load(path, options);
  if (!graph) return std::move(graph).error();
  // Compiles the graph to find errors that the reader cannot, as the file's name is known here.
  if (Result<Program> program = Program::compile(*graph); !program) return std::move(program).error();
  return Model{std::string((*format)->name), std::move(*graph)};
}

}  // namespace

Result<Model> load_model(const std::string& path, const LoadModelOptions& options) {
  Result<Model> model = guarded([&] { return load(path, options); });
  if (!model && model.error().file.empty() && model.error().code != ErrorCode::internal) model.error().file = path;
  return model;
}

}  // namespace tensorcast
