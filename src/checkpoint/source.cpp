#include "checkpoint/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "checkpoint/file_name.hpp"
#include "formats/other_kinds.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

// Names what a file is that a failed download left in the place of another.
Result<void> check_kind(const ByteSource& source, const std::string& name) {
  std::array<std::byte, 64> buffer{};
  const std::span<std::byte> head = std::span(buffer).first(std::min<std::uint64_t>(source.size(), buffer.size()));
  if (Result<void> got = source.read(0, head); !got) return got;
  // An index is read here, so its own extension is not a mistake.
  const std::string judged = stem_of_index(last_component(name)).empty() ? name : "index.json";
  std::optional<Error> other = formats::other_kind(judged, head);
  if (!other) return {};
  other->file = source.path();
  return *std::move(other);
}

Result<SourceShard> read_shard(const std::string& folder, const std::string& name) {
  Result<std::unique_ptr<ByteSource>> source = open_source(folder, name);
  if (!source) return std::move(source).error();
  if (Result<void> kind = check_kind(**source, name); !kind) return std::move(kind).error();
  Result<formats::safetensors::FileHeader> header = formats::safetensors::read_file_header(
      (*source)->size(), [&](std::uint64_t offset, std::span<std::byte> out) { return (*source)->read(offset, out); });
  if (!header) {
    header.error().file = (*source)->path();
    if (header.error().code == ErrorCode::parse) {
      header.error().hint = "the file is damaged or its download did not finish; fetch it again";
    }
    return std::move(header).error();
  }
  return SourceShard{.name = name,
                     .bytes = (*source)->size(),
                     .version = (*source)->version(),
                     .header_sha256 = io::sha256_of(header->json),
                     .data_begin = header->data_begin,
                     .header = std::move(header->header)};
}

class Reading {
 public:
  explicit Reading(std::string folder) { checkpoint_.folder = std::move(folder); }

  Result<SourceCheckpoint> read_folder() {
    Result<std::vector<ListedFile>> files = list_files(checkpoint_.folder);
    if (!files) return std::move(files).error();
    for (const ListedFile& file : *files) {
      if (stem_of_index(last_component(file.name)).empty()) continue;
      if (Result<void> added = add_index(file.name); !added) return std::move(added).error();
    }
    if (Result<void> added = add_files_without_index(*files); !added) return std::move(added).error();
    if (checkpoint_.models.empty()) {
      return Error{.code = ErrorCode::unsupported,
                   .message = "the folder has no .safetensors files",
                   .hint = "a checkpoint is a folder with .safetensors files and their index",
                   .file = checkpoint_.folder};
    }
    return finish(*files);
  }

  // Reads one model and the files beside it.
  Result<SourceCheckpoint> read_index(const std::string& name) {
    if (Result<void> added = add_index(name); !added) return std::move(added).error();
    Result<std::vector<ListedFile>> files = list_files(checkpoint_.folder);
    if (!files) return std::move(files).error();
    // Another model's files, and folders, are not this model's.
    std::erase_if(*files, [](const ListedFile& file) {
      const bool weights = file.name.ends_with(".safetensors") || !stem_of_index(file.name).empty();
      return weights || file.name.find('/') != std::string::npos;
    });
    return finish(*files);
  }

  Result<SourceCheckpoint> read_file(const std::string& name) {
    if (Result<void> added = add_model_of({name}, name); !added) return std::move(added).error();
    return finish({});
  }

 private:
  Result<SourceCheckpoint> finish(const std::vector<ListedFile>& files) {
    for (const ListedFile& file : files) {
      if (!taken_.contains(file.name)) checkpoint_.others.push_back(file);
    }
    return std::move(checkpoint_);
  }

