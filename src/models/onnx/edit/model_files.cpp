#include "models/onnx/edit/model_files.hpp"
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "io/folder.hpp"
#include "io/output_file.hpp"
#include "io/staging_folder.hpp"
#include "models/onnx/edit/data_files.hpp"
#include "models/onnx/edit/data_record.hpp"
#include "models/onnx/edit/external_locations.hpp"
#include "models/onnx/edit/model_check.hpp"
#include "models/onnx/model_folder.hpp"

namespace tensorcast::models::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t small_bytes = 1024;

// What must be known about other files before the model is replaced.
struct Surroundings {
  std::set<io::InputFile::Identity> in_use;  // read by a model that stays
  std::vector<io::WrittenFile> old_data;     // of the model that is replaced, by its own record
};

Surroundings look_around(const io::InputFile& file, const std::set<std::string>& locations, const std::string& output) {
  Surroundings around{.in_use = {}, .old_data = read_data_record(output)};
  const Result<io::InputFile> replaced = io::InputFile::open(output);
  const Result<io::InputFile> input = io::InputFile::open(file.path());
  if (replaced && input && replaced->identity() == input->identity()) return around;
  for (const std::string& location : locations) {
    const Result<io::InputFile> data = io::InputFile::open_below(folder_of(file.path()).string(), location);
    if (data) around.in_use.insert(data->identity());
  }
  return around;
}

// Writes, checks and syncs the model, which has no name yet.
Result<io::OutputFile> write_message(const io::InputFile& file, const WireRope& rope, const std::string& output,
                                     const WriteOptions& options, const std::function<bool()>& go_on) {
  Result<io::OutputFile> target = io::OutputFile::create(output, options.overwrite);
  if (!target) return target;
  if (Result<void> reserved = target->reserve(rope.size()); !reserved) return std::move(reserved).error();
  if (Result<void> written = rope.write(file, *target, go_on); !written) return std::move(written).error();
  if (Result<void> right = check_new_model(file, target->temporary_path()); !right) return std::move(right).error();
  if (Result<void> synced = target->sync(); !synced) return std::move(synced).error();
  return target;
}

}  // namespace

Result<BuiltModel> build_model(const io::InputFile& file, const PrecisionPlan& plan, const CastElision& elision,
                               TensorPlacement placement, const std::string& output,
                               const std::map<std::string, std::string>& names) {
  ExternalFiles::Layout layout{.model_name = fs::path(output).filename().string(),
                               .old_name = fs::path(file.path()).filename().string(),
                               .per_tensor = placement.per_tensor,
                               .alignment = placement.alignment,
                               .names = names};
  if (!placement.only_larger && !placement.all_inside) {
    const Result<std::set<std::string>> locations = external_locations(file, plan.model());
    if (!locations) return locations.error();
    layout.per_old_file = locations->size() > 1;
  }
  for (;;) {
    BuiltModel built{.rope = {}, .external = ExternalFiles(layout), .counts = {}};
    ModelWriter writer(file, plan, elision, built.external, placement);
    Result<WireRope> rope = writer.model();
    if (!rope) return std::move(rope).error();
    built.rope = std::move(*rope);
    built.counts = writer.counts();
    if (built.rope.size() <= formats::onnx::max_message_bytes) return built;
    if (placement.inline_limit <= small_bytes || placement.all_inside) {
      return Error{.code = ErrorCode::unsupported,
                   .message = placement.all_inside
                                  ? "the model with its initializers would be larger than protobuf's limit of 2 GiB"
                                  : "the model would be larger than protobuf's limit of 2 GiB even without its "
                                    "initializers"};
    }
    placement.inline_limit = small_bytes;
  }
}

Result<void> write_model(const io::InputFile& file, const Model& old, BuiltModel model, const std::string& output,
                         const WriteOptions& options, const Rebuild& rebuild) {
  const auto go_on = [&] { return !options.on_progress || options.on_progress(); };
  if (!go_on()) return cancelled();
  const Result<std::set<std::string>> locations = external_locations(file, old);
  if (!locations) return locations.error();
  if (Result<void> apart = check_apart_from_data(file.path(), *locations, output); !apart) return apart;
  if (!options.dry_run) {
    if (Result<void> free = io::OutputFile::check_place(output, options.overwrite); !free) return free;
  }
  const Result<io::Folder> folder = io::Folder::open(folder_of(output).string());
  if (!folder) return folder.error();
  std::optional<io::StagingFolder> stage;
  std::optional<io::Folder> staged;
  std::string made = output;
  if (options.check) {
    Result<io::StagingFolder> created = io::StagingFolder::create(output);
    if (!created) return std::move(created).error();
    Result<io::Folder> opened = io::Folder::open(created->path());
    if (!opened) return std::move(opened).error();
    made = (fs::path(created->path()) / fs::path(output).filename()).string();
    stage.emplace(std::move(*created));
    staged.emplace(std::move(*opened));
  }

  DataFiles data(*folder, staged ? &*staged : nullptr);
  for (const ExternalFiles::File& external : model.external.files()) {
    if (Result<void> written = data.write(file, external, go_on); !written) return written;
  }
  if (!data.new_names().empty()) {
    Result<BuiltModel> renamed = rebuild(data.new_names());
    if (!renamed) return std::move(renamed).error();
    model = std::move(*renamed);
  }
  if (!data.written().empty()) model.rope.text(encode_data_record(data.written()));
  Result<io::OutputFile> target = write_message(file, model.rope, made, options, go_on);
  if (!target) return std::move(target).error();
  if (options.check) {
    if (Result<void> committed = target->commit(); !committed) return committed;
    if (Result<void> right = options.check(made); !right) return right;
    if (options.dry_run) return {};
    target = io::OutputFile::adopt(made, output, options.overwrite);
    if (!target) return std::move(target).error();
  }
  const Surroundings around = look_around(file, *locations, output);
  if (!go_on()) return cancelled();
  if (Result<void> placed = data.place(); !placed) return placed;
  if (!go_on()) return cancelled();
  if (Result<void> committed = target->commit(); !committed) return committed;
  data.keep();

  remove_old_data(*folder, around.old_data, around.in_use);
  return {};
}

}  // namespace tensorcast::models::onnx
