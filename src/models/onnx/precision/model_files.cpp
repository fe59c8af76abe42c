#include "models/onnx/precision/model_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

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
  const std::string location = std::filesystem::path(output).filename().string() + ".data";
  for (;;) {
    BuiltModel built{.rope = {}, .external = ExternalFile(location), .counts = {}};
    ModelWriter writer(file, plan, elision, built.external, placement);
    Result<WireRope> rope = writer.model();
    if (!rope) return std::move(rope).error();
    built.rope = std::move(*rope);
    built.counts = writer.counts();
    if (built.rope.size() <= formats::onnx::max_message_bytes) return built;
    if (placement.inline_limit <= small_bytes) {
      return Error{.code = ErrorCode::unsupported,
                   .message = "the model would be larger than protobuf's limit of 2 GiB even without its initializers"};
    }
    placement.inline_limit = small_bytes;
  }
}

Result<void> write_model(const io::InputFile& file, const BuiltModel& model, const std::string& output,
                         bool overwrite) {
  Result<io::OutputFile> target = io::OutputFile::create(output, overwrite);
  if (!target) return std::move(target).error();
  std::optional<io::OutputFile> data;
  if (!model.external.empty()) {
    Result<io::OutputFile> created = io::OutputFile::create(output + ".data", overwrite);
    if (!created) return std::move(created).error();
    data.emplace(std::move(*created));
    if (Result<void> written = model.external.write(file, *data); !written) return written;
  }
  if (Result<void> reserved = target->reserve(model.rope.size()); !reserved) return reserved;
  if (Result<void> written = model.rope.write(file, *target); !written) return written;
  if (!data) return target->commit();

  if (Result<void> synced = target->sync(); !synced) return synced;
  Rollback rollback(data->path());
  if (Result<void> committed = data->commit(); !committed) return committed;
  rollback.committed();
  Result<void> committed = target->commit();
  if (committed) rollback.keep();
  return committed;
}

}  // namespace tensorcast::models::onnx::precision
