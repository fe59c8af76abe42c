// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/data_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/edit/external_locations.hpp"

namespace tensorcast::models::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view data_ending = ".data";

std::string path_in(const io::Folder& folder, const std::string& name) { return folder.path() + "/" + name; }

std::string normal(const std::string& location) { return fs::path(location).lexically_normal().string(); }

// Reports whether a model of the folder might need the file `name`: it names the file, or cannot be read.
bool is_named_beside(const io::Folder& folder, const std::string& name) {
  const auto listed = folder.list();
  if (!listed) return true;
  return std::ranges::any_of(*listed, [&](const auto& entry) {
    const auto& [other, found] = entry;
    if (found.kind != io::Found::Kind::file || other == name) return false;
    if (found.bytes > formats::onnx::max_message_bytes) return false;
    const Result<io::InputFile> file = folder.open_file(other);
    const Result<std::unique_ptr<Model>> model = file ? read_model(*file) : file.error();
    if (!model) return other.ends_with(".onnx");
    const Result<std::set<std::string>> locations = external_locations(*file, **model);
    if (!locations) return true;
    return std::ranges::any_of(*locations,
                               [&](const std::string& location) { return normal(location) == normal(name); });
  });
}

// Removes a file of data unless a model names it or a run is about to name it. Returns whether it was removed.
bool remove_unless_needed(const io::Folder& folder, const std::string& name) {
  const Result<io::InputFile> file = folder.open_file(name);
  return file && file->may_go() && !is_named_beside(folder, name) && folder.remove_file(name).ok();
}

}  // namespace

DataFiles::~DataFiles() {
  for (const std::string& name : placed_) remove_unless_needed(folder_, name);
}

Result<bool> DataFiles::keep_same(const io::WrittenFile& made) {
  Result<io::InputFile> file = folder_.open_file(made.name);
  if (!file || !file->keep()) return false;
  const std::optional<io::Found> found = TRY(folder_.find(made.name));
  if (!found.has_value() || found->identity != file->identity()) return false;
  const Result<bool> is_same = io::is_as_written(folder_, made);
  if (is_same && *is_same) kept_.push_back(std::move(*file));
  return is_same;
}

Result<std::string> DataFiles::find_name(const ExternalFiles::File& external, io::WrittenFile& made, bool& exists) {
  std::string_view base = external.location;
  if (base.ends_with(data_ending)) base.remove_suffix(data_ending.size());
  for (const std::size_t digits : {0, 8, 16, 64}) {
    made.name = digits == 0
                    ? external.location
                    : fmt::format("{}.{}{}", base, std::string_view(made.sha256).substr(0, digits), data_ending);
    const std::optional<io::Found> found = TRY(folder_.find(made.name));
    exists = found.has_value();
    if (!exists) return made.name;
    const bool is_same = TRY(keep_same(made));
    if (is_same) return made.name;
    if (external.is_copy) break;
  }
  return Error{.code = ErrorCode::invalid_argument,
               .message = "a file with other contents has the name of the model's external data",
               .hint = "write the model into another folder",
               .file = path_in(folder_, made.name),
               .system_error = {}};
}

Result<void> DataFiles::write(const io::InputFile& file, const ExternalFiles::File& external,
                              const std::function<bool()>& go_on) {
  io::OutputFile data = TRY((stage_ != nullptr ? *stage_ : folder_).create_file(external.location));
  TRY(data.reserve(external.contents.size()));
  TRY(external.contents.write(file, data, go_on));
  io::WrittenFile made{.name = {}, .bytes = data.size(), .version = {}, .sha256 = {}};
  {
    const io::InputFile again = TRY(io::InputFile::open(data.temporary_path()));
    made.sha256 = TRY(io::sha256_of_file(again));
  }
  bool exists = false;
  const std::string name = TRY(find_name(external, made, exists));
  if (name != external.location) new_names_[external.location] = name;
  if (!external.is_copy) written_.push_back(made);
  data.take_name(fs::path(name).filename().string(), path_in(folder_, name));
  if (stage_ != nullptr) {
    if (!exists) staged_.push_back(name);
    return data.commit();
  }
  if (!exists) pending_.push_back({.location = name, .file = std::move(data)});
  return {};
}

Result<void> DataFiles::place() {
  for (Pending& pending : pending_) {
    TRY(pending.file.commit());
    placed_.push_back(pending.location);
  }
  for (const std::string& name : staged_) {
    io::OutputFile data = TRY(io::OutputFile::adopt(path_in(*stage_, name), path_in(folder_, name), false));
    TRY(data.commit());
    placed_.push_back(name);
  }
  return {};
}

void remove_old_data(const io::Folder& folder, const std::vector<io::WrittenFile>& old,
                     const std::set<io::InputFile::Identity>& in_use) {
  bool removed = false;
  for (const io::WrittenFile& file : old) {
    const Result<std::optional<io::Found>> found = folder.find(file.name);
    if (!found || !found->has_value() || in_use.contains((*found)->identity)) continue;
    const Result<bool> is_ours = io::is_as_written(folder, file);
    if (is_ours && *is_ours) removed = remove_unless_needed(folder, file.name) || removed;
  }
  if (removed) {
    const Result<void> ignored = folder.sync();
    static_cast<void>(ignored);
  }
}

}  // namespace tensorcast::models::onnx
