// Reads a converted checkpoint again: hashes, and every tensor against its source.
#include <fmt/format.h>
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "checkpoint/file_name.hpp"
#include "checkpoint/tensor_set.hpp"
#include "checkpoint/verify_quantized.hpp"
#include "convert/output_names.hpp"
#include "convert/progress_meter.hpp"
#include "convert/quantized/respelled_reader.hpp"
#include "convert/verify.hpp"
#include "dtype/guarded.hpp"
#include "io/sha256.hpp"
#include "tensorcast/checkpoint.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {
namespace {

using namespace checkpoint;

constexpr std::uint64_t max_sums_bytes = std::uint64_t{256} << 20;

struct Sum {
  std::string sha256;
  std::string name;
};

// Parses SHA256SUMS as sha256sum writes it.
Result<std::vector<Sum>> parse_sums(const std::string& text, const std::string& path) {
  constexpr std::size_t digits = 64;
  std::vector<Sum> sums;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const bool escaped = line.starts_with('\\');
    if (escaped) line.remove_prefix(1);
    const bool valid =
        line.size() > digits + 2 && line[digits] == ' ' && (line[digits + 1] == ' ' || line[digits + 1] == '*');
    if (!valid) {
      return Error{.code = ErrorCode::parse,
                   .message = fmt::format("line {} is not a hash and a name", sums.size() + 1),
                   .file = path};
    }
    Sum sum{.sha256 = std::string(line.substr(0, digits)), .name = {}};
    const std::string_view name = line.substr(digits + 2);
    for (std::size_t i = 0; i < name.size(); ++i) {
      const bool pair = escaped && name[i] == '\\' && i + 1 < name.size();
      if (pair) ++i;
      sum.name += !pair ? name[i] : name[i] == 'n' ? '\n' : name[i] == 'r' ? '\r' : name[i];
    }
    if (Result<void> checked = check_file_name(sum.name, path); !checked) return std::move(checked).error();
    sums.push_back(std::move(sum));
  }
  return sums;
}

// Returns the names of all files but SHA256SUMS and hidden ones, such as .gitattributes.
std::vector<std::string> files_of(const SourceCheckpoint& checkpoint) {
  std::vector<std::string> names;
  for (const SourceShard& shard : checkpoint.shards) names.push_back(shard.name);
  for (const SourceModel& model : checkpoint.models) {
    if (!model.index.empty()) names.push_back(model.index);
  }
  for (const ListedFile& file : checkpoint.others) {
    if (file.name != "SHA256SUMS" && !last_component(file.name).starts_with('.')) names.push_back(file.name);
  }
  return names;
}

class Verification {
 public:
  explicit Verification(const VerifyRequest& request) : request_(request) {}

  Result<VerifyOutcome> run() {
    Result<SourceCheckpoint> output = read_source(request_.checkpoint);
    if (!output) return std::move(output).error();
    output_ = std::move(output).value();
    const std::string sums_path = output_.folder + "/SHA256SUMS";
    const bool has_sums = is_file(sums_path) && is_folder(request_.checkpoint);
    if (!has_sums && request_.against.empty()) {
      return Error{.code = ErrorCode::invalid_argument,
                   .message = "the folder has no SHA256SUMS to compare with",
                   .hint = "`against` compares its tensors with the checkpoint that it was converted from",
                   .file = output_.folder};
    }
    if (has_sums) {
      if (Result<void> hashed = check_hashes(sums_path); !hashed) return std::move(hashed).error();
    }
    if (!request_.against.empty()) {
      if (Result<void> same = check_tensors(); !same) return std::move(same).error();
    }
    add_warnings();
    return outcome_;
  }

  // Scales that loaders stumble over, of what is quantized in the output.
  void add_warnings() {
    const Claims claims(output_);
    for (const SourceModel& model : output_.models) {
      ShardReader reader;
      add_model(output_, model, reader);
      const quantized::FoundLayers found = layers_of(claims, model, reader);
      if (!found.any() && !found.refusal.empty()) continue;
      if (const std::string problem = quantized::problem_warning(found); !problem.empty()) {
        outcome_.warnings.push_back(name_prefix(model) + problem);
      }
      for (std::string& warning : quantized::scale_warnings(found, reader)) {
        outcome_.warnings.push_back(name_prefix(model) + std::move(warning));
      }
    }
  }