  Result<std::size_t> add_shard(const std::string& name) {
    if (!taken_.insert(name).second) {
      return Error{
          .code = ErrorCode::parse, .message = "two indexes name this file", .file = checkpoint_.folder + "/" + name};
    }
    Result<SourceShard> shard = read_shard(checkpoint_.folder, name);
    if (!shard) return std::move(shard).error();
    checkpoint_.shards.push_back(std::move(shard).value());
    return checkpoint_.shards.size() - 1;
  }

  Result<void> add_index(const std::string& name) {
    const std::string path = checkpoint_.folder + "/" + name;
    Result<std::unique_ptr<ByteSource>> source = open_source(checkpoint_.folder, name);
    if (!source) return std::move(source).error();
    if (Result<void> kind = check_kind(**source, name); !kind) return kind;
    Result<std::string> text = read_text(**source, max_index_bytes);
    if (!text) return std::move(text).error();
    const Result<WeightMap> map = parse_index(*text, path);
    if (!map) return map.error();
    taken_.insert(name);
    SourceModel model{.folder = folder_of(name),
                      .stem = stem_of_index(last_component(name)),
                      .index = name,
                      .index_text = std::move(text).value(),
                      .shards = {}};
    std::unordered_map<std::string, std::size_t> shard_of_file;
    for (const auto& [tensor, file] : *map) {
      if (shard_of_file.contains(file)) continue;
      const std::string shard_name = model.folder + file;
      if (!is_file(checkpoint_.folder + "/" + shard_name)) {
        return Error{.code = ErrorCode::io,
                     .message = fmt::format("the index names the file \"{}\", which is not there", file),
                     .hint = "fetch the missing file",
                     .tensor = tensor,
                     .file = path};
      }
      Result<std::size_t> shard = add_shard(shard_name);
      if (!shard) return std::move(shard).error();
      shard_of_file.emplace(file, *shard);
      model.shards.push_back(*shard);
    }
    ShardName shard;
    if (!model.shards.empty() && parse_shard_name(last_component(checkpoint_.shards[model.shards[0]].name), shard)) {
      model.stem = shard.stem;
    }
    if (Result<void> once = check_names_once(model); !once) return once;
    if (Result<void> there = check_index(*map, shard_of_file, path); !there) return there;
    checkpoint_.models.push_back(std::move(model));
    return {};
  }

  // Checks that each tensor is in the file that the index names.
  Result<void> check_index(const WeightMap& map, const std::unordered_map<std::string, std::size_t>& shard_of_file,
                           const std::string& path) const {
    std::vector<std::set<std::string_view>> names(checkpoint_.shards.size());
    for (const auto& [file, shard] : shard_of_file) {
      for (const formats::TensorInfo& tensor : checkpoint_.shards[shard].header.tensors) {
        names[shard].insert(tensor.name);
      }
    }
    for (const auto& [tensor, file] : map) {
      if (names[shard_of_file.at(file)].contains(tensor)) continue;
      return Error{.code = ErrorCode::parse,
                   .message = fmt::format("the index says that the tensor is in \"{}\", which does not have it", file),
                   .hint = "the index and the shards are of different checkpoints; fetch them again",
                   .tensor = tensor,
                   .file = path};
    }
    return {};
  }

  // Checks that no tensor is in two shards.
  Result<void> check_names_once(const SourceModel& model) const {
    std::unordered_map<std::string_view, std::size_t> shard_of_tensor;
    for (const std::size_t shard : model.shards) {
      for (const formats::TensorInfo& tensor : checkpoint_.shards[shard].header.tensors) {
        const auto [known, added] = shard_of_tensor.emplace(tensor.name, shard);
        if (added) continue;
        return Error{.code = ErrorCode::parse,
                     .message = fmt::format("the tensor is in two shards: this one and \"{}\"",
                                            last_component(checkpoint_.shards[known->second].name)),
                     .hint = "remove one of them",
                     .tensor = tensor.name,
                     .file = checkpoint_.folder + "/" + checkpoint_.shards[shard].name};
      }
    }
    return {};
  }

