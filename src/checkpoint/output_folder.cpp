#include "checkpoint/output_folder.hpp"

#include <algorithm>
#include <cerrno>

#include "checkpoint/file_name.hpp"
#include "checkpoint/local_folder.hpp"
#include "checkpoint/remote_folder.hpp"
#include "convert/aligned_buffer.hpp"
#include "io/parent_folders.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

using Kind = io::Found::Kind;

// Adds the names below a folder of the local file system, at any depth; links are names, and not followed.
Result<void> add_below(const io::Folder& folder, const std::string& prefix, std::vector<std::string>& names) {
  const auto entries = folder.list();
  if (!entries) return entries.error();
  for (const auto& [name, found] : *entries) {
    if (found.kind != Kind::folder) {
      names.push_back(prefix + name);
      continue;
    }
    const Result<io::Folder> inner = folder.open_below(name);
    if (!inner && inner.error().system_error == ENOENT) continue;  // another run removes it
    if (!inner) return inner.error();
    if (Result<void> added = add_below(*inner, prefix + name + "/", names); !added) return added;
  }
  return {};
}

Result<void> remove_empty_below(const io::Folder& folder) {
  const auto entries = folder.list();
  if (!entries) return entries.error();
  for (const auto& [name, found] : *entries) {
    if (found.kind != Kind::folder) continue;
    const Result<io::Folder> inner = folder.open_below(name);
    if (!inner && inner.error().system_error == ENOENT) continue;
    if (!inner) return inner.error();
    if (Result<void> removed = remove_empty_below(*inner); !removed) return removed;
    if (Result<void> removed = folder.remove_empty(name); !removed) return removed;
  }
  return {};
}

std::string without_slash(const std::string& folder) {
  return folder.ends_with('/') ? folder.substr(0, folder.size() - 1) : folder;
}

}  // namespace

Result<OutputFolder> OutputFolder::open(const std::string& path) {
  OutputFolder folder;
  folder.path_ = path;
  if (checkpoint::is_remote(path)) return folder;
  Result<io::Folder> local = io::Folder::open(path);
  if (!local) return std::move(local).error();
  folder.local_ = std::move(local).value();
  return folder;
}

Result<OutputFolder> OutputFolder::create(const std::string& path) {
  if (checkpoint::is_remote(path)) return open(path);
  Result<io::ParentFolders> created = io::ParentFolders::create(path + "/");
  if (!created) return std::move(created).error();
  created->keep();
  return open(path);
}

Result<std::optional<OutputFolder::Entry>> OutputFolder::find(const std::string& name) const {
  if (is_remote()) {
    const Result<std::optional<RemoteFile>> file = find_remote(path_of(name));
    if (!file) return file.error();
    if (!file->has_value()) return std::optional<Entry>();
    return std::optional(Entry{.kind = Kind::file, .bytes = (*file)->bytes, .version = (*file)->version});
  }
  const Result<std::optional<io::Found>> found = local_->find(name);
  if (!found) return found.error();
  if (!found->has_value()) return std::optional<Entry>();
  return std::optional(
      Entry{.kind = (*found)->kind, .bytes = (*found)->bytes, .version = std::to_string((*found)->modified_ns)});
}

Result<std::vector<std::string>> OutputFolder::names_in(const std::string& folder) const {
  std::vector<std::string> names;
  if (is_remote()) {
    Result<std::vector<std::string>> below = names_below(folder);
    if (!below) return below;
    std::erase_if(*below, [&](const std::string& name) { return name.find('/', folder.size()) != std::string::npos; });
    return below;
  }
  const io::Folder* listed = &*local_;
  std::optional<io::Folder> inner;
  if (!folder.empty()) {
    const Result<std::optional<io::Found>> found = local_->find(without_slash(folder));
    if (!found) return found.error();
    if (!found->has_value() || (*found)->kind != Kind::folder) return names;
    Result<io::Folder> opened = local_->open_below(without_slash(folder));
    if (!opened) return std::move(opened).error();
    inner = std::move(opened).value();
    listed = &*inner;
  }
  const auto entries = listed->list();
  if (!entries) return entries.error();
  for (const auto& [name, found] : *entries) {
    if (found.kind != Kind::folder) names.push_back(folder + name);
  }
  return names;
}