 private:
  Result<void> check_hashes(const std::string& path) {
    const Result<std::unique_ptr<StoredFile>> file = open_source(output_.folder, "SHA256SUMS");
    if (!file) return file.error();
    const Result<std::string> text = read_text(**file, max_sums_bytes);
    if (!text) return text.error();
    const Result<std::vector<Sum>> sums = parse_sums(*text, path);
    if (!sums) return sums.error();
    std::uint64_t total = 0;
    std::map<std::string_view, bool> listed;
    for (const Sum& sum : *sums) {
      const std::uint64_t bytes = file_bytes(output_.folder + "/" + sum.name);
      if (bytes != UINT64_MAX) total += bytes;
      listed.emplace(sum.name, true);
    }
    for (const std::string& name : files_of(output_)) {
      if (listed.contains(name)) continue;
      return Error{.code = ErrorCode::parse,
                   .message = "SHA256SUMS does not have this file",
                   .hint = "the conversion did not write it: remove it, or add what `sha256sum` prints for it",
                   .file = output_.folder + "/" + name};
    }
    file_conversion::ProgressMeter meter(request_.on_progress, total);
    for (const Sum& sum : *sums) {
      if (Result<void> right = check_hash(sum, meter); !right) return right;
    }
    return {};
  }

  Result<void> check_hash(const Sum& sum, file_conversion::ProgressMeter& meter) {
    const Result<std::unique_ptr<StoredFile>> source = open_source(output_.folder, sum.name);
    if (!source) return source.error();
    io::Sha256 hash;
    Result<void> got = read_blocks(**source, [&](std::span<const std::byte> bytes) {
      hash.update(bytes);
      return meter.advance(bytes.size(), sum.name) ? Result<void>() : cancelled();
    });
    if (!got) return got;
    outcome_.bytes_read += (*source)->size();
    if (hash.digest() != sum.sha256) {
      return Error{.code = ErrorCode::internal,
                   .message = "the file's SHA-256 is not that of SHA256SUMS: it is damaged or was changed",
                   .file = (*source)->path()};
    }
    ++outcome_.files;
    return {};
  }

  Result<void> check_tensors() {
    Result<SourceCheckpoint> source = read_source(request_.against, request_.filter.skip_files);
    if (!source) return std::move(source).error();
    source_ = std::move(source).value();
    Result<file_conversion::OutputNames> written = file_conversion::OutputNames::compile(request_.filter);
    if (!written) return std::move(written).error();
    for (const SourceModel& model : source_.models) {
      if (has_tensors(model, *written) && find_model(output_, model) == nullptr) {
        return Error{.code = ErrorCode::internal,
                     .message = fmt::format("the model \"{}{}\" of \"{}\" is not there", model.folder, model.stem,
                                            source_.folder),
                     .file = output_.folder};
      }
    }
    for (const SourceModel& model : output_.models) {
      const SourceModel* of = find_model(source_, model);
      if (of == nullptr) {
        return Error{.code = ErrorCode::internal,
                     .message = fmt::format("\"{}\" has no model \"{}{}\"", source_.folder, model.folder, model.stem),
                     .file = output_.folder};
      }
      if (Result<void> same = check_model(model, *of, *written); !same) return same;
    }
    if (!quantized_.empty()) {
      Result<std::vector<std::string>> recipes = verify_quantized(request_, quantized_);
      if (!recipes) return std::move(recipes).error();
      outcome_.recipes = *std::move(recipes);
    }
    return written->check_all_matched();
  }

