// SPDX-License-Identifier: Apache-2.0
#include "dtype/errors.hpp"
#include "tensorcast/graph.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "cast/conversion.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "graph/execution_plan.hpp"
#include "graph/inference.hpp"
#include "graph/run_plan.hpp"

namespace tensorcast {
inline namespace TENSORCAST_ABI {

struct Program::Impl {
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::unordered_map<std::string, std::size_t> input_places;
  graph::Block plan;

  // Fills `tensors` in the order of the program's inputs.
  [[nodiscard]] Result<void> arrange(std::span<const NamedTensor> given, std::vector<Tensor>& tensors) const;
  [[nodiscard]] Result<std::vector<NamedTensor>> run(std::span<const Tensor> tensors, const Execution& execution) const;
};

namespace {

std::string list_of(const std::vector<ValueInfo>& values) {
  constexpr std::size_t most_shown = 10;
  std::string list;
  for (std::size_t i = 0; i < std::min(values.size(), most_shown); ++i) {
    list += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", values[i].name);
  }
  return values.size() > most_shown ? fmt::format("{} and {} more", list, values.size() - most_shown) : list;
}

}  // namespace

Result<Program> Program::compile(Graph graph) {
  return guarded([&]() -> Result<Program> {
    graph::Block plan = TRY(graph::build_plan(graph));
    Impl impl{.inputs = std::move(graph.inputs),
              .outputs = std::move(graph.outputs),
              .input_places = {},
              .plan = std::move(plan)};
    for (std::size_t i = 0; i < impl.inputs.size(); ++i) impl.input_places.emplace(impl.inputs[i].name, i);
    for (std::size_t i = 0; i < impl.outputs.size(); ++i) {
      impl.outputs[i].dtype = impl.plan.output_types[i].dtype;
      impl.outputs[i].shape = impl.plan.output_types[i].shape;
    }
    return Program(std::make_shared<const Impl>(std::move(impl)));
  });
}

std::span<const ValueInfo> Program::inputs() const noexcept {
  return impl_ == nullptr ? std::span<const ValueInfo>() : impl_->inputs;
}
std::span<const ValueInfo> Program::outputs() const noexcept {
  return impl_ == nullptr ? std::span<const ValueInfo>() : impl_->outputs;
}

Result<void> Program::Impl::arrange(std::span<const NamedTensor> given, std::vector<Tensor>& tensors) const {
  tensors.resize(inputs.size());
  for (const NamedTensor& input : given) {
    const auto place = input_places.find(input.name);
    if (place == input_places.end()) {
      return invalid(fmt::format("the graph has no input \"{}\"", input.name),
                     inputs.empty() ? "it has none" : "its inputs are " + list_of(inputs));
    }
    const ValueInfo& info = inputs[place->second];
    const std::string label = fmt::format("input \"{}\"", input.name);
    if (tensors[place->second].defined()) return at(label, invalid("it is given twice"));
    if (!input.tensor.defined()) return at(label, invalid("it is an undefined tensor"));
    TRY(at(label, graph::both(graph::type_of(input.tensor), {info.dtype, info.shape})));
    tensors[place->second] = input.tensor;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (tensors[i].defined()) continue;
    if (!inputs[i].default_value) return invalid(fmt::format("input \"{}\" is missing", inputs[i].name));
    tensors[i] = *inputs[i].default_value;
  }
  return {};
}

Result<std::vector<NamedTensor>> Program::Impl::run(std::span<const Tensor> tensors, const Execution& execution) const {
  graph::BufferPool pool(execution.memory);
  graph::RunContext context{execution, pool};
  std::vector<Tensor> results = TRY(graph::run_plan(plan, tensors, context));
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    named.push_back({outputs[i].name, std::move(results[i])});
  }
  return named;
}

Result<std::vector<NamedTensor>> Program::run(std::span<const NamedTensor> inputs, const Execution& execution) const {
  if (impl_ == nullptr) return moved_from("Program");
  TRY(check_execution(execution));
  return guarded([&]() -> Result<std::vector<NamedTensor>> {
    std::vector<Tensor> tensors;
    TRY(impl_->arrange(inputs, tensors));
    return impl_->run(tensors, execution);
  });
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
