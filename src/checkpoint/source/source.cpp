// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/source/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

#include "checkpoint/source/json_tree.hpp"
#include "checkpoint/source/shard_file.hpp"
#include "checkpoint/store/file_name.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "formats/other_kinds.hpp"
#include "io/sha256.hpp"

namespace tensorcast::checkpoint {
namespace {

std::string stem_of_any_index(const std::string& name) {
  const std::string last = last_component(name);
  const std::string stem = stem_of_index(last);
  return stem.empty() ? stem_of_torch_index(last) : stem;
}

bool is_safetensors(const std::string& name) { return name.ends_with(".safetensors"); }

// Names what a file is that a failed download left in the place of another.
Result<void> check_kind(const StoredFile& source, const std::string& name) {
  std::array<std::byte, 64> buffer{};
  const std::span<std::byte> head = std::span(buffer).first(std::min<std::uint64_t>(source.size(), buffer.size()));
  TRY(source.read(0, head));
  // An index is read here, so its own extension is not a mistake.
  const std::string judged = stem_of_any_index(name).empty() ? name : "index.json";
  std::optional<Error> other = formats::other_kind(judged, head);
  if (!other) return {};
  other->file = source.path();
  return *std::move(other);
}

Result<bool> is_saved_by_torch(const StoredFile& source) {
  std::array<std::byte, 512> buffer{};
  const auto head = std::span(buffer).first(std::min<std::uint64_t>(source.size(), buffer.size()));
  TRY(source.read(0, head));
  return formats::pytorch_format.sniff(head, source.size());
}

// torch.distributed.checkpoint writes each rank's parts of tensors to a file, with the place of each.
Result<void> check_has_whole_tensors(const formats::Metadata& metadata) {
  const auto places = std::ranges::find(metadata, "DCP_SHARDING_INFO", [](const auto& entry) { return entry.first; });
  if (places == metadata.end()) return {};
  const JsonTree tree = TRY(JsonTree::parse(places->second));
  for (const JsonTree::Node tensor : tree.members(tree.root())) {
    const std::optional<JsonTree::Node> offsets = tree.find(tensor, "saved_offsets");
    constexpr std::string_view zeros = "[0, ]";  // and what is between them
    if (!offsets || tree.text(*offsets).find_first_not_of(zeros) == std::string_view::npos) continue;
    return of_tensor(
        tree.key(tensor),
        unsupported(fmt::format("DCP_SHARDING_INFO says that this is the part of it at {}, and parts are not read",
                                tree.text(*offsets).substr(0, 100)),
                    "join them with torch.distributed.checkpoint's consolidate_safetensors_files(); if that was done, "
                    "`skip_files` leaves the parts out"));
  }
  return {};
}

Result<SourceShard> read_shard(const std::string& folder, const std::string& name, std::vector<std::string>& warnings) {
  StoredFile source = TRY(open_source(folder, name));
  TRY(check_kind(source, name));
  if (!is_safetensors(name) || TRY(is_torch_archive(source))) {
    ShardFile shard = TRY(open_shard_file(folder, name, true));
    source = std::move(shard.source);
    warnings.insert(warnings.end(), shard.warnings.begin(), shard.warnings.end());
  }
  Result<formats::safetensors::FileHeader> header = formats::safetensors::read_file_header(
      source.size(), [&](std::uint64_t offset, std::span<std::byte> out) { return source.read(offset, out); });
  if (!header) {
    header.error().file = source.path();
    if (header.error().code == ErrorCode::parse) {
      header.error().hint = "the file is damaged or its download did not finish; fetch it again";
    }
    return std::move(header).error();
  }
  TRY(in_file(source.path(), check_has_whole_tensors(header->header.metadata)));
  return SourceShard{{.name = name,
                      .bytes = source.size(),
                      .version = source.version(),
                      .header_sha256 = io::sha256_of(header->json),
                      .data_begin = header->data_begin},
                     std::move(header->header)};
}

class Reading {
 public:
  Reading(std::string folder, FileGlobs skip) : skip_(std::move(skip)) { checkpoint_.folder = std::move(folder); }

