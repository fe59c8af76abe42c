// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare/compare_model.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "convert/run/conversion_source.hpp"
#include "convert/run/progress_meter.hpp"
#include "convert/run/verify.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/wrapped_reader.hpp"
#include "quantized/layout/quantization_claim.hpp"
#include "quantized/rewrite/respelling.hpp"

namespace tensorcast::checkpoint {
namespace {

// GPTQ and AWQ have names of their own for the schemes of integers.
bool is_same_scheme(const quantized::Layer& a, const quantized::Layer& b) {
  const auto is_integer = [](const quantized::Layer& layer) { return quantized::is_integer(layer.coding.element); };
  const bool in_columns = quantized::is_in_columns(a.coding) || quantized::is_in_columns(b.coding);
  return a.scheme == b.scheme || (in_columns && is_integer(a) && is_integer(b) && a.bits() == b.bits());
}

using file_conversion::Converted;
using file_conversion::Decoded;
using file_conversion::PlannedTensor;
using file_conversion::Rewritten;

class Comparison {
 public:
  Comparison(const VerifyRequest& request, OpenedModel& output, OpenedModel& source,
             file_conversion::OutputNames& written, const file_conversion::RecordedScales* scales)
      : request_(request),
        output_(output),
        source_(source),
        written_(written),
        scales_(scales),
        quantized_(output.layers()) {}

  Result<ComparedModel> run() {
    Result<Expected> made = expected_tensors();
    if (!made) {
      Error& error = made.error();
      return in_file(source_.file_of(error.tensor), std::move(error));
    }
    Expected expected = *std::move(made);
    const std::set<std::string> quantized = take_quantized(expected);
    formats::ChosenTensors unquantized(*output_.input.reader);
    for (std::size_t i = 0; i < output_.input.reader->tensors().size(); ++i) {
      if (!quantized.contains(output_.input.reader->tensors()[i].name)) unquantized.add(i);
    }
    file_conversion::Plan plan = TRY(plan_of(expected, unquantized));
    const ConversionRun run{{.options = request_.options}, request_.execution, request_.on_progress};
    const auto made_anew = TRY(file_conversion::ConversionSource::create(
        plan.in_layout(), *source_.input.reader, [&](std::size_t layer) { return expected.load(layer); },
        run.execution));
    const std::uint64_t bytes = plan.bytes_in() + plan.bytes_out();
    file_conversion::ProgressMeter meter(run.on_progress, bytes);
    // Each file of the output by itself, so that all that differ are found.
    std::map<std::string, std::vector<std::size_t>> files;
    for (const std::size_t i : plan.layout) files[output_.path_of(unquantized.place_of(i))].push_back(i);
    formats::Reader& all = unquantized;
    for (const auto& [file, indices] : files) {
      std::vector<const PlannedTensor*> tensors;
      formats::ChosenTensors of_file(all);
      for (const std::size_t i : indices) {
        tensors.push_back(&plan.tensors[i]);
        of_file.add(i);
      }
      Result<bool> same = file_conversion::verify(run, tensors, made_anew.reader(), of_file, meter);
      if (same && !*same) return cancelled("cancelled");
      if (same) continue;
      Error& error = same.error();
      // What cannot be decoded has its name in the source.
      if (output_.file_of(error.tensor).empty()) error = in_file(source_.file_of(error.tensor), std::move(error));
      if (error.code != ErrorCode::internal) return std::move(error);
      error.hint = "the file was changed, or converted with other options: give verify the same ones";
      outcome_.differences.push_back(in_file(file, std::move(error)));
    }
    outcome_.tensors += plan.tensors.size();
    outcome_.bytes_read += bytes;
    return outcome_;
  }

 private:
  // The tensors of the source as the output should have them: layers decoded, or in another spelling.
  struct Expected {
    std::unordered_map<std::string, PlannedTensor> by_name = {};  // in the output; what casts change is not planned yet
    std::vector<quantized::Layer> layers = {};
    std::shared_ptr<const quantized::Respelling> respelling = nullptr;  // null: layers are decoded

    [[nodiscard]] Result<quantized::RespelledSource> load(std::size_t layer) const {
      quantized::RespelledSource source{.layer = layers[layer], .siblings = {}, .becomes = nullptr};
      if (respelling != nullptr) source.becomes = {respelling, &respelling->layers[layer]};
      return source;
    }
  };

  static PlannedTensor expected_tensor(const formats::TensorInfo& info, std::size_t source,
                                       decltype(PlannedTensor::fate) fate = {}) {
    return {.target = info, .source = source, .from = info.dtype, .bytes_in = info.bytes, .fate = std::move(fate)};
  }

