// SPDX-License-Identifier: Apache-2.0
// What a plan says of its tensors.
#include "convert/plan/file_plan.hpp"

#include <numeric>

#include "convert/plan/tensor_seed.hpp"
#include "dtype/try.hpp"

namespace tensorcast::file_conversion {

using formats::Format;
using formats::TensorInfo;

std::vector<PlannedTensor*> Plan::in_layout() {
  std::vector<PlannedTensor*> ordered;
  for (const std::size_t index : layout) ordered.push_back(&tensors[index]);
  return ordered;
}

std::uint64_t Plan::bytes_in() const noexcept {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors) bytes += tensor.bytes_in;
  return bytes;
}

std::uint64_t Plan::bytes_out() const noexcept {
  std::uint64_t bytes = 0;
  for (const PlannedTensor& tensor : tensors) bytes += tensor.target.bytes;
  return bytes;
}

double PlannedTensor::scale() const noexcept {
  if (const auto* converted = std::get_if<Converted>(&fate)) return converted->scale;
  return decodes() ? decoded()->scale : 1.0;
}

CastOptions options_of(const ConversionSettings& settings, const PlannedTensor& tensor) {
  CastOptions options = with_seed_of(settings.options, tensor.name());
  options.scale = tensor.scale();
  return options;
}

TensorOutcome planned_outcome(const PlannedTensor& tensor) {
  static const NewWeight none;
  const bool quantizes = tensor.new_weight() != nullptr;
  const NewWeight& weight = quantizes ? *tensor.new_weight() : none;
  return {.name = tensor.name(),
          .output_name = tensor.source_name.empty() ? std::string() : tensor.target.name,
          .from = quantizes ? weight.type : tensor.from,
          .to = tensor.target.dtype,
          .shape = tensor.target.shape,
          .bytes_in = quantizes ? weight.bytes : tensor.bytes_in,
          .bytes_out = tensor.target.bytes,
          .why = tensor.reason.why,
          .number = tensor.reason.number,
          .reason = tensor.reason.text(),
          .left = tensor.left,
          .scale = tensor.scale(),
          .scheme = tensor.decodes() ? tensor.decoded()->scheme : weight.scheme,
          .becomes = weight.becomes,
          .recipe = weight.recipe,
          .search = weight.search,
          .elements = weight.elements,
          .bits = weight.bits,
          .choice = weight.choice,
          .passes = weight.passes};
}

Result<std::vector<std::size_t>> layout_of(const formats::Format& output, std::span<const PlannedTensor> tensors) {
  std::vector<formats::TensorInfo> targets;
  targets.reserve(tensors.size());
  for (const PlannedTensor& tensor : tensors) targets.push_back(tensor.target);
  if (output.check != nullptr) TRY(output.check(targets));
  if (output.layout != nullptr) return output.layout(targets);
  std::vector<std::size_t> layout(targets.size());
  std::iota(layout.begin(), layout.end(), std::size_t{0});
  return layout;
}

}  // namespace tensorcast::file_conversion
