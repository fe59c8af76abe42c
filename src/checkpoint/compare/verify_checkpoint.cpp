// SPDX-License-Identifier: Apache-2.0
// Reads a converted checkpoint again: hashes, and every tensor against its source.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "checkpoint/compare/compare_model.hpp"
#include "checkpoint/compare/config_check.hpp"
#include "checkpoint/compare/differences.hpp"
#include "checkpoint/compare/verify_quantized.hpp"
#include "checkpoint/source/json_tree.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "checkpoint/store/file_name.hpp"
#include "convert/plan/conversion_record.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/select/output_names.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "formats/format.hpp"
#include "io/input_file.hpp"
#include "quantized/detect/layer_summary.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "quantized/names/module_name.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using namespace checkpoint;

constexpr std::uint64_t max_sums_bytes = std::uint64_t{256} << 20;

// Parses SHA256SUMS as sha256sum writes it.
Result<std::vector<DigestedFile>> parse_sums(const std::string& text, const std::string& path) {
  constexpr std::size_t digits = 64;
  std::vector<DigestedFile> sums;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const bool escaped = line.starts_with('\\');
    if (escaped) line.remove_prefix(1);
    const bool valid =
        line.size() > digits + 2 && line[digits] == ' ' && (line[digits + 1] == ' ' || line[digits + 1] == '*');
    if (!valid) return in_file(path, parse_error(fmt::format("line {} is not a hash and a name", sums.size() + 1)));
    DigestedFile sum{.name = {}, .sha256 = std::string(line.substr(0, digits))};
    const std::string_view name = line.substr(digits + 2);
    for (std::size_t i = 0; i < name.size(); ++i) {
      const bool pair = escaped && name[i] == '\\' && i + 1 < name.size();
      if (pair) ++i;
      sum.name += !pair ? name[i] : name[i] == 'n' ? '\n' : name[i] == 'r' ? '\r' : name[i];
    }
    TRY(check_file_name(sum.name, path));
    sums.push_back(std::move(sum));
  }
  return sums;
}

class Verification {
 public:
  explicit Verification(const VerifyRequest& request)
      : request_(request), has_own_options_(request.options != CastOptions{}) {}

  Result<VerifyOutcome> run() {
    output_ = TRY(read_source(request_.checkpoint));
    const std::string sums_path = output_.folder + "/" + sums_name;
    const bool has_sums = is_file(sums_path) && is_folder(request_.checkpoint);
    if (!has_sums && request_.against.empty()) {
      if (is_file(sums_path)) {
        return in_file(request_.checkpoint, invalid("SHA256SUMS is of the folder's files together",
                                                    fmt::format("name the folder: {}", output_.folder)));
      }
      return in_file(output_.folder,
                     invalid("the folder has no SHA256SUMS to compare with",
                             "`against` compares its tensors with the checkpoint that it was converted from"));
    }
    if (has_sums) TRY(check_hashes(sums_path));
    TRY(check_json());
    if (!request_.against.empty()) {
      for (const SourceShard& shard : output_.shards) use_record(shard.header.metadata);
      TRY(check_tensors());
    }
    for (const SourceModel& model : output_.models) {
      OpenedModel opened = open_model(output_, model);
      const quantized::FoundLayers found = opened.layers();
      TRY(check_config(opened, found, model));
      add_warnings(opened, found, name_prefix(model));
    }
    return outcome_;
  }

  // A GGUF file, whose original is a file or a model of a checkpoint.
  Result<VerifyOutcome> run_file() {
    if (request_.against.empty()) {
      return in_file(request_.checkpoint,
                     invalid("a GGUF file has no hashes to compare with",
                             "`against` compares its tensors with those that it was converted from"));
    }
    OpenedModel output = TRY(open_model_file(request_.checkpoint));
    file_conversion::OutputNames written = TRY(file_conversion::OutputNames::compile(request_.filter));
    OpenedModel source = TRY(open_only_model(request_.against, request_.filter, written));
    const formats::Metadata& metadata = output.input.reader->metadata();
    const formats::Metadata* const sources[] = {&source.input.reader->metadata()};
    use_record(metadata);
    file_conversion::RecordedScales scales;
    scales.add(metadata, sources, output.input.reader->tensors());
    count(TRY(in_file(request_.checkpoint,
                      compare_model(request_, output, source, written, has_own_options_ ? nullptr : &scales))),
          "");
    TRY(in_file(request_.checkpoint, find_recipes(written)));
    add_warnings(output, output.layers(), "");
    return outcome_;
  }

 private:
  // Takes the options of casts that the output's metadata record, unless the request has some. A file that was copied
  // from the source has the source's record, whose scale is not one of this conversion: RecordedScales has those.
  void use_record(const formats::Metadata& metadata) {
    std::optional<file_conversion::ConversionRecord> record;
    file_conversion::add_record(metadata, record);
    if (!record || has_own_options_ || request_.options != CastOptions{}) return;
    request_.options = record->request.options;
    request_.options.scale = 1.0;
  }

