#include "models/onnx/precision/model_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "models/onnx/precision/model_check.hpp"

namespace tensorcast::models::onnx::precision {
namespace {

constexpr std::uint64_t small_bytes = 1024;

// Brings back what a committed file replaced, unless keep() is called.
class Rollback {
 public:
  explicit Rollback(std::string path) : path_(std::move(path)) {
    std::error_code failed;
    std::string saved = path_ + ".tcast-old";
    std::filesystem::remove(saved, failed);
    std::filesystem::create_hard_link(path_, saved, failed);
    if (!failed) saved_ = std::move(saved);
    existed_ = std::filesystem::exists(path_, failed);
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  ~Rollback() {
    std::error_code failed;
    if (committed_ && !kept_) {
      if (!saved_.empty()) {
        std::filesystem::rename(saved_, path_, failed);
      } else if (!existed_) {
        std::filesystem::remove(path_, failed);
      }
    }
    if (!saved_.empty()) std::filesystem::remove(saved_, failed);
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

}  // namespace

Result<BuiltModel> build_model(const io::InputFile& file, const PrecisionPlan& plan, const CastElision& elision,
                               TensorPlacement placement, const std::string& output) {
  const std::string model_name = std::filesystem::path(output).filename().string();
  for (;;) {
    BuiltModel built{.rope = {}, .external = ExternalFiles(model_name, placement.per_tensor), .counts = {}};
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
                         bool overwrite) {
  Result<io::OutputFile> target = io::OutputFile::create(output, overwrite);
  if (!target) return std::move(target).error();
  if (Result<void> reserved = target->reserve(model.rope.size()); !reserved) return reserved;
  if (Result<void> written = model.rope.write(file, *target); !written) return written;
  if (Result<void> right = check_new_model(file, target->temporary_path()); !right) return right;
  if (model.external.files().empty()) return target->commit();

  if (Result<void> synced = target->sync(); !synced) return synced;
  const std::filesystem::path folder = std::filesystem::path(output).parent_path();
  std::vector<std::unique_ptr<Rollback>> rollbacks;
  for (const ExternalFiles::File& external : model.external.files()) {
    Result<io::OutputFile> data = io::OutputFile::create((folder / external.location).string(), overwrite);
    if (!data) return std::move(data).error();
    if (Result<void> written = external.contents.write(file, *data); !written) return written;
    auto rollback = std::make_unique<Rollback>(data->path());
    if (Result<void> committed = data->commit(); !committed) return committed;
    rollback->committed();
    rollbacks.push_back(std::move(rollback));
  }
  Result<void> committed = target->commit();
  for (const auto& rollback : rollbacks) {
    if (committed) rollback->keep();
  }
  return committed;
}

}  // namespace tensorcast::models::onnx::precision