  // Reports whether the output has a tensor of the model, or the model never had any.
  bool has_tensors(const SourceModel& model, file_conversion::OutputNames& written) const {
    bool empty = true;
    for (const std::size_t shard : model.shards) {
      for (const formats::TensorInfo& tensor : source_.shards[shard].header.tensors) {
        if (written.writes(tensor.name)) return true;
        empty = false;
      }
    }
    return empty;
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

  // The tensors of the source as the output should have them: layers decoded, or in another spelling.
  struct Expected {
    std::unique_ptr<formats::Reader> reader;
    std::unordered_map<std::string, std::size_t> by_name;  // in the output
    std::size_t first_decoded = SIZE_MAX;
  };

  // Returns the spelling of the output's layers if it is another than that of the source's; else "".
  [[nodiscard]] std::string new_spelling(const SourceModel& model, const quantized::FoundLayers& layers,
                                         ShardReader& output) const {
    const quantized::FoundLayers found = layers_of(Claims(output_), model, output);
    if (!layers.any() || !found.any()) return {};
    const std::string_view spelling = found.layers[0].spelling;
    const bool other =
        std::ranges::none_of(layers.layers, [&](const auto& layer) { return layer.spelling == spelling; });
    return other && quantized::find_writer(spelling) != nullptr ? std::string(spelling) : std::string();
  }

  Result<Expected> respelled(const std::string& spelling, const SourceModel& model,
                             const quantized::FoundLayers& layers, ShardReader& encoded,
                             file_conversion::OutputNames& written) const {
    const quantized::RespellRequest request{
        .spelling = spelling, .writes = [&written](const std::string& name) { return written.writes(name); }};
    Result<quantized::Respelling> plan =
        quantized::plan_respelling(layers, Claims(source_).texts_of(model), encoded, request);
    if (!plan) return std::move(plan).error();
    Expected expected;
    auto reader = std::make_unique<quantized::RespelledReader>(encoded, Execution{});
    for (std::size_t i = 0; i < encoded.tensors().size(); ++i) {
      const std::string& name = encoded.tensors()[i].name;
      if (layers.layer_of[i] == SIZE_MAX && written.writes(name)) expected.by_name.emplace(name, i);
    }
    for (std::size_t i = 0; i < layers.layers.size(); ++i) {
      for (const std::size_t kept : plan->layers[i].kept) expected.by_name.emplace(encoded.tensors()[kept].name, kept);
      const auto layer = std::make_shared<const quantized::RespelledLayer>(std::move(plan->layers[i]));
      for (std::size_t tensor = 0; tensor < layer->written.tensors.size(); ++tensor) {
        expected.by_name.emplace(layer->written.tensors[tensor].info.name,
                                 reader->add(layers.layers[i], {}, layer, tensor));
      }
    }
    expected.reader = std::move(reader);
    return expected;
  }

  Result<Expected> expected_of(const SourceModel& model, const SourceModel& source_model, ShardReader& encoded,
                               ShardReader& output, file_conversion::OutputNames& written) const {
    quantized::FoundLayers layers = layers_of(Claims(source_), source_model, encoded);
    const std::string spelling = new_spelling(model, layers, output);
    if (!spelling.empty()) return respelled(spelling, source_model, layers, encoded, written);
    if (layers.any()) {
      std::set<std::string_view> names;
      for (const formats::TensorInfo& tensor : output.tensors()) names.insert(tensor.name);
      keep_decoded(layers, encoded.tensors(), [&](const std::string& name) {
        const Result<std::string> new_name = written.new_name(name);
        return new_name && names.contains(*new_name);
      });
    }
    Expected expected;
    expected.first_decoded = encoded.tensors().size();
    expected.reader = std::make_unique<quantized::DecodedReader>(encoded, layers.layers);
    for (std::size_t i = 0; i < expected.reader->tensors().size(); ++i) {
      if (i < layers.layer_of.size() && layers.layer_of[i] != SIZE_MAX) continue;  // its weight is written
      const std::string& name = expected.reader->tensors()[i].name;
      if (!written.writes(name)) continue;
      Result<std::string> new_name = written.new_name(name);
      if (!new_name) return std::move(new_name).error();
      expected.by_name.emplace(std::move(new_name).value(), i);
    }
    return expected;
  }

  // Notes the output's layers whose weights the source has as plain numbers: recipes made them. Returns the names of
  // their tensors, and takes the weights from `expected`.
  std::set<std::string> take_quantized(const SourceModel& model, Expected& expected, ShardReader& output) {
    std::set<std::string> names;
    const quantized::FoundLayers found = layers_of(Claims(output_), model, output);
    for (const quantized::Layer& layer : found.layers) {
      const auto source = expected.by_name.find(layer.name);
      if (source == expected.by_name.end() || source->second >= expected.first_decoded) continue;
      const formats::TensorInfo& weight = expected.reader->tensors()[source->second];
      if (family(weight.dtype) != Family::floating || bit_width(weight.dtype) < 16) continue;
      for (const quantized::Part& part : layer.parts) names.insert(output.tensors()[part.tensor].name);
      quantized_.insert(name_prefix(model) + layer.name);
      expected.by_name.erase(source);
      ++outcome_.tensors;
    }
    return names;
  }

  Result<void> check_model(const SourceModel& model, const SourceModel& source_model,
                           file_conversion::OutputNames& written) {
    ShardReader encoded;
    add_model(source_, source_model, encoded);
    ShardReader output;
    add_model(output_, model, output);
    Result<Expected> expected = expected_of(model, source_model, encoded, output, written);
    if (!expected) return std::move(expected).error();
    formats::Reader& input = *expected->reader;
    std::unordered_map<std::string, std::size_t>& sources = expected->by_name;
    ShardReader unquantized;
    add_model(output_, model, unquantized, take_quantized(model, *expected, output));
    file_conversion::Plan plan;
    for (const formats::TensorInfo& tensor : unquantized.tensors()) {
      const auto found = sources.find(tensor.name);
      if (found == sources.end()) {
        return differs("the source does not have the tensor", tensor.name, output_, model);
      }
      const formats::TensorInfo& of = input.tensors()[found->second];
      if (of.shape != tensor.shape)
        return differs("the source's tensor has another shape", tensor.name, output_, model);
      if (of.foreign_dtype != tensor.foreign_dtype) {
        return differs("the source's tensor has another type", tensor.name, output_, model);
      }
      const bool decoded = found->second >= expected->first_decoded;
      const bool scaled = request_.options.scale != 1.0 && family(of.dtype) == Family::floating;
      plan.layout.push_back(plan.tensors.size());
      plan.tensors.push_back({.target = tensor,
                              .source = found->second,
                              .from = of.dtype,
                              .bytes_in = of.bytes,
                              .converts = of.dtype != tensor.dtype || scaled || decoded,
                              .scale = request_.options.scale});
      sources.erase(found);
    }
    if (!sources.empty()) return differs("the tensor is missing", sources.begin()->first, output_, model);
    const ConversionRun run{{.options = request_.options}, request_.execution, request_.on_progress};
    file_conversion::ProgressMeter meter(run.on_progress, plan.bytes_in() + plan.bytes_out());
    Result<bool> same = file_conversion::verify(run, plan.in_layout(), input, unquantized, meter);
    if (!same) {
      Error& error = same.error();
      if (error.file.empty()) error.file = file_of(error.tensor, output_, model);
      if (error.code == ErrorCode::internal) {
        error.hint = "the file was changed, or converted with other options: give verify the same ones";
      }
      return std::move(same).error();
    }
    if (!*same) return cancelled();
    outcome_.tensors += plan.tensors.size();
    outcome_.bytes_read += plan.bytes_in() + plan.bytes_out();
    return {};
  }

  Error cancelled() const { return {.code = ErrorCode::cancelled, .message = "cancelled", .file = output_.folder}; }

  static std::string file_of(const std::string& tensor, const SourceCheckpoint& checkpoint, const SourceModel& model) {
    for (const std::size_t shard : model.shards) {
      for (const formats::TensorInfo& info : checkpoint.shards[shard].header.tensors) {
        if (info.name == tensor) return checkpoint.folder + "/" + checkpoint.shards[shard].name;
      }
    }
    return checkpoint.folder;
  }

  static Error differs(std::string message, std::string tensor, const SourceCheckpoint& checkpoint,
                       const SourceModel& model) {
    std::string file = file_of(tensor, checkpoint, model);
    return Error{.code = ErrorCode::internal,
                 .message = std::move(message),
                 .tensor = std::move(tensor),
                 .file = std::move(file)};
  }

  const VerifyRequest& request_;
  SourceCheckpoint output_;
  SourceCheckpoint source_;
  std::set<std::string> quantized_;  // weights of the output, with their models
  VerifyOutcome outcome_;
};

}  // namespace

Result<VerifyOutcome> verify_checkpoint(const VerifyRequest& request) {
  return guarded(request.checkpoint, [&]() -> Result<VerifyOutcome> {
    if (request.checkpoint.ends_with(".gguf")) {
      return Error{.code = ErrorCode::unsupported,
                   .message = "only checkpoints of safetensors are verified",
                   .hint = "`tcast inspect OUT --against IN` compares the quantized weights of GGUF",
                   .file = request.checkpoint};
    }
    return Verification(request).run();
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
