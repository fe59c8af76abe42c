// SPDX-License-Identifier: Apache-2.0
// Converts a file: plan, convert into a temporary, verify, rename.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "cast/conversion.hpp"
#include "convert/plan/conversion_record.hpp"
#include "convert/plan/file_plan.hpp"
#include "convert/plan/mix_rules.hpp"
#include "convert/run/convert_reader.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/shard_conversion.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "io/output_file.hpp"
#include "io/parent_folders.hpp"
#include "io/system_calls.hpp"
#include "quantized/choose/gguf_mix.hpp"
#include "quantized/layout/open_input.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "quantized/rewrite/respelled_reader.hpp"
#include "tensorcast/file.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using file_conversion::OpenedInput;
using file_conversion::Plan;
using file_conversion::PlannedTensor;
using file_conversion::ProgressMeter;
using formats::Format;

ConvertOutcome outcome_of(const Plan& plan, const Format& input, const Format& output) {
  ConvertOutcome outcome;
  outcome.input_format = input.name;
  outcome.output_format = output.name;
  for (const PlannedTensor& tensor : plan.tensors) outcome.tensors.push_back(file_conversion::planned_outcome(tensor));
  return outcome;
}

std::string_view copied_to(const ConvertRequest& request, const Result<const Format*>& output) {
  return output && request.filter.rename.empty() ? (*output)->name : std::string_view();
}

// The options to read the output back, also if the file alone does not name its types.
formats::ReadOptions read_back_options(const ConvertRequest& request, const Plan& plan, const Format& output) {
  formats::ReadOptions options{.copied_to = copied_to(request, &output)};
  if (plan.tensors.size() != 1) return options;
  const formats::TensorInfo& only = plan.tensors.front().target;
  options.raw = RawLayout{.dtype = only.dtype, .shape = only.shape};
  options.from = only.dtype;
  return options;
}

// A new output has the permissions of its input, unless that is a stream.
void keep_mode(const OpenedInput& input, io::OutputFile& output) {
  const bool stream = input.file == nullptr || io::names_descriptor(input.file->path());
  if (!stream && !output.replaces() && input.file->mode() != 0) output.set_mode(input.file->mode());
}

// Returns the entries whose keys `others` lacks: a GGUF that has a record already keeps its own.
formats::Metadata entries_beyond(const formats::Metadata& metadata, const formats::Metadata& others) {
  std::set<std::string_view> keys;
  for (const auto& [key, value] : others) keys.insert(key);
  formats::Metadata beyond = metadata;
  std::erase_if(beyond, [&](const auto& entry) { return keys.contains(entry.first); });
  return beyond;
}

// A file that is only looked at is not in the folder of the output, which may be read-only.
std::string derived_path(const std::string& output) {
  return std::filesystem::temp_directory_path() / std::filesystem::path(output).filename();
}

// Checks that a configuration in the folder of `path` will not contradict the file: loaders, and tcast, would read its
// weights as the configuration says. Adds a warning if the file's metadata describe what the configuration does not.
// Errors: unsupported: it names a quantization, and the file's layers are decoded, or quantized anew.
Result<void> check_config_beside(const std::string& path, const Format& format, const Plan& plan,
                                 std::vector<std::string>& warnings) {
  const bool decodes = std::ranges::any_of(plan.tensors, &PlannedTensor::decodes);
  if (&format != &formats::safetensors_format || io::names_descriptor(path)) return {};
  if (!decodes && !plan.respelling.any()) return {};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (const std::string claim = file_conversion::claim_beside(path); !claim.empty()) {
    return in_file(
        path, unsupported(fmt::format("in the folder of the output, {}, and the output's weights would be {}", claim,
                                      plan.respelling.any() ? plan.respelling.spelling + "'s" : "plain numbers"),
                          "name an output in another folder; or convert the folder, whose configuration then follows"));
  }
  const quantized::WrittenConfig& config = plan.respelling.config;
  std::error_code ignored;
  const std::string beside = (std::filesystem::path(folder) / "config.json").string();
  if (config.section.empty() || !config.metadata_key.empty() || !std::filesystem::is_regular_file(beside, ignored)) {
    return {};
  }
  warnings.push_back(fmt::format(
      "{} stays as it is, and only the output's metadata say that it is quantized: loaders of folders do not read them",
      beside));
  return {};
}

