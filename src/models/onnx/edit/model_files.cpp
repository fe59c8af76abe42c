// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/model_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
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
  io::OutputFile target = TRY(io::OutputFile::create(output, options.overwrite));
  TRY(target.reserve(rope.size()));
  TRY(rope.write(file, target, go_on));
  TRY(check_new_model(file, target.temporary_path()));
  TRY(target.sync());
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
    const std::set<std::string> locations = TRY(external_locations(file, plan.model()));
    layout.per_old_file = locations.size() > 1;
  }
  for (;;) {
    BuiltModel built{.rope = {}, .external = ExternalFiles(layout), .counts = {}};
    ModelWriter writer(file, plan, elision, built.external, placement);
    built.rope = TRY(writer.model());
    built.counts = writer.counts();
    if (built.rope.size() <= formats::onnx::max_message_bytes) return built;
    if (placement.inline_limit <= small_bytes || placement.all_inside) {
      return unsupported(placement.all_inside
                             ? "the model with its initializers would be larger than protobuf's limit of 2 GiB"
                             : "the model would be larger than protobuf's limit of 2 GiB even without its "
                               "initializers");
    }
    placement.inline_limit = small_bytes;
  }
}

Result<void> write_model(const io::InputFile& file, const Model& old, BuiltModel model, const std::string& output,
                         const WriteOptions& options, const Rebuild& rebuild) {
  const auto go_on = [&] { return !options.on_progress || options.on_progress(); };
  if (!go_on()) return cancelled();
  const std::set<std::string> locations = TRY(external_locations(file, old));
  TRY(check_apart_from_data(file.path(), locations, output));
  if (!options.dry_run) {
    TRY(io::OutputFile::check_place(output, options.overwrite));
  }
  const io::Folder folder = TRY(io::Folder::open(folder_of(output).string()));
  std::optional<io::StagingFolder> stage;
  std::optional<io::Folder> staged;
  std::string made = output;
  if (options.check) {
    io::StagingFolder created = TRY(io::StagingFolder::create(output));
    io::Folder opened = TRY(io::Folder::open(created.path()));
    made = (fs::path(created.path()) / fs::path(output).filename()).string();
    stage.emplace(std::move(created));
    staged.emplace(std::move(opened));
  }

  DataFiles data(folder, staged ? &*staged : nullptr);
  for (const ExternalFiles::File& external : model.external.files()) {
    TRY(data.write(file, external, go_on));
  }
  if (!data.new_names().empty()) {
    model = TRY(rebuild(data.new_names()));
  }
  if (!data.written().empty()) model.rope.text(encode_data_record(data.written()));
  io::OutputFile target = TRY(write_message(file, model.rope, made, options, go_on));
  if (options.check) {
    TRY(target.commit());
    TRY(options.check(made));
    if (options.dry_run) return {};
    target = TRY(io::OutputFile::adopt(made, output, options.overwrite));
  }
  const Surroundings around = look_around(file, locations, output);
  if (!go_on()) return cancelled();
  TRY(data.place());
  if (!go_on()) return cancelled();
  TRY(target.commit());
  data.keep();

  remove_old_data(folder, around.old_data, around.in_use);
  return {};
}

}  // namespace tensorcast::models::onnx