  Result<SourceCheckpoint> read_folder() {
    std::vector<ListedFile> files = TRY(list());
    // Files of PyTorch beside safetensors files are mostly the same weights again.
    std::set<std::string> has_safetensors;
    for (const ListedFile& file : files) {
      if (is_safetensors(file.name) && !is_in_dot_folder(file.name)) has_safetensors.insert(folder_of(file.name));
    }
    const auto is_shard = [&](const std::string& name) {
      if (is_in_dot_folder(name)) return false;
      if (is_safetensors(name)) return true;
      if (!is_torch_weights_name(name) || !reads_torch() || has_safetensors.contains(folder_of(name))) return false;
      return has_safetensors.empty() || folder_of(name).empty() || !is_of_another_tool(name);
    };
    for (const ListedFile& file : files) {
      if (is_in_dot_folder(file.name)) continue;
      const bool torch = !stem_of_torch_index(last_component(file.name)).empty();
      if (torch && (!reads_torch() || has_safetensors.contains(folder_of(file.name)))) continue;
      if (stem_of_any_index(file.name).empty()) continue;
      TRY(add_index(file.name));
    }
    TRY(add_files_without_index(files, is_shard));
    TRY(add_distributed(files, has_safetensors));
    if (checkpoint_.models.empty() && reads_torch()) TRY(add_saved_files(files));
    if (checkpoint_.models.empty()) {
      if (!reads_torch() && std::ranges::any_of(files, [](const ListedFile& file) {
            const std::string name = last_component(file.name);
            return is_torch_weights_name(file.name) || name == ".metadata" || name.ends_with(".distcp");
          })) {
        return in_file(
            checkpoint_.folder,
            unsupported("the folder has files of PyTorch, which are not read behind URLs",
                        "copy the folder to this machine; of URLs, safetensors files and single .pt files are read"));
      }
      return in_file(checkpoint_.folder, unsupported("the folder has no .safetensors files, and none of PyTorch",
                                                     "a checkpoint is a folder with files of weights and their index"));
    }
    return finish(files);
  }

  // Reads one model and the files beside it.
  Result<SourceCheckpoint> read_index(const std::string& name) {
    TRY(add_index(name));
    std::vector<ListedFile> files = TRY(list());
    checkpoint_.empty_folders.clear();
    // Another model's files, and folders, are not this model's.
    std::erase_if(files, [](const ListedFile& file) {
      const bool weights =
          is_safetensors(file.name) || is_torch_weights_name(file.name) || !stem_of_any_index(file.name).empty();
      return weights || file.name.find('/') != std::string::npos;
    });
    return finish(files);
  }

  Result<SourceCheckpoint> read_file(const std::string& name) {
    TRY(add_model_of({name}));
    return finish({});
  }

 private:
  Result<std::vector<ListedFile>> list() {
    Listing listing = TRY(list_folder(checkpoint_.folder, &skip_));
    TRY(skip_.check_all_matched());
    checkpoint_.empty_folders = std::move(listing.empty_folders);
    checkpoint_.left_out = std::move(listing.left_out);
    return std::move(listing.files);
  }
  // Beside a checkpoint, other tools' weights may have such a name: openvino/openvino_model.bin, gpt-oss'
  // metal/model.bin. What a failed download left is none of them.
  [[nodiscard]] bool is_of_another_tool(const std::string& name) const {
    const Result<StoredFile> source = open_source(checkpoint_.folder, name);
    if (!source || !check_kind(*source, name)) return false;
    const Result<bool> is_saved = is_saved_by_torch(*source);
    return is_saved && !*is_saved;
  }

  [[nodiscard]] bool reads_torch() const { return is_local(checkpoint_.folder); }

  Result<SourceCheckpoint> finish(const std::vector<ListedFile>& files) {
    for (const ListedFile& file : files) {
      if (!taken_.contains(file.name)) checkpoint_.others.push_back(file);
    }
    return std::move(checkpoint_);
  }

  Result<std::size_t> add_shard(const std::string& name) {
    if (!taken_.insert(name).second) {
      return in_file(checkpoint_.folder + "/" + name, parse_error("two indexes name this file"));
    }
    checkpoint_.shards.push_back(TRY(read_shard(checkpoint_.folder, name, checkpoint_.warnings)));
    return checkpoint_.shards.size() - 1;
  }

