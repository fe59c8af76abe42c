// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/run/to_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/source/source.hpp"
#include "checkpoint/source/tensor_set.hpp"
#include "convert/run/convert_reader.hpp"
#include "convert/select/output_names.hpp"
#include "convert/select/pattern_list.hpp"
#include "convert/select/tensor_selection.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/format_list.hpp"
#include "tensorcast/whole_file.hpp"

namespace tensorcast::checkpoint {
namespace {

using formats::Format;
using formats::safetensors_format;

Result<void> check_file_request(const ConvertRequest& request, const Format& format) {
  const auto fail = [&](std::string message, std::string hint) {
    return in_file(request.output, unsupported(std::move(message), std::move(hint)));
  };
  if (request.max_shard_bytes != 0) return fail("a file has no shards", "a name that ends in / is a folder's");
  const quantized::Spelling* const layout = quantized::find_writer(request.respell);
  const bool gguf = layout != nullptr && layout->is_of_gguf && format.name == std::string_view("gguf");
  if (format.many_tensors && &format != &safetensors_format && !gguf) {
    return fail(fmt::format("a checkpoint is written as safetensors, not as {}", format.name),
                file_conversion::quantizes(request)
                    ? "a folder's names of tensors are not GGUF's: make a GGUF of the model with llama.cpp first"
                    : "a file of one array, such as .npy, takes one tensor out");
  }
  if (format.many_tensors && !request.single_file && !gguf) {
    return fail("a checkpoint is written to a folder, and this is the name of a file",
                "`single_file` writes one file; a name that ends in / is a folder's");
  }
  if (!format.many_tensors && request.include.empty() && request.filter.only.empty()) {
    return fail(fmt::format("{} holds exactly one array, and the input is a checkpoint", format.name),
                "`only` names the tensor to take out: '^lm_head.weight$'");
  }
  const PathUse input[] = {{.path = source_folder(request.input), .noun = "input", .folder = true}};
  return check_apart({.path = request.output, .noun = "output"}, input);
}

// Returns the models that have a tensor or a layer to write, by their names.
Result<std::vector<const SourceModel*>> chosen_models(const ConvertRequest& request, const SourceCheckpoint& source,
                                                      const Format& format) {
  auto written = TRY(file_conversion::OutputNames::compile(request.filter));
  using Patterns = std::vector<std::string>;
  auto included = TRY(file_conversion::PatternList::compile(format.many_tensors ? Patterns() : request.include));
  const auto is_chosen = [&](const auto& named) {
    return written.writes(named.name) && (included.size() == 0 || included.matches(named.name));
  };
  std::vector<const SourceModel*> chosen;
  for (const SourceModel& model : source.models) {
    const OpenedModel opened = open_model(source, model);
    const bool has_tensor = std::ranges::any_of(opened.input.reader->tensors(), is_chosen);
    if (has_tensor || std::ranges::any_of(opened.layers().layers, is_chosen)) chosen.push_back(&model);
  }
  if (!chosen.empty()) return chosen;
  TRY(included.check_all_matched("include"));
  TRY(written.check_all_matched());
  return chosen;
}

}  // namespace

bool is_file_output(const ConvertRequest& request) {
  if (request.output.ends_with('/') || is_folder(request.output)) return false;
  if (!request.output_format.empty() && request.output_format != safetensors_format.name) return true;
  return formats::has_extension(request.output);
}

Result<ConvertOutcome> convert_to_file(const ConvertRequest& request, const file_conversion::Derivation* derivation) {
  const Format* format = TRY(file_conversion::output_format_of(request));
  TRY(check_file_request(request, *format));
  SourceCheckpoint source = TRY(read_source(request.input, request.filter.skip_files));
  source.accepted = request.filter.accept;
  const std::vector<const SourceModel*> chosen = TRY(chosen_models(request, source, *format));
  const SourceModel& model =
      *TRY(only_model(chosen, request.input, "name the index or the file of one model as the input"));
  return file_conversion::convert_reader(request, open_model(source, model).input, *format, derivation);
}

}  // namespace tensorcast::checkpoint
