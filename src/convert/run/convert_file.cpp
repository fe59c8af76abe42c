// SPDX-License-Identifier: Apache-2.0
// Converts a file: plan, convert into a temporary, verify, rename.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "cast/conversion.hpp"
#include "convert/plan/conversion_record.hpp"
#include "convert/plan/file_plan.hpp"
#include "convert/plan/mix_rules.hpp"
#include "convert/plan/respelled_plan.hpp"
#include "convert/plan/scale_record.hpp"
#include "convert/run/config_beside.hpp"
#include "convert/run/convert_reader.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/quantized_losses.hpp"
#include "convert/run/transfer.hpp"
#include "convert/run/verify.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "io/output_file.hpp"
#include "io/parent_folders.hpp"
#include "io/system_calls.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layer/decoded_reader.hpp"
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

Result<const Format*> output_format_of(const ConvertRequest& request) {
  return request.output_format.empty() ? formats::format_for_output(request.output)
                                       : file_conversion::output_format(request.output, request.output_format);
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

Result<bool> verify_output(const ConvertRequest& request, const Plan& plan, OpenedInput& input, const Format& format,
                           io::OutputFile& output, ProgressMeter& progress) {
  TRY(output.sync());
  Result<OpenedInput> written = file_conversion::open_input(output.temporary_path(), std::string(format.name),
                                                            read_back_options(request, plan, format));
  if (!written) {
    written.error().file = output.path();
    return std::move(written).error();
  }
  written->file->dont_need(0, written->file->size());  // reads from the disk instead of cached pages, if possible
  Result<bool> verified = file_conversion::verify(request, plan.in_layout(), *input.reader, *written->reader, progress);
  if (!verified && verified.error().file == output.temporary_path()) verified.error().file = output.path();
  return verified;
}

// A new output has the permissions of its input, unless that is a stream.
void keep_mode(const OpenedInput& input, io::OutputFile& output) {
  const bool stream = input.file == nullptr || io::names_descriptor(input.file->path());
  if (!stream && !output.replaces() && input.file->mode() != 0) output.set_mode(input.file->mode());
}

// Returns the entries whose keys `others` lacks: a GGUF that has a record already keeps its own.
formats::Metadata entries_beyond(const formats::Metadata& metadata, const formats::Metadata& others) {
  formats::Metadata beyond;
  for (const auto& entry : metadata) {
    const auto has_key = [&](const auto& other) { return other.first == entry.first; };
    if (std::ranges::none_of(others, has_key)) beyond.push_back(entry);
  }
  return beyond;
}

// A file that is only looked at is not in the folder of the output, which may be read-only.
std::string derived_path(const std::string& output) {
  return std::filesystem::temp_directory_path() / std::filesystem::path(output).filename();
}

// Runs everything after the plan. `outcome` has the plan's tensors. `respelled`: the input's reader, if it writes
// layers.
Result<ConvertOutcome> execute(const ConvertRequest& request, const Plan& plan, OpenedInput& input,
                               quantized::RespelledReader* respelled, const Format& format, ConvertOutcome outcome,
                               const file_conversion::Derivation* derivation) {
  const std::uint64_t bytes = plan.bytes_in() + plan.bytes_out();
  ProgressMeter progress(request.on_progress, request.verify ? 2 * bytes : bytes);
  // Before anything is created, so that the caller can be ready to cancel.
  if (!progress.report()) return in_file(request.output, cancelled());
  io::ParentFolders folders;
  if (request.parents && derivation == nullptr) folders = TRY(io::ParentFolders::create(request.output));
  Result<io::OutputFile> output = derivation == nullptr ? io::OutputFile::create(request.output, request.overwrite)
                                                        : io::OutputFile::create(derived_path(request.output), true);
  if (!output) {
    if (output.error().system_error == ENOENT) output.error().hint = "`parents` creates it";
    return std::move(output).error();
  }
  keep_mode(input, *output);
  std::optional<io::OutputFile> other_data;
  if (!outcome.other_data.empty() && derivation == nullptr) {
    other_data = TRY(io::OutputFile::create(outcome.other_data, request.overwrite));
    keep_mode(input, *other_data);
    const std::string_view json = input.reader->other_data();
    TRY(other_data->append(std::as_bytes(std::span(json))));
  }
  TRY(output->reserve(plan.bytes_out()));

  std::vector<const PlannedTensor*> written;
  for (const PlannedTensor& tensor : plan.tensors) written.push_back(&tensor);
  formats::Metadata metadata = plan.metadata;
  file_conversion::record_scale(written, metadata);
  file_conversion::ConversionRecorder recorder(request);
  for (const PlannedTensor& tensor : plan.tensors) recorder.add(tensor);
  recorder.write(metadata, format, derivation == nullptr ? std::string() : derivation->version);
  const formats::WriteOptions options{.metadata = metadata,
                                      .added = entries_beyond(metadata, plan.metadata),
                                      .source_format = std::string(input.format->name),
                                      .compressed = input.reader->compressed(),
                                      .quantizes = respelled != nullptr,
                                      .file_type = TRY(file_conversion::file_type_of_mix(request)),
                                      .native_metadata = input.reader->native_metadata()};
  const std::vector<const PlannedTensor*> ordered = plan.in_layout();
  std::vector<formats::TensorInfo> targets;
  for (const PlannedTensor* tensor : ordered) targets.push_back(tensor->target);
  Result<std::unique_ptr<formats::Writer>> writer = format.create(*output, targets, options);
  if (!writer) return in_file(request.output, std::move(writer).error());

  Result<file_conversion::TransferOutcome> transferred =
      file_conversion::transfer(request, ordered, *input.reader, **writer, progress);
  if (!transferred) return in_file(request.input, std::move(transferred).error());
  if (transferred->cancelled) return in_file(request.output, cancelled());
  if (respelled != nullptr) {
    Result<void> measured = file_conversion::add_quantized_losses(request, ordered, *respelled, *transferred);
    if (!measured) return in_file(request.input, std::move(measured).error());
  }
  if (auto finished = (*writer)->finish(); !finished) return in_file(request.output, std::move(finished).error());

  if (derivation != nullptr) {
    TRY(derivation->look(output->temporary_path()));
    return outcome;
  }
  if (request.verify) {
    const Result<bool> verified = verify_output(request, plan, input, format, *output, progress);
    if (!verified) return in_file(request.output, verified.error());
    if (!*verified) return in_file(request.output, cancelled());
    outcome.verified = true;
  }
  TRY(output->sync());  // may take long
  if (!progress.report()) return in_file(request.output, cancelled());
  std::error_code ignored;
  const bool replaced = other_data && std::filesystem::exists(outcome.other_data, ignored);
  if (other_data) TRY(other_data->commit());
  if (auto committed = output->commit(); !committed) {
    if (other_data && !replaced) std::filesystem::remove(outcome.other_data, ignored);
    return std::move(committed).error();
  }
  folders.keep();
  for (std::size_t i = 0; i < ordered.size(); ++i) transferred->move_to(outcome.tensors[plan.layout[i]], i);
  outcome.bytes_read = input.file == nullptr ? plan.bytes_in() : input.file->size();
  outcome.bytes_written = output->size();
  return outcome;
}

Result<ConvertOutcome> convert_opened(const ConvertRequest& request,
                                      const file_conversion::Derivation* derivation = nullptr) {
  if (!request.filter.skip_files.empty()) {
    return in_file(request.input, invalid("`skip_files` is for checkpoints, and the input is a file"));
  }
  const Result<const Format*> output = output_format_of(request);  // an error is told after those of the input
  OpenedInput input = TRY(file_conversion::open_model_file(
      request.input, request.input_format,
      {.raw = request.raw, .from = request.from, .copied_to = copied_to(request, output)}, request.source));
  file_conversion::add_accepted(request.filter.accept, input.configs);
  return file_conversion::convert_reader(request, input, derivation);
}

}  // namespace