  Result<void> add_index(const std::string& name) {
    const std::string path = checkpoint_.folder + "/" + name;
    const StoredFile source = TRY(open_source(checkpoint_.folder, name));
    TRY(check_kind(source, name));
    std::string text = TRY(read_text(source, max_index_bytes));
    const WeightMap map = TRY(parse_index(text, path));
    if (map.empty()) return in_file(path, parse_error("the index names no tensors: its weight_map is empty"));
    taken_.insert(name);
    SourceModel model{.folder = folder_of(name),
                      .stem = stem_of_any_index(name),
                      .index = name,
                      .output_index = name,
                      .index_text = std::move(text)};
    std::unordered_map<std::string, std::size_t> shard_of_file;
    for (const auto& [tensor, file] : map) {
      if (shard_of_file.contains(file)) continue;
      const std::string shard_name = model.folder + file;
      if (skip_.match(shard_name)) {
        return in_file(path,
                       invalid(fmt::format("the index names the file \"{}\", which `skip_files` leaves out", file),
                               "`drop` leaves out tensors; leave out the index to leave out its model"));
      }
      if (!is_file(checkpoint_.folder + "/" + shard_name)) {
        return in_file(
            path, of_tensor(tensor, io_failure(fmt::format("the index names the file \"{}\", which is not there", file),
                                               "fetch the missing file")));
      }
      std::size_t shard = TRY(add_shard(shard_name));
      shard_of_file.emplace(file, shard);
      model.shards.push_back(shard);
    }
    std::ranges::sort(model.shards, {},
                      [&](std::size_t shard) -> const std::string& { return checkpoint_.shards[shard].name; });
    ShardName shard;
    if (!model.shards.empty() && parse_shard_name(output_file(checkpoint_.shards[model.shards[0]].name), shard)) {
      model.stem = shard.stem;
    }
    if (stem_of_index(last_component(name)).empty()) model.output_index = model.folder + index_name(model.stem);
    TRY(check_names_once(model));
    TRY(check_index(map, shard_of_file, path));
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
      return in_file(
          path, of_tensor(tensor,
                          parse_error(
                              fmt::format("the index says that the tensor is in \"{}\", which does not have it", file),
                              "the index and the shards are of different checkpoints; fetch them again")));
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
        return in_file(
            checkpoint_.folder + "/" + checkpoint_.shards[shard].name,
            of_tensor(tensor.name, parse_error(fmt::format("the tensor is in two shards: this one and \"{}\"",
                                                           last_component(checkpoint_.shards[known->second].name)),
                                               "remove one of them")));
      }
    }
    return {};
  }

  static std::string output_file(const std::string& name) { return last_component(safetensors_name(name)); }

  Result<void> add_model_of(const std::vector<std::string>& names) {
    const std::string first = output_file(names.front());
    ShardName shard;
    SourceModel model{.folder = folder_of(names.front()), .stem = first.substr(0, first.rfind('.'))};
    if (names.size() > 1 && parse_shard_name(first, shard)) model.stem = shard.stem;
    for (const std::string& name : names) {
      model.shards.push_back(TRY(add_shard(name)));
    }
    TRY(check_names_once(model));
    checkpoint_.models.push_back(std::move(model));
    return {};
  }

  // Files that no index names: complete sets of shards are a model each, and so is every other file.
  template <class IsShard>
  Result<void> add_files_without_index(const std::vector<ListedFile>& files, IsShard is_shard) {
    std::map<std::string, std::vector<std::string>> sets;  // files by the name that their set has
    for (const ListedFile& file : files) {
      if (!is_shard(file.name) || taken_.contains(file.name)) continue;
      ShardName shard;
      std::string set = file.name;
      if (parse_shard_name(output_file(file.name), shard)) {
        set = fmt::format("{}{} of {}", folder_of(file.name), shard.stem, shard.count);
      }
      sets[set].push_back(file.name);
    }
    for (const auto& [set, names] : sets) {
      ShardName shard;
      for (std::size_t i = 0; i < names.size() && parse_shard_name(output_file(names[i]), shard); ++i) {
        if (shard.number == i + 1 && names.size() == shard.count) continue;
        const std::size_t missing = shard.number == i + 1 ? names.size() + 1 : i + 1;
        return in_file(
            checkpoint_.folder + "/" + folder_of(names[i]) + missing_name(names[i], shard, missing),
            io_failure(fmt::format("shard {} of {} is not there, and no index names its shards", missing, shard.count),
                       "fetch the missing files"));
      }
      TRY(add_model_of(names));
    }
    return {};
  }

  // "pytorch_model-00002-of-00003.bin" if that of number 1 is there.
  static std::string missing_name(const std::string& there, const ShardName& shard, std::size_t missing) {
    std::string name = last_component(there);
    const std::string number = fmt::format("-{:05}-of-", shard.number);
    return name.replace(name.rfind(number), number.size(), fmt::format("-{:05}-of-", missing));
  }