// A file that is converted, from its plan to the file that is written, and the one beside it of what no tensor holds.
class FileConversion final : public file_conversion::ShardOutput {
 public:
  // All outlive this. `outcome` has the plan's tensors.
  FileConversion(const ConvertRequest& request, Plan& plan, const OpenedInput& input, const Format& format,
                 const file_conversion::Derivation* derivation, ConvertOutcome outcome)
      : request_(request),
        plan_(plan),
        input_(input),
        format_(format),
        derivation_(derivation),
        outcome_(std::move(outcome)) {}

  Result<ConvertOutcome> run() {
    const std::vector<PlannedTensor*> tensors = plan_.in_layout();
    file_conversion::ShardConversion conversion(
        request_, tensors,
        TRY(file_conversion::ConversionSource::create(
            tensors, *input_.reader, [this](std::size_t layer) { return load(layer); }, request_.execution)));
    if (!TRY(conversion.run(*this))) return in_file(request_.output, cancelled());
    if (derivation_ != nullptr) {
      TRY(derivation_->look(file_->temporary_path()));
      return outcome_;
    }
    for (auto& [i, note] : conversion.take_notes()) note.move_to(outcome_.tensors[plan_.layout[i]]);
    outcome_.verified = request_.verify;
    outcome_.bytes_read = input_.file == nullptr ? plan_.bytes_in() : input_.file->size();
    outcome_.bytes_written = file_->size();
    return outcome_;
  }

  Result<formats::Writer*> begin(ProgressMeter& progress) override {
    // Before anything is created, so that the caller can be ready to cancel.
    if (!progress.report()) return cancelled();
    TRY(create());
    TRY(file_->reserve(plan_.bytes_out()));
    std::vector<formats::TensorInfo> targets;
    for (const PlannedTensor* tensor : plan_.in_layout()) targets.push_back(tensor->target);
    const formats::Metadata metadata = this->metadata();
    const std::uint32_t file_type =
        request_.mix.empty() ? 0 : quantized::file_type_of(*TRY(quantized::find_mix(request_.mix)));
    writer_ = TRY(format_.create(*file_, targets,
                                 {.metadata = metadata,
                                  .added = entries_beyond(metadata, plan_.metadata),
                                  .source_format = std::string(input_.format->name),
                                  .compressed = input_.reader->compressed(),
                                  .quantizes = plan_.respelling.any(),
                                  .file_type = file_type,
                                  .native_metadata = input_.reader->native_metadata()}));
    return writer_.get();
  }

  Result<formats::Reader*> read_back() override {
    TRY(file_->sync());
    Result<OpenedInput> written = file_conversion::open_input(file_->temporary_path(), std::string(format_.name),
                                                              read_back_options(request_, plan_, format_));
    if (!written) return at_output(std::move(written).error());
    written_ = *std::move(written);
    written_.file->dont_need(0, written_.file->size());  // reads from the disk instead of cached pages, if possible
    return written_.reader.get();
  }

  Result<void> commit(ProgressMeter& progress) override {
    if (derivation_ != nullptr) return {};
    TRY(file_->sync());  // may take long
    if (!progress.report()) return cancelled();
    std::error_code ignored;
    const bool replaced = other_data_ && std::filesystem::exists(outcome_.other_data, ignored);
    if (other_data_) TRY(other_data_->commit());
    if (auto committed = file_->commit(); !committed) {
      if (other_data_ && !replaced) std::filesystem::remove(outcome_.other_data, ignored);
      return committed;
    }
    folders_.keep();
    return {};
  }

  [[nodiscard]] Error at_source(Error error) const override { return in_file(request_.input, std::move(error)); }
  [[nodiscard]] Error at_output(Error error) const override {
    if (file_ && error.file == file_->temporary_path()) error.file = file_->path();
    return in_file(request_.output, std::move(error));
  }

 private:
  Result<void> create() {
    if (derivation_ != nullptr) {
      file_ = TRY(io::OutputFile::create(derived_path(request_.output), true));
      return {};
    }
    if (request_.parents) folders_ = TRY(io::ParentFolders::create(request_.output));
    Result<io::OutputFile> file = io::OutputFile::create(request_.output, request_.overwrite);
    if (!file) {
      if (file.error().system_error == ENOENT) file.error().hint = "`parents` creates it";
      return std::move(file).error();
    }
    file_ = *std::move(file);
    keep_mode(input_, *file_);
    if (outcome_.other_data.empty()) return {};
    other_data_ = TRY(io::OutputFile::create(outcome_.other_data, request_.overwrite));
    keep_mode(input_, *other_data_);
    const std::string_view json = input_.reader->other_data();
    return other_data_->append(std::as_bytes(std::span(json)));
  }

