// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ir/resolve_names.hpp"

#include <fmt/format.h>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"

namespace tensorcast::models::onnx {
namespace {

class Resolver {
 public:
  Resolver(Model& model, const std::vector<Opset>& opsets, io::MemoryBudget& budget)
      : model_(model), opsets_(opsets), budget_(budget) {}

  // Names become values. A graph may take values of the graphs around it; a function sees only its own.
  Result<void> resolve(Graph& graph, const Graph* parent) {
    graph.parent = parent;
    graph.opsets = &opsets_;
    for (Declaration& input : graph.inputs) {
      const ValueId id = TRY(define(graph, input.name));
      input.value = id;
      model_.values[id].is_input = true;
      model_.values[id].type = input.type;
    }
    for (Initializer& initializer : graph.initializers) {
      const auto known = graph.names.find(initializer.name);
      ValueId id = TRY(known == graph.names.end() ? define(graph, initializer.name) : known->second);
      Value& value = model_.values[id];
      if (value.initializer != nullptr) {
        return parse_error(fmt::format("there are two initializers \"{}\"", shown(initializer.name)));
      }
      value.initializer = &initializer;
      value.type = tensor_of(initializer.element);
      initializer.value = id;
    }
    for (Node& node : graph.nodes) {
      for (const std::string& name : node.output_names) {
        node.outputs.push_back(no_value);
        if (name.empty()) continue;
        const ValueId id = TRY(define(graph, name));
        node.outputs.back() = id;
        model_.values[id].producer = &node;
      }
    }
    for (Node& node : graph.nodes) {
      for (const std::string& name : node.input_names) {
        const ValueId id = graph.lookup(name);
        if (id == no_value && !name.empty()) {
          return parse_error(
              fmt::format("nothing defines the value \"{}\", which {} takes", shown(name), shown(node.op_type)));
        }
        node.inputs.push_back(id);
      }
      for (Graph* inner : node.bodies()) {
        TRY(resolve(*inner, &graph));
      }
    }
    for (Declaration& output : graph.outputs) {
      output.value = graph.lookup(output.name);
      if (output.value == no_value) {
        return parse_error(fmt::format("nothing defines the output \"{}\"", shown(output.name)));
      }
      Value& value = model_.values[output.value];
      if (value.graph == &graph) value.is_output = true;
      if (value.type.kind == ValueType::Kind::unknown) value.type = output.type;
    }
    for (Declaration& info : graph.infos) {
      const auto known = graph.names.find(info.name);
      if (known == graph.names.end()) continue;
      info.value = known->second;
      Value& value = model_.values[info.value];
      if (value.type.kind == ValueType::Kind::unknown) value.type = info.type;
    }
    return {};
  }

 private:
  Result<ValueId> define(Graph& graph, const std::string& name) {
    TRY(budget_.take(sizeof(Value) + 2 * name.size()));
    const auto id = static_cast<ValueId>(model_.values.size());
    if (!graph.names.emplace(name, id).second) {
      return parse_error(fmt::format("the value \"{}\" is defined twice", shown(name)));
    }
    model_.values.push_back({.name = name, .graph = &graph});
    model_.value_names.insert(name);
    return id;
  }

  Model& model_;
  const std::vector<Opset>& opsets_;
  io::MemoryBudget& budget_;
};

}  // namespace

Result<void> resolve_names(Model& model, Graph& graph, const std::vector<Opset>& opsets, io::MemoryBudget& budget) {
  return Resolver(model, opsets, budget).resolve(graph, nullptr);
}

}  // namespace tensorcast::models::onnx