  [[nodiscard]] Result<void> check_differences() {
    return first_difference(std::exchange(differences_, {}), output_.folder);
  }

  // Scales that loaders stumble over, of what is quantized in the output.
  void add_warnings(OpenedModel& output, const quantized::FoundLayers& found, const std::string& prefix) {
    if (!found.any() && !found.refusal.empty()) return;
    if (const std::string problem = quantized::problem_warning(found); !problem.empty()) {
      outcome_.warnings.push_back(prefix + problem);
    }
    for (std::string& warning : quantized::scale_remarks(found, *output.input.reader).warnings) {
      outcome_.warnings.push_back(prefix + std::move(warning));
    }
  }

  // Configurations must be JSON. Without one, codes are compared as numbers.
  Result<void> check_json() const {
    for (const ListedFile& file : output_.others) {
      if (!file_conversion::may_claim_quantization(last_component(file.name))) continue;
      const StoredFile opened = TRY(open_source(output_.folder, file.name));
      const std::string text = TRY(read_text(opened, max_config_bytes));
      TRY(in_file(opened.path(), JsonTree::parse(text)));
    }
    return {};
  }

  // The configuration must say of each module what its tensors are, unless that of the source did not either.
  Result<void> check_config(const OpenedModel& output, const quantized::FoundLayers& layers, const SourceModel& model) {
    const bool compares = !request_.against.empty();
    const std::vector<Contradiction> found =
        contradictions_of(layers, output.input.reader->tensors(), output.input.configs, compares);
    if (found.empty()) return {};
    std::set<std::string> known;
    const SourceModel* const of = compares ? find_model(source_, model) : nullptr;
    if (of != nullptr) {
      const OpenedModel source = open_model(source_, *of);
      file_conversion::OutputNames written = TRY(file_conversion::OutputNames::compile(request_.filter));
      for (const Contradiction& old :
           contradictions_of(source.layers(), source.input.reader->tensors(), source.input.configs, compares)) {
        known.insert(TRY(written.new_name(old.tensor)));
      }
    }
    for (const Contradiction& each : found) {
      if (known.contains(each.tensor)) continue;
      const std::string path = output_.folder + "/" + model.folder + each.source;
      Error error =
          internal_error(each.message, each.list.empty() ? fmt::format("remove \"{}\" from the list", each.module)
                                                         : fmt::format("add \"{}\" to \"{}\"", each.module, each.list));
      error.tensor = each.tensor;
      error.file = is_file(path) ? path : output.file_of(each.tensor);
      return error;
    }
    return {};
  }

  Result<void> check_hashes(const std::string& path) {
    const std::string text = TRY(read_text(TRY(open_source(output_.folder, sums_name)), max_sums_bytes));
    const std::vector<DigestedFile> sums = TRY(parse_sums(text, path));
    std::uint64_t total = 0;
    std::set<std::string_view> listed;
    for (const DigestedFile& sum : sums) {
      total += file_bytes(output_.folder + "/" + sum.name).value_or(0);
      listed.insert(sum.name);
    }
    for (const std::string& name : file_names(output_)) {
      const bool is_hidden = last_component(name).starts_with('.');  // such as .gitattributes
      if (is_hidden || listed.contains(name)) continue;
      return in_file(output_.folder + "/" + name,
                     parse_error("SHA256SUMS does not have this file",
                                 "the conversion did not write it: remove it, or add what `sha256sum` prints for it"));
    }
    file_conversion::ProgressMeter meter(request_.on_progress, total);
    for (const DigestedFile& sum : sums) TRY(check_hash(sum, meter));
    return check_differences();
  }

  Result<void> check_hash(const DigestedFile& sum, file_conversion::ProgressMeter& meter) {
    const StoredFile source = TRY(open_source(output_.folder, sum.name));
    const std::string sha256 = TRY(in_file(
        output_.folder, sha256_of_file(source, [&](std::uint64_t bytes) { return meter.advance(bytes, sum.name); })));
    outcome_.bytes_read += source.size();
    if (sha256 != sum.sha256) {
      differences_.push_back(in_file(
          source.path(), internal_error("the file's SHA-256 is not that of SHA256SUMS: it is damaged or was changed")));
      return {};
    }
    ++outcome_.files;
    return {};
  }

  Result<void> check_tensors() {
    source_ = TRY(read_source(request_.against, request_.filter.skip_files));
    source_.accepted = request_.filter.accept;
    file_conversion::OutputNames written = TRY(file_conversion::OutputNames::compile(request_.filter));
    for (const SourceModel& model : source_.models) {
      const bool wanted = is_empty(model) || has_tensors(source_, model, written);
      if (wanted && find_model(output_, model) == nullptr) {
        return in_file(output_.folder, internal_error(fmt::format("the model \"{}{}\" of \"{}\" is not there",
                                                                  model.folder, model.stem, source_.folder)));
      }
    }
    for (const SourceModel& model : output_.models) {
      const SourceModel* of = find_model(source_, model);
      if (of == nullptr) {
        return in_file(output_.folder, internal_error(fmt::format("\"{}\" has no model \"{}{}\"", source_.folder,
                                                                  model.folder, model.stem)));
      }
      TRY(check_model(model, *of, written));
    }
    return find_recipes(written);
  }

