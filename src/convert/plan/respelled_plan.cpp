// SPDX-License-Identifier: Apache-2.0
#include "convert/plan/respelled_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convert/select/output_names.hpp"
#include "convert/select/tensor_selection.hpp"
#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "quantized/rewrite/target_options.hpp"

namespace tensorcast::file_conversion {
namespace {

// `bytes`: of all tensors that the weight is.
NewWeight new_weight(const quantized::RespelledLayer& layer, const quantized::WrittenLayer& written,
                     quantized::PartRole role, std::uint64_t bytes) {
  NewWeight weight{.becomes = fmt::format("{} {}", layer.writer->name, layer.becomes.scheme),
                   .type = layer.quantizing->numbers};
  if (role != quantized::PartRole::codes) return weight;
  weight.bytes = bytes;
  weight.elements = layer.becomes.rows() * layer.becomes.columns();
  std::uint64_t sum = 0;
  for (const quantized::WrittenTensor& each : written.tensors) sum += each.info.bytes;
  if (weight.elements != 0) weight.bits = 8.0 * static_cast<double>(sum) / static_cast<double>(weight.elements);
  weight.choice = layer.choice;
  weight.scheme = layer.becomes.scheme;
  weight.recipe = layer.recipe;
  weight.search = layer.quantizing->search();
  weight.passes = layer.passes;
  return weight;
}

}  // namespace

std::string words_of(const quantized::RespelledLayer& layer, const std::string& scheme) {
  if (!layer.quantizing) return scheme;
  const std::string search = layer.quantizing->search();
  return fmt::format("{} by {}{}{} as {}{}{}", layer.becomes.scheme, layer.recipe, search.empty() ? "" : ", ", search,
                     layer.writer->name, layer.becomes.dynamic_activations ? ", dynamic activations" : "",
                     layer.choice.empty() ? "" : ", within `budget`");
}

PlannedTensor planned_written(const quantized::RespelledLayer& layer, const quantized::WrittenLayer& written,
                              Rewritten fate, const std::string& source, const std::string& words,
                              std::uint64_t bytes) {
  PlannedTensor planned;
  planned.target = written.tensors[fate.place].info;
  planned.from = planned.target.dtype;
  planned.bytes_in = planned.target.bytes;
  planned.reason = {layer.quantizing ? TypeReason::quantized : TypeReason::respelled, 0, words};
  planned.quantized = true;
  if (source != planned.target.name) planned.source_name = source;
  if (layer.quantizing) {
    const quantized::PartRole role = written.tensors[fate.place].role;
    fate.weight = std::make_shared<const NewWeight>(new_weight(layer, written, role, bytes));
  }
  planned.fate = std::move(fate);
  return planned;
}

Result<void> plan_respelled(std::span<const formats::TensorInfo> tensors, std::size_t index,
                            const quantized::Layer& layer, std::size_t place, const quantized::Respelling& respelling,
                            const formats::Format& output, std::vector<PlannedTensor>& plan) {
  const quantized::RespelledLayer& respelled = respelling.layers[place];
  const formats::TensorInfo& own = tensors[index];
  if (std::ranges::find(respelled.kept, index) != respelled.kept.end()) {
    plan.push_back({.target = own,
                    .source = index,
                    .from = own.dtype,
                    .bytes_in = own.bytes,
                    .fate = Copied{.layer = place},
                    .reason = {TypeReason::decodes_codes},
                    .quantized = true});
  }
  if (index != layer.codes()) return {};
  const std::string words = words_of(respelled, fmt::format("{} {}", layer.spelling, layer.scheme));
  std::uint64_t bytes = 0;
  for (const quantized::Part& part : layer.parts) bytes += tensors[part.tensor].bytes;
  const quantized::WrittenLayer written = respelled.written();
  for (std::size_t i = 0; i < written.tensors.size(); ++i) {
    const formats::TensorInfo& target = written.tensors[i].info;
    const bool held = target.dtype == DType::undefined
                          ? output.can_hold_foreign != nullptr && output.can_hold_foreign(target.foreign_dtype)
                          : output.can_hold(target.dtype);
    if (!held || !output.many_tensors) {
      return of_tensor(
          target.name,
          unsupported(fmt::format("{} cannot hold the tensors of \"{}\"", output.name, respelling.spelling),
                      respelled.writer->is_of_gguf ? "name a .gguf file as the output" : "safetensors can"));
    }
    plan.push_back(planned_written(respelled, written, {.layer = place, .place = i}, tensors[respelled.sources[i]].name,
                                   words, bytes));
  }
  return {};
}

}  // namespace tensorcast::file_conversion