  // Returns the spelling of the output's layers if it is another than that of the source's; else "".
  [[nodiscard]] std::string new_spelling(const quantized::FoundLayers& layers) const {
    if (!layers.any() || !quantized_.any()) return {};
    if (!requantized_.empty()) return {};
    const std::string_view spelling = quantized_.layers[0].spelling;
    const bool other =
        std::ranges::none_of(layers.layers, [&](const auto& layer) { return layer.spelling == spelling; });
    return other && quantized::find_writer(spelling) != nullptr ? std::string(spelling) : std::string();
  }

  Result<Expected> respelled(const std::string& spelling, quantized::FoundLayers layers) const {
    formats::Reader& encoded = *source_.input.reader;
    const quantized::RespellRequest request{
        .spelling = spelling, .writes = [this](const std::string& name) { return written_.writes(name); }};
    const auto plan = std::make_shared<const quantized::Respelling>(
        TRY(quantized::plan_respelling(layers, source_.input.configs, encoded, request)));
    Expected expected{.respelling = plan};
    const auto keep = [&](std::size_t i) {
      expected.by_name.emplace(encoded.tensors()[i].name, expected_tensor(encoded.tensors()[i], i));
    };
    for (std::size_t i = 0; i < encoded.tensors().size(); ++i) {
      if (!layers.layer_of[i] && written_.writes(encoded.tensors()[i].name)) keep(i);
    }
    for (std::size_t i = 0; i < plan->layers.size(); ++i) {
      const quantized::RespelledLayer& layer = plan->layers[i];
      std::ranges::for_each(layer.kept, keep);
      if (!layer.changes()) continue;
      const quantized::WrittenLayer written = layer.written();
      for (std::size_t place = 0; place < written.tensors.size(); ++place) {
        const formats::TensorInfo& info = written.tensors[place].info;
        expected.by_name.emplace(info.name, expected_tensor(info, 0, Rewritten{.layer = i, .place = place}));
      }
    }
    expected.layers = std::move(layers.layers);
    return expected;
  }

  // Notes the layers of both whose scheme is another in the output: they were decoded, and quantized anew.
  void find_requantized(const quantized::FoundLayers& layers) {
    std::unordered_map<std::string_view, const quantized::Layer*> written;
    for (const quantized::Layer& layer : quantized_.layers) written.emplace(layer.name, &layer);
    const std::vector<formats::TensorInfo>& tensors = source_.input.reader->tensors();
    for (const quantized::Layer& layer : layers.layers) {
      const auto found = written.find(layer.name);
      if (!layer.problem.empty() || found == written.end() || is_same_scheme(*found->second, layer)) continue;
      requantized_.insert(layer.name);
      for (const quantized::Part& part : layer.parts) replaced_.insert(tensors[part.tensor].name);
    }
  }

  Result<Expected> expected_tensors() {
    formats::Reader& encoded = *source_.input.reader;
    quantized::FoundLayers layers = source_.layers();
    find_requantized(layers);
    const std::string spelling = new_spelling(layers);
    if (!spelling.empty()) return respelled(spelling, std::move(layers));
    if (layers.any()) {
      std::set<std::string_view> names;  // of numbers, which blocks of GGUF are not
      for (const formats::TensorInfo& tensor : output_.input.reader->tensors()) {
        if (tensor.dtype != DType::undefined) names.insert(tensor.name);
      }
      keep_decoded(layers, encoded.tensors(), [&](const std::string& name) {
        if (requantized_.contains(name)) return true;
        if (replaced_.contains(name)) return false;
        const Result<std::string> new_name = written_.new_name(name);
        return new_name && names.contains(*new_name);
      });
    }
    Expected expected;
    const auto add = [&](const PlannedTensor& tensor) -> Result<void> {
      if (!written_.writes(tensor.name())) return {};
      expected.by_name.emplace(TRY(written_.new_name(tensor.name())), tensor);
      return {};
    };
    for (std::size_t i = 0; i < encoded.tensors().size(); ++i) {
      if (i < layers.layer_of.size() && layers.layer_of[i]) continue;  // its weight is written
      TRY(add(expected_tensor(encoded.tensors()[i], i)));
    }
    for (std::size_t i = 0; i < layers.layers.size(); ++i) {
      TRY(add(expected_tensor(quantized::decoded_info(layers.layers[i]), 0, Decoded{.layer = i})));
    }
    expected.layers = std::move(layers.layers);
    return expected;
  }