  Result<void> find_recipes(const file_conversion::OutputNames& written) {
    if (!quantized_.empty()) {
      Result<VerifiedWeights> verified = verify_quantized(request_, quantized_);
      if (!verified) return at_weight(std::move(verified).error());
      for (Error& error : verified->differences) differences_.push_back(at_weight(std::move(error)));
      outcome_.recipes = std::move(verified->sentences);
    }
    TRY(check_differences());
    return written.check_all_matched();
  }

  [[nodiscard]] bool is_empty(const SourceModel& model) const {
    return std::ranges::all_of(model.shards,
                               [&](const std::size_t shard) { return source_.shards[shard].header.tensors.empty(); });
  }

  // Returns the model with the folder and stem of `wanted`, or else the only one of both folders.
  static const SourceModel* find_model(const SourceCheckpoint& checkpoint, const SourceModel& wanted) {
    const SourceModel* only = nullptr;
    for (const SourceModel& model : checkpoint.models) {
      if (model.folder != wanted.folder) continue;
      if (model.stem == wanted.stem) return &model;
      if (only != nullptr) return nullptr;
      only = &model;
    }
    return only;
  }

  Result<void> check_model(const SourceModel& model, const SourceModel& source_model,
                           file_conversion::OutputNames& written) {
    OpenedModel output = open_model(output_, model);
    OpenedModel source = open_model(source_, source_model);
    const file_conversion::RecordedScales scales = recorded_scales(model, source_model);
    Result<ComparedModel> compared =
        compare_model(request_, output, source, written, has_own_options_ ? nullptr : &scales);
    if (!compared) {
      Error& error = compared.error();
      if (error.file.empty()) error.file = output.file_of(error.tensor);
      return in_file(output_.folder, std::move(error));  // of a tensor that is missing
    }
    for (Error& error : compared->differences) error = in_file(output_.folder, std::move(error));
    count(*std::move(compared), name_prefix(model));
    return {};
  }

  [[nodiscard]] file_conversion::RecordedScales recorded_scales(const SourceModel& model,
                                                                const SourceModel& source_model) const {
    std::vector<const formats::Metadata*> sources;
    for (const std::size_t shard : source_model.shards) sources.push_back(&source_.shards[shard].header.metadata);
    file_conversion::RecordedScales scales;
    for (const std::size_t shard : model.shards) {
      const auto& header = output_.shards[shard].header;
      scales.add(header.metadata, sources, header.tensors);
    }
    return scales;
  }

  void count(ComparedModel compared, const std::string& prefix) {
    for (Error& error : compared.differences) differences_.push_back(std::move(error));
    outcome_.tensors += compared.tensors;
    outcome_.bytes_read += compared.bytes_read;
    for (const std::string& weight : compared.quantized) quantized_.insert(prefix + weight);
  }

  // Names the file of a weight that is at fault.
  Error at_weight(Error error) const {
    if (error.file.empty() || error.file == request_.checkpoint) error.file = file_of_weight(error.tensor);
    return error;
  }

  // Returns the file of a weight's codes. `weight`: with the name of its model, as errors of recipes have it.
  std::string file_of_weight(const std::string& weight) const {
    for (const SourceModel& model : output_.models) {
      const std::string prefix = name_prefix(model);
      if (!weight.starts_with(prefix)) continue;
      if (std::string file = open_model(output_, model).file_of(weight.substr(prefix.size())); !file.empty()) {
        return file;
      }
    }
    return request_.checkpoint;
  }

  VerifyRequest request_;       // with the options that are recorded
  const bool has_own_options_;  // of the caller, which take the place of the records
  SourceCheckpoint output_;
  SourceCheckpoint source_;
  std::set<std::string> quantized_;  // weights of the output, with their models
  std::vector<Error> differences_;
  VerifyOutcome outcome_;
};

// Refuses a file of another format than checkpoints have, whose first bytes are no header of safetensors.
Result<void> check_format(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  const io::InputFile file = TRY(io::InputFile::open(path));
  const Result<const formats::Format*> format = formats::detect_format(file);
  if (!format || (*format)->name == "safetensors" || (*format)->name == "gguf") return {};
  return in_file(path, unsupported(fmt::format("verify reads safetensors and GGUF, and this is {}", (*format)->name),
                                   "`tcast diff` compares it with the file that it was converted from"));
}

}  // namespace

Result<VerifyOutcome> verify_checkpoint(const VerifyRequest& request) {
  return guarded(request.checkpoint, [&]() -> Result<VerifyOutcome> {
    TRY(check_format(request.checkpoint));
    Verification verification(request);
    return request.checkpoint.ends_with(".gguf") ? verification.run_file() : verification.run();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