Result<ConvertOutcome> convert_file(const ConvertRequest& request) {
  return guarded(request.input, [&] { return convert_opened(request); });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast

namespace tensorcast::file_conversion {

namespace {

// Puts readers around that of the input, which have decoded weights and written tensors, too; sets the sources of the
// plan's tensors. Returns the reader of written tensors; null: there are none.
quantized::RespelledReader* read_layers(Plan& plan, const ConversionRun& run, OpenedInput& input) {
  const bool decodes = std::ranges::any_of(plan.tensors, &PlannedTensor::decodes);
  if (!decodes && !plan.respelling.any()) return nullptr;
  formats::Reader* inner = input.reader.get();
  input.encoded.push_back(std::move(input.reader));
  if (decodes) {
    auto decoded = std::make_unique<quantized::DecodedReader>(*inner, plan.layers);
    for (PlannedTensor& tensor : plan.tensors) {
      if (tensor.decodes()) add_rounded_source(tensor, tensor.decoded()->layer, *decoded);
    }
    input.reader = std::move(decoded);
    if (!plan.respelling.any()) return nullptr;
    inner = input.reader.get();
    input.encoded.push_back(std::move(input.reader));
  }
  auto reader = std::make_unique<quantized::RespelledReader>(*inner, run.execution);
  if (measures_losses(run)) reader->measure_losses();
  std::vector<std::shared_ptr<const quantized::RespelledLayer>> shared(plan.respelling.layers.size());
  for (PlannedTensor& tensor : plan.tensors) {
    const Rewritten* const fate = tensor.rewritten();
    if (fate == nullptr) continue;
    auto& layer = shared[fate->layer];
    if (layer == nullptr) layer = std::make_shared<quantized::RespelledLayer>(plan.respelling.layers[fate->layer]);
    std::vector<quantized::Layer> siblings;
    for (const std::size_t sibling : layer->siblings) siblings.push_back(plan.layers[sibling]);
    tensor.source = reader->add(plan.layers[fate->layer], std::move(siblings), layer, tensor.target, fate->place);
  }
  quantized::RespelledReader* const written = reader.get();
  input.reader = std::move(reader);
  return written;
}

}  // namespace

Result<ConvertOutcome> derive_file(const ConvertRequest& request, const Derivation& derivation) {
  return convert_opened(request, &derivation);
}

Result<ConvertOutcome> convert_reader(const ConvertRequest& asked, OpenedInput& input, const Derivation* derivation) {
  TRY(check_execution(asked.execution));
  const Format* format = TRY(output_format_of(asked));
  Result<ConvertRequest> mixed = with_mix(asked, *input.reader, *input.format, *format);
  if (!mixed) return in_file(asked.input, std::move(mixed).error());
  const ConvertRequest& request = *mixed;
  const quantized::FoundLayers layers = layers_of(input);
  Result<Plan> plan = make_plan(request, *input.reader, *input.format, *format, input.claim, layers, input.configs);
  if (!plan) return in_file(request.input, plan.error());
  quantized::RespelledReader* const respelled = read_layers(*plan, request, input);
  ConvertOutcome outcome = outcome_of(*plan, *input.format, *format);
  outcome.warnings = input.reader->warnings();
  outcome.warnings.insert(outcome.warnings.end(), plan->warnings.begin(), plan->warnings.end());
  outcome.warnings.insert(outcome.warnings.end(), plan->respelling.warnings.begin(), plan->respelling.warnings.end());
  if (derivation == nullptr) TRY(check_config_beside(request.output, *format, *plan, outcome.warnings));
  if (!input.reader->other_data().empty() && format->many_tensors) {
    outcome.other_data = request.output + ".json";
    const PathUse others[] = {{.path = request.input, .noun = "input"}, {.path = request.output, .noun = "output"}};
    const PathUse written{.path = outcome.other_data, .noun = "checkpoint's other data"};
    if (derivation == nullptr) TRY(check_apart(written, others));
  }
  if (request.dry_run) return outcome;
  return execute(request, *plan, input, respelled, *format, std::move(outcome), derivation);
}

}  // namespace tensorcast::file_conversion