Result<std::vector<std::string>> OutputFolder::names_below(const std::string& folder) const {
  std::vector<std::string> names;
  if (is_remote()) {
    const Result<std::vector<RemoteFile>> files = list_remote(without_slash(path_of(folder)));
    if (!files) return files.error();
    for (const RemoteFile& file : *files) names.push_back(file.url.substr(path_.size() + 1));
    return names;
  }
  if (folder.empty()) {
    if (Result<void> added = add_below(*local_, "", names); !added) return std::move(added).error();
    return names;
  }
  const Result<std::optional<io::Found>> found = local_->find(without_slash(folder));
  if (!found) return found.error();
  if (!found->has_value()) return names;
  const Result<io::Folder> inner = local_->open_below(without_slash(folder));
  if (!inner) return inner.error();
  if (Result<void> added = add_below(*inner, without_slash(folder) + "/", names); !added) {
    return std::move(added).error();
  }
  return names;
}

Result<std::unique_ptr<StoredFile>> OutputFolder::open_file(const std::string& name) const {
  if (is_remote()) return open_remote(path_of(name));
  Result<io::InputFile> file = local_->open_file(name);
  if (!file) return std::move(file).error();
  return local_stored_file(std::move(file).value(), path_of(name));
}

Result<std::unique_ptr<NewFile>> OutputFolder::create_file(const std::string& name, std::uint64_t bytes) const {
  if (is_remote()) return create_remote(path_of(name));
  Result<io::OutputFile> file = local_->create_file(name);
  if (!file) return std::move(file).error();
  if (Result<void> reserved = file->reserve(bytes); !reserved) return std::move(reserved).error();
  return local_new_file(std::move(file).value());
}

Result<std::string> OutputFolder::read_text(const std::string& name, std::uint64_t max_bytes) const {
  const Result<std::unique_ptr<StoredFile>> source = open_file(name);
  if (!source) return source.error();
  return checkpoint::read_text(**source, max_bytes);
}

Result<void> OutputFolder::write_text(const std::string& name, const std::string& text) const {
  Result<std::unique_ptr<NewFile>> sink = create_file(name, text.size());
  if (!sink) return std::move(sink).error();
  if (Result<void> put = (*sink)->append(std::as_bytes(std::span(text))); !put) return put;
  return (*sink)->commit();
}

Result<void> OutputFolder::move(const std::string& from, const std::string& to) const {
  return is_remote() ? move_remote(path_of(from), path_of(to)) : local_->move(from, *local_, to);
}

Result<void> OutputFolder::remove(const std::string& name) const {
  return is_remote() ? remove_remote(path_of(name)) : local_->remove_file(name);
}

Result<void> OutputFolder::create_folder(const std::string& name) const {
  if (is_remote() || name.empty()) return {};
  const Result<io::Folder> created = local_->create_below(name);
  return created ? Result<void>() : created.error();
}

Result<void> OutputFolder::remove_empty_folder(const std::string& name) const {
  return is_remote() ? Result<void>() : local_->remove_empty(name);
}

Result<void> OutputFolder::sync_folder(const std::string& name) const {
  if (is_remote()) return {};
  if (name.empty()) return local_->sync();
  const Result<io::Folder> folder = local_->open_below(name);
  return folder ? folder->sync() : folder.error();
}

Result<void> OutputFolder::remove_empty_folders(const std::string& folder) const {
  if (is_remote()) return {};
  const Result<std::optional<io::Found>> found = local_->find(folder);
  if (!found) return found.error();
  if (!found->has_value() || (*found)->kind != Kind::folder) return {};
  const Result<io::Folder> inner = local_->open_below(folder);
  if (!inner) return inner.error();
  if (Result<void> removed = remove_empty_below(*inner); !removed) return removed;
  return local_->remove_empty(folder);
}

Result<bool> OutputFolder::is_as_written(const io::WrittenFile& file) const {
  if (!is_remote()) return io::is_as_written(*local_, file);
  const Result<std::optional<Entry>> found = find(file.name);
  if (!found) return found.error();
  if (!found->has_value() || (*found)->bytes != file.bytes) return false;
  if (!file.version.empty() && (*found)->version == file.version) return true;
  const Result<std::unique_ptr<StoredFile>> source = open_file(file.name);
  if (!source) return source.error();
  const Result<std::string> sha256 = sha256_of_file(**source);
  if (!sha256) return sha256.error();
  return *sha256 == file.sha256;
}

Result<std::string> sha256_of_file(const StoredFile& source) {
  constexpr std::size_t block = std::size_t{1} << 20;
  const conversion::AlignedBuffer buffer(block);
  io::Sha256 hash;
  for (std::uint64_t offset = 0; offset < source.size();) {
    const auto bytes = buffer.span().first(std::min<std::uint64_t>(block, source.size() - offset));
    if (Result<void> got = source.read(offset, bytes); !got) return std::move(got).error();
    hash.update(bytes);
    offset += bytes.size();
  }
  return hash.digest();
}

}  // namespace tensorcast::checkpoint
