#include "models/onnx/precision/model_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "io/output_file.hpp"
#include "io/staging_folder.hpp"
#include "models/onnx/precision/external_locations.hpp"
#include "models/onnx/precision/model_check.hpp"

namespace tensorcast::models::onnx::precision {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t small_bytes = 1024;

// Brings back what a committed file replaced, unless keep() is called.
class Rollback {
 public:
  explicit Rollback(std::string path) : path_(std::move(path)) {
    std::error_code failed;
    std::string saved = path_ + ".tcast-old";
    fs::remove(saved, failed);
    fs::create_hard_link(path_, saved, failed);
    if (!failed) saved_ = std::move(saved);
    existed_ = fs::exists(path_, failed);
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  ~Rollback() {
    std::error_code failed;
    if (committed_ && !kept_) {
      if (!saved_.empty()) {
        fs::rename(saved_, path_, failed);
      } else if (!existed_) {
        fs::remove(path_, failed);
      }
    }
    if (!saved_.empty()) fs::remove(saved_, failed);
  }
  void committed() noexcept { committed_ = true; }
  void keep() noexcept { kept_ = true; }

 private:
  std::string path_;
  std::string saved_;
  bool existed_ = false;
  bool committed_ = false;
  bool kept_ = false;
};

// Commits files one after the other. Brings back what they replaced, unless finish() commits the last one.
class Commits {
 public:
  Result<void> commit(io::OutputFile& file) {
    auto rollback = std::make_unique<Rollback>(file.path());
    Result<void> committed = file.commit();
    if (!committed) return committed;
    rollback->committed();
    rollbacks_.push_back(std::move(rollback));
    return committed;
  }
  Result<void> finish(io::OutputFile& last) {
    Result<void> committed = last.commit();
    for (const auto& rollback : rollbacks_) {
      if (committed) rollback->keep();
    }
    return committed;
  }

 private:
  std::vector<std::unique_ptr<Rollback>> rollbacks_;
};

Error cancelled() { return Error{.code = ErrorCode::cancelled, .message = "cancelled; nothing was written"}; }

Result<void> write_files(const io::InputFile& file, const BuiltModel& model, const std::string& output,
                         const WriteOptions& options) {
  const auto go_on = [&] { return !options.on_progress || options.on_progress(); };
  if (!go_on()) return cancelled();
  Result<io::OutputFile> target = io::OutputFile::create(output, options.overwrite);
  if (!target) return std::move(target).error();
  if (Result<void> reserved = target->reserve(model.rope.size()); !reserved) return reserved;
  if (Result<void> written = model.rope.write(file, *target, go_on); !written) return written;
  if (Result<void> right = check_new_model(file, target->temporary_path()); !right) return right;
  if (Result<void> synced = target->sync(); !synced) return synced;

  Commits commits;
  for (const ExternalFiles::File& external : model.external.files()) {
    const fs::path place = fs::path(output).parent_path() / external.location;
    Result<io::OutputFile> data = io::OutputFile::create(place.string(), options.overwrite);
    if (!data) return std::move(data).error();
    if (Result<void> written = external.contents.write(file, *data, go_on); !written) return written;
    if (Result<void> committed = commits.commit(*data); !committed) return committed;
  }
  if (!go_on()) return cancelled();
  return commits.finish(*target);
}

}  // namespace

Result<BuiltModel> build_model(const io::InputFile& file, const PrecisionPlan& plan, const CastElision& elision,
                               TensorPlacement placement, const std::string& output) {
  ExternalFiles::Layout layout{.model_name = fs::path(output).filename().string(),
                               .old_name = fs::path(file.path()).filename().string(),
                               .per_tensor = placement.per_tensor,
                               .alignment = placement.alignment};
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

Result<void> write_model(const io::InputFile& file, const BuiltModel& model, const std::string& output,
                         const WriteOptions& options) {
  const fs::path folder = fs::path(output).parent_path();
  const auto& files = model.external.files();
  // A file that is replaced may be one that the next is made from.
  const bool replaces = files.size() > 1 && std::any_of(files.begin(), files.end(), [&](const auto& external) {
                          std::error_code ignored;
                          return fs::exists(folder / external.location, ignored);
                        });
  if (!options.check && !replaces) return write_files(file, model, output, options);
  if (!options.dry_run) {  // a file that is in the way is an error before the work
    for (const ExternalFiles::File& external : model.external.files()) {
      const std::string place = (folder / external.location).string();
      if (Result<void> free = io::OutputFile::check_place(place, options.overwrite); !free) return free;
    }
  }
  const Result<io::StagingFolder> stage = io::StagingFolder::create(output);
  if (!stage) return stage.error();
  const fs::path staged(stage->path());
  const std::string made = (staged / fs::path(output).filename()).string();
  if (Result<void> written = write_files(file, model, made, options); !written) return written;
  if (options.check) {
    if (Result<void> right = options.check(made); !right) return right;
  }
  if (options.dry_run) return {};
  if (options.on_progress && !options.on_progress()) return cancelled();

  Commits commits;
  for (const ExternalFiles::File& external : model.external.files()) {
    const std::string place = (folder / external.location).string();
    Result<io::OutputFile> data =
        io::OutputFile::adopt((staged / external.location).string(), place, options.overwrite);
    if (!data) return std::move(data).error();
    if (Result<void> committed = commits.commit(*data); !committed) return committed;
  }
  Result<io::OutputFile> target = io::OutputFile::adopt(made, output, options.overwrite);
  if (!target) return std::move(target).error();
  return commits.finish(*target);
}

}  // namespace tensorcast::models::onnx::precision