  // Notes the output's layers whose weights the source has as plain numbers: recipes made them. Returns the names of
  // their tensors, and takes the weights from `expected`.
  std::set<std::string> take_quantized(Expected& expected) {
    std::set<std::string> names;
    for (const quantized::Layer& layer : quantized_.layers) {
      const auto source = expected.by_name.find(layer.name);
      if (source == expected.by_name.end()) continue;
      const bool is_made_of_layer = expected.respelling != nullptr || source->second.decodes();
      if (is_made_of_layer && !requantized_.contains(layer.name)) continue;
      const DType weight = source->second.from;
      if (family(weight) != Family::floating || bit_width(weight) < 16) continue;
      for (const quantized::Part& part : layer.parts) names.insert(output_.input.reader->tensors()[part.tensor].name);
      outcome_.quantized.insert(layer.name);
      expected.by_name.erase(source);
      ++outcome_.tensors;
    }
    return names;
  }

  // Plans to make the tensors of the output again.
  Result<file_conversion::Plan> plan_of(Expected& expected, const formats::Reader& output) const {
    file_conversion::Plan plan;
    for (const formats::TensorInfo& tensor : output.tensors()) {
      const auto found = expected.by_name.find(tensor.name);
      if (found == expected.by_name.end())
        return of_tensor(tensor.name, internal_error("the source does not have the tensor"));
      PlannedTensor& planned = found->second;
      if (planned.target.shape != tensor.shape)
        return of_tensor(tensor.name, internal_error("the source's tensor has another shape"));
      if (planned.target.foreign_dtype != tensor.foreign_dtype) {
        return of_tensor(tensor.name, internal_error("the source's tensor has another type"));
      }
      planned.target = tensor;
      const double scale = scales_ == nullptr ? request_.options.scale : scales_->of(tensor.name);
      const bool scaled = scale != 1.0 && (scales_ != nullptr || family(planned.from) == Family::floating);
      if (auto* const decoded = std::get_if<Decoded>(&planned.fate)) {
        decoded->scale = scale;
      } else if (planned.rewritten() == nullptr && (planned.from != tensor.dtype || scaled)) {
        planned.fate = Converted{.scale = scale};
      }
      plan.layout.push_back(plan.tensors.size());
      plan.tensors.push_back(std::move(planned));
      expected.by_name.erase(found);
    }
    if (!expected.by_name.empty())
      return of_tensor(expected.by_name.begin()->first, internal_error("the tensor is missing"));
    return plan;
  }

  const VerifyRequest& request_;
  const OpenedModel& output_;
  const OpenedModel& source_;
  file_conversion::OutputNames& written_;
  const file_conversion::RecordedScales* const scales_;
  const quantized::FoundLayers quantized_;  // of the output
  std::set<std::string> requantized_;       // layers that have another scheme in the source
  std::set<std::string> replaced_;          // the source's tensors of such layers
  ComparedModel outcome_;
};

}  // namespace

bool has_tensors(const SourceCheckpoint& checkpoint, const SourceModel& model, file_conversion::OutputNames& written) {
  bool has = false;  // `written` is told all names
  for (const std::size_t shard : model.shards) {
    for (const formats::TensorInfo& tensor : checkpoint.shards[shard].header.tensors) {
      if (written.writes(tensor.name)) has = true;
    }
  }
  return has;
}

Result<OpenedModel> open_only_model(const std::string& path, const OutputFilter& filter,
                                    file_conversion::OutputNames& written) {
  if (!is_checkpoint(path) && is_local(path)) {
    OpenedModel file = TRY(open_model_file(path));
    file_conversion::add_accepted(filter.accept, file.input.configs);
    return file;
  }
  SourceCheckpoint checkpoint = TRY(read_source(path, filter.skip_files));
  checkpoint.accepted = filter.accept;
  std::vector<const SourceModel*> chosen;
  for (const SourceModel& model : checkpoint.models) {
    if (has_tensors(checkpoint, model, written)) chosen.push_back(&model);
  }
  return open_model(checkpoint,
                    *TRY(only_model(chosen, path, "`only`, `drop` and `skip_files` of the conversion leave one")));
}

Result<ComparedModel> compare_model(const VerifyRequest& request, OpenedModel& output, OpenedModel& source,
                                    file_conversion::OutputNames& written,
                                    const file_conversion::RecordedScales* scales) {
  return Comparison(request, output, source, written, scales).run();
}

}  // namespace tensorcast::checkpoint
