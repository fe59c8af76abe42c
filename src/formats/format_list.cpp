// SPDX-License-Identifier: Apache-2.0
#include "formats/format_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/lower_case.hpp"
#include "dtype/try.hpp"
#include "formats/other_kinds.hpp"
#include "io/input_file.hpp"
#include "tensorcast/file.hpp"

namespace tensorcast::formats {
namespace {

constexpr std::array formats = {&safetensors_format, &gguf_format,         &pytorch_format, &npy_format,
                                &npz_format,         &tensor_proto_format, &raw_format};

constexpr std::size_t sniffed_bytes = 512;

const Format* find_by_extension(std::string_view path) {
  const std::string name = lower_case(path.substr(path.rfind('/') + 1));
  for (const Format* format : formats) {
    for (const std::string_view extension : format->extensions) {
      if (name.size() > extension.size() && name.ends_with(extension)) return format;
    }
  }
  return nullptr;
}

// `written`: only those of formats that can be written.
std::string all_extensions(bool written) {
  std::vector<std::string_view> extensions;
  for (const Format* format : formats) {
    if (written && format->create == nullptr) continue;
    extensions.insert(extensions.end(), format->extensions.begin(), format->extensions.end());
  }
  return fmt::format("{}", fmt::join(extensions, ", "));
}

Error only_read(const Format& format, const std::string& path) {
  return in_file(path, unsupported(fmt::format("files of {} are only read", format.name),
                                   "write .safetensors, or with `output_format` safetensors"));
}

}  // namespace

std::span<const Format* const> all_formats() noexcept { return formats; }

bool has_extension(std::string_view path) { return find_by_extension(path) != nullptr; }

const Format* find_format(std::string_view name) noexcept {
  const auto* found = std::ranges::find_if(formats, [&](const Format* row) { return is_same_name(row->name, name); });
  return found == std::end(formats) ? nullptr : *found;
}

Result<const Format*> detect_format(const io::InputFile& file) {
  std::array<std::byte, sniffed_bytes> buffer{};
  const std::span<std::byte> head = std::span(buffer).first(std::min<std::uint64_t>(file.size(), sniffed_bytes));
  TRY(file.read(0, head));
  if (std::optional<Error> other = other_kind(file.path(), head)) {
    other->file = file.path();
    return *std::move(other);
  }
  const auto looks_like = [&](const Format* format) { return format->sniff && format->sniff(head, file.size()); };

  if (looks_like(&pytorch_format)) return &pytorch_format;  // also archives that are named .npz
  // Some formats have no signature, so an extension that fits the content takes precedence.
  const Format* by_extension = find_by_extension(file.path());
  if (by_extension != nullptr && looks_like(by_extension)) return by_extension;
  const bool is_zip = head.size() > 1 && head[0] == std::byte{'P'} && head[1] == std::byte{'K'};
  if (by_extension == &pytorch_format && is_zip) return by_extension;
  for (const Format* format : formats) {
    if (looks_like(format)) return format;
  }
  if (by_extension != nullptr) return by_extension;  // its reader has the best error message
  if (file.size() == 0) return in_file(file.path(), parse_error("the file is empty"));
  return Error{
      .code = ErrorCode::unsupported,
      .message = "the file format is not known by content or extension",
      .hint = fmt::format("known are {}; `raw` with a type and a shape reads any bytes", all_extensions(false)),
      .file = file.path()};
}

Result<const Format*> format_for_output(std::string_view path, std::string_view format_name) {
  if (const Format* format = find_format(format_name)) {
    if (format->create != nullptr) return format;
    return only_read(*format, std::string(path));
  }
  if (const Format* format = find_by_extension(path)) {
    if (format->create != nullptr) return format;
    return only_read(*format, std::string(path));
  }
  if (path.empty()) return invalid("the path of the output is empty");
  return Error{.code = ErrorCode::unsupported,
               .message = "the extension names no file format",
               .hint = fmt::format("known are {}", all_extensions(true)),
               .file = std::string(path)};
}

}  // namespace tensorcast::formats

namespace tensorcast {
inline namespace TENSORCAST_ABI {

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

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