  // Folders that torch.distributed.checkpoint wrote: .metadata names the files.
  Result<void> add_distributed(const std::vector<ListedFile>& files, const std::set<std::string>& has_safetensors) {
    if (!reads_torch()) return {};
    std::set<std::string> folders;
    for (const ListedFile& file : files) {
      if (file.name.ends_with(distributed_extension)) folders.insert(folder_of(file.name));
    }
    for (const std::string& folder : folders) {
      const std::string name = folder + std::string(distributed_metadata);
      if (has_safetensors.contains(folder)) continue;
      if (!is_file(checkpoint_.folder + "/" + name)) {
        const std::string of_rank = folder + "__0" + std::string(distributed_metadata);
        if (!is_file(checkpoint_.folder + "/" + of_rank)) continue;
        return in_file(checkpoint_.folder + "/" + of_rank,
                       unsupported("each rank has metadata of its own, as torch.distributed.checkpoint writes them "
                                   "with use_collectives=False, and these are not read",
                                   "load the checkpoint in PyTorch, and save it with collectives"));
      }
      TRY(add_model_of({name}));
      for (const ListedFile& file : files) {
        if (folder_of(file.name) == folder && file.name.ends_with(distributed_extension)) taken_.insert(file.name);
      }
    }
    return {};
  }

  // Folders without weights of a usual name: every file of torch.save that has tensors is a model.
  Result<void> add_saved_files(const std::vector<ListedFile>& files) {
    for (const ListedFile& file : files) {
      if (!is_torch_name(file.name)) continue;
      const StoredFile source = TRY(open_source(checkpoint_.folder, file.name));
      const bool is_saved = TRY(is_saved_by_torch(source));
      if (!is_saved) continue;
      TRY(add_model_of({file.name}));
      if (!checkpoint_.shards.back().header.tensors.empty()) continue;
      checkpoint_.shards.pop_back();
      checkpoint_.models.pop_back();
      taken_.erase(file.name);
    }
    return {};
  }

  SourceCheckpoint checkpoint_;
  FileGlobs skip_;
  std::set<std::string> taken_;  // names of files that belong to models
};

}  // namespace

std::vector<std::string> file_names(const SourceCheckpoint& checkpoint) {
  std::vector<std::string> names;
  for (const SourceShard& shard : checkpoint.shards) names.push_back(shard.name);
  for (const SourceModel& model : checkpoint.models) {
    if (!model.index.empty()) names.push_back(model.index);
  }
  for (const ListedFile& file : checkpoint.others) {
    if (!is_about_others(file.name)) names.push_back(file.name);
  }
  return names;
}

std::string source_folder(const std::string& path) {
  if (is_folder(path)) return path;
  const std::string above = folder_of(path);
  return above.empty() ? "." : above;
}

Result<SourceCheckpoint> read_source(const std::string& path, const std::vector<std::string>& skip_files) {
  FileGlobs skip = TRY(FileGlobs::compile(skip_files));
  if (is_file(source_folder(path) + "/.tcast/moving.json")) {
    return in_file(path, io_failure("the folder is not complete: its files are getting their places",
                                    "`tcast finish` completes it"));
  }
  std::string real = TRY(real_path(path));
  if (is_folder(real)) {
    Result<std::string> folder = snapshot_of(real);
    if (!folder) return with_given_path(std::move(folder).error(), path);
    Result<SourceCheckpoint> checkpoint = Reading(std::move(folder).value(), std::move(skip)).read_folder();
    if (!checkpoint) return with_given_path(std::move(checkpoint).error(), path);
    return checkpoint;
  }
  // A link to a file is the user's own; its name counts, and its folder.
  const std::string name = last_component(path);
  Reading reading(TRY(real_path(source_folder(path))), std::move(skip));
  Result<SourceCheckpoint> checkpoint =
      stem_of_any_index(name).empty() ? reading.read_file(name) : reading.read_index(name);
  if (!checkpoint) return with_given_path(with_given_path(std::move(checkpoint).error(), path), source_folder(path));
  return checkpoint;
}

Result<StoredFile> reopen(const std::string& folder, const SourceFile& file) {
  StoredFile source = TRY(open_shard_file(folder, file.name, false)).source;
  if (source.size() != file.bytes || source.version() != file.version) return changed_since_planned(source.path());
  return source;
}

Error changed_since_planned(const std::string& path, std::string_view noun) {
  return in_file(path, io_failure(fmt::format("the {} has changed since the conversion was planned", noun),
                                  "plan the conversion again; `overwrite` replaces the old plan"));
}

}  // namespace tensorcast::checkpoint
