// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "checkpoint/store/file_name.hpp"
#include "checkpoint/store/local_folder.hpp"
#include "checkpoint/store/remote_folder.hpp"
#include "convert/run/aligned_buffer.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/path_name.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {

Result<std::unique_ptr<Folder>> Folder::open(const std::string& path) {
  return is_local(path) ? local::open_folder(path) : remote::open_folder(path);
}

Result<std::unique_ptr<Folder>> Folder::create(const std::string& path) {
  return is_local(path) ? local::create_folder(path) : remote::open_folder(path);
}

Result<std::string> Folder::read_text(const std::string& name, std::uint64_t max_bytes) const {
  return checkpoint::read_text(TRY(open_file(name)), max_bytes);
}

Result<void> Folder::write_text(const std::string& name, const std::string& text) const {
  std::unique_ptr<NewFile> file = TRY(create_file(name, text.size()));
  TRY(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

Result<bool> Folder::is_as_written(const io::WrittenFile& file) const {
  const std::optional<Entry> found = TRY(find(file.name));
  if (!found.has_value() || found->kind != io::Found::Kind::file || found->bytes != file.bytes) return false;
  if (!file.version.empty() && found->version == file.version) return true;
  return TRY(sha256_of_file(TRY(open_file(file.name)))) == file.sha256;
}

bool is_local(const std::string& path) noexcept { return !io::is_url(path); }

Result<std::string> real_path(const std::string& path) {
  TRY(io::check_path(path));
  if (is_local(path)) return local::real_path(path);
  return path.substr(0, std::max(path.find("://") + 3, path.find_last_not_of('/') + 1));
}

bool is_folder(const std::string& path) noexcept {
  return is_local(path) ? local::is_folder(path) : remote::is_folder(path);
}

bool is_file(const std::string& path) noexcept { return file_bytes(path).has_value(); }

bool has_folder_above(const std::string& path) noexcept {
  const std::string above = folder_of(path);
  return !is_local(path) || above.empty() || local::is_folder(above);
}

std::optional<std::uint64_t> file_bytes(const std::string& path) noexcept {
  return is_local(path) ? local::file_bytes(path) : remote::file_bytes(path);
}

std::uint64_t free_bytes(const std::string& path) noexcept {
  return is_local(path) ? local::free_bytes(path) : std::numeric_limits<std::uint64_t>::max();
}

Result<StoredFile> open_source(const std::string& folder, const std::string& name) {
  TRY(check_file_name(name, folder));
  return is_local(folder) ? local::open_source(folder, name) : remote::open_file(folder + "/" + name);
}

Result<void> check_source(const std::string& folder, const std::string& name) {
  if (!is_local(folder)) return {};  // a store has no links, and each look takes a request
  TRY(open_source(folder, name));
  return {};
}

Result<Listing> list_folder(const std::string& folder, FileGlobs* skip) {
  return is_local(folder) ? local::list_folder(folder, skip) : remote::list_folder(folder, skip);
}

Result<std::string> snapshot_of(const std::string& folder) {
  return is_local(folder) ? local::snapshot_of(folder) : folder;
}

Error with_given_path(Error error, const std::string& given) {
  const Result<std::string> real = real_path(given);
  if (!real || !error.file.starts_with(*real)) return error;
  const std::string rest = error.file.substr(real->size());
  if (!rest.empty() && rest.front() != '/') return error;
  const bool slash = given.ends_with('/') && !rest.empty();
  error.file = given + (slash ? rest.substr(1) : rest);
  return error;
}

bool is_state_folder(std::string_view name) noexcept {
  return name == ".git" || name == ".cache" || name == ".tcast" || name.starts_with(".tcast-");
}

bool is_hidden_output(std::string_view name) noexcept {
  return name.starts_with('.') && name.find(".tcast-") != std::string_view::npos;
}

Result<std::string> read_text(const StoredFile& file, std::uint64_t max_bytes) {
  if (file.size() > max_bytes) {
    return in_file(file.path(),
                   unsupported(fmt::format("the file has {} bytes; {} are allowed", file.size(), max_bytes)));
  }
  std::string text(file.size(), '\0');
  TRY(file.read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<void> read_blocks(const StoredFile& file, const std::function<Result<void>(std::span<const std::byte>)>& use) {
  constexpr std::size_t block = std::size_t{1} << 20;
  const file_conversion::AlignedBuffer buffer(block);
  for (std::uint64_t offset = 0; offset < file.size();) {
    const auto bytes = buffer.span().first(std::min<std::uint64_t>(block, file.size() - offset));
    TRY(file.read(offset, bytes));
    TRY(use(bytes));
    offset += bytes.size();
  }
  return {};
}

Result<std::string> sha256_of_file(const StoredFile& file, const std::function<bool(std::uint64_t bytes)>& advance) {
  io::Sha256 hash;
  TRY(read_blocks(file, [&](std::span<const std::byte> bytes) -> Result<void> {
    hash.update(bytes);
    if (!advance || advance(bytes.size())) return {};
    return cancelled("cancelled");
  }));
  return hash.digest();
}

}  // namespace tensorcast::checkpoint