  [[nodiscard]] formats::Metadata metadata() const {
    file_conversion::ConversionRecorder recorder(request_);
    for (const PlannedTensor& tensor : plan_.tensors) recorder.add(tensor);
    formats::Metadata metadata = plan_.metadata;
    recorder.write(metadata, format_, derivation_ == nullptr ? std::string() : derivation_->version);
    return metadata;
  }

  [[nodiscard]] Result<quantized::RespelledSource> load(std::size_t index) const {
    quantized::RespelledSource source{.layer = plan_.layers[index], .siblings = {}, .becomes = {}};
    if (!plan_.respelling.any()) return source;
    const quantized::RespelledLayer& becomes = plan_.respelling.layers[index];
    for (const std::size_t sibling : becomes.siblings) source.siblings.push_back(plan_.layers[sibling]);
    source.becomes = {std::shared_ptr<void>(), &becomes};  // the plan's
    return source;
  }

  const ConvertRequest& request_;
  Plan& plan_;
  const OpenedInput& input_;
  const Format& format_;
  const file_conversion::Derivation* derivation_;
  ConvertOutcome outcome_;
  io::ParentFolders folders_;
  std::optional<io::OutputFile> file_, other_data_;
  std::unique_ptr<formats::Writer> writer_;
  OpenedInput written_;
};

Result<ConvertOutcome> convert_opened(const ConvertRequest& request,
                                      const file_conversion::Derivation* derivation = nullptr) {
  if (!request.filter.skip_files.empty()) {
    return in_file(request.input, invalid("`skip_files` is for checkpoints, and the input is a file"));
  }
  if (request.max_shard_bytes != 0) {
    return in_file(request.input, invalid("`max_shard_size` is for checkpoints, and the input is a file",
                                          "give the folder that it is in: files beside it can be left out"));
  }
  const Result<const Format*> output =
      file_conversion::output_format_of(request);  // an error is told after those of the input
  OpenedInput input = TRY(file_conversion::open_model_file(
      request.input, request.input_format,
      {.raw = request.raw, .from = request.from, .copied_to = copied_to(request, output)}, request.source));
  file_conversion::add_accepted(request.filter.accept, input.configs);
  input.claim = file_conversion::claim_of_metadata(input.reader->metadata());
  if (input.claim.empty() && input.format->many_tensors) input.claim = file_conversion::claim_beside(request.input);
  return file_conversion::convert_reader(request, input, *TRY(output), derivation);
}

}  // namespace

Result<ConvertOutcome> convert_file(const ConvertRequest& request) {
  return guarded(request.input, [&] { return convert_opened(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::file_conversion {

Result<const formats::Format*> output_format_of(const ConvertRequest& request) {
  return request.output_format.empty() ? formats::format_for_output(request.output)
                                       : output_format(request.output, request.output_format);
}

Result<ConvertOutcome> derive_file(const ConvertRequest& request, const Derivation& derivation) {
  return convert_opened(request, &derivation);
}

Result<ConvertOutcome> convert_reader(const ConvertRequest& asked, const OpenedInput& input, const Format& format,
                                      const Derivation* derivation) {
  TRY(check_execution(asked.execution));
  Result<ConvertRequest> mixed = with_mix(asked, *input.reader, *input.format, format);
  if (!mixed) return in_file(asked.input, std::move(mixed).error());
  const ConvertRequest& request = *mixed;
  Result<Plan> plan = make_plan(request, input, format);
  if (!plan) return in_file(request.input, plan.error());
  ConvertOutcome outcome = outcome_of(*plan, *input.format, format);
  outcome.warnings = input.reader->warnings();
  outcome.warnings.insert(outcome.warnings.end(), plan->warnings.begin(), plan->warnings.end());
  outcome.warnings.insert(outcome.warnings.end(), plan->respelling.warnings.begin(), plan->respelling.warnings.end());
  if (derivation == nullptr) TRY(check_config_beside(request.output, format, *plan, outcome.warnings));
  if (!input.reader->other_data().empty() && format.many_tensors) {
    outcome.other_data = request.output + ".json";
    const PathUse others[] = {{.path = request.input, .noun = "input"}, {.path = request.output, .noun = "output"}};
    const PathUse written{.path = outcome.other_data, .noun = "checkpoint's other data"};
    if (derivation == nullptr) TRY(check_apart(written, others));
  }
  if (request.dry_run) return outcome;
  return FileConversion(request, *plan, input, format, derivation, std::move(outcome)).run();
}

}  // namespace tensorcast::file_conversion