  Result<void> add_model_of(const std::vector<std::string>& names, const std::string& first_name) {
    const std::string first = last_component(first_name);
    ShardName shard;
    SourceModel model{.folder = folder_of(first_name),
                      .stem = first.substr(0, first.rfind('.')),
                      .index = {},
                      .index_text = {},
                      .shards = {}};
    if (names.size() > 1 && parse_shard_name(first, shard)) model.stem = shard.stem;
    for (const std::string& name : names) {
      Result<std::size_t> added = add_shard(name);
      if (!added) return std::move(added).error();
      model.shards.push_back(*added);
    }
    if (Result<void> once = check_names_once(model); !once) return once;
    checkpoint_.models.push_back(std::move(model));
    return {};
  }

  // Files that no index names: complete sets of shards are a model each, and so is every other file.
  Result<void> add_files_without_index(const std::vector<ListedFile>& files) {
    std::map<std::string, std::vector<std::string>> sets;  // files by the name that their set has
    for (const ListedFile& file : files) {
      if (!file.name.ends_with(".safetensors") || taken_.contains(file.name)) continue;
      ShardName shard;
      std::string set = file.name;
      if (parse_shard_name(last_component(file.name), shard)) {
        set = fmt::format("{}{} of {}", folder_of(file.name), shard.stem, shard.count);
      }
      sets[set].push_back(file.name);
    }
    for (const auto& [set, names] : sets) {
      ShardName shard;
      for (std::size_t i = 0; i < names.size() && parse_shard_name(last_component(names[i]), shard); ++i) {
        if (shard.number == i + 1 && names.size() == shard.count) continue;
        const std::size_t missing = shard.number == i + 1 ? names.size() + 1 : i + 1;
        return Error{
            .code = ErrorCode::io,
            .message = fmt::format("shard {} of {} is not there, and no index names its shards", missing, shard.count),
            .hint = "fetch the missing files",
            .file = checkpoint_.folder + "/" + folder_of(names[i]) + shard_name(shard.stem, missing, shard.count)};
      }
      if (Result<void> added = add_model_of(names, names.front()); !added) return added;
    }
    return {};
  }

  SourceCheckpoint checkpoint_;
  std::set<std::string> taken_;  // names of files that belong to models
};

}  // namespace

std::string source_folder(const std::string& path) {
  if (is_folder(path)) return path;
  const std::string above = folder_of(path);
  return above.empty() ? "." : above;
}

Result<SourceCheckpoint> read_source(const std::string& path) {
  if (is_file(source_folder(path) + "/.tcast/moving.json")) {
    return Error{.code = ErrorCode::io,
                 .message = "the folder is not complete: its files are getting their places",
                 .hint = "`tcast finish` completes it",
                 .file = path};
  }
  Result<std::string> real = real_path(path);
  if (!real) return std::move(real).error();
  if (is_folder(*real)) {
    Result<SourceCheckpoint> checkpoint = Reading(std::move(real).value()).read_folder();
    if (!checkpoint) return with_given_path(std::move(checkpoint).error(), path);
    return checkpoint;
  }
  // A link to a file is the user's own; its name counts, and its folder.
  const std::string name = last_component(path);
  Result<std::string> folder = real_path(source_folder(path));
  if (!folder) return std::move(folder).error();
  Reading reading(std::move(folder).value());
  return stem_of_index(name).empty() ? reading.read_file(name) : reading.read_index(name);
}

Result<std::unique_ptr<ByteSource>> reopen(const std::string& folder, const std::string& name, std::uint64_t bytes,
                                           const std::string& version) {
  Result<std::unique_ptr<ByteSource>> source = open_source(folder, name);
  if (!source) return source;
  if ((*source)->size() != bytes || (*source)->version() != version) {
    return Error{.code = ErrorCode::io,
                 .message = "the file has changed since the conversion was planned",
                 .hint = "plan the conversion again; `overwrite` replaces the old plan",
                 .file = (*source)->path()};
  }
  return source;
}

}  // namespace tensorcast::checkpoint
