// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ir/model_ir.hpp"

#include <utility>

#include "dtype/lookup.hpp"

namespace tensorcast::models::onnx {

const Attribute* Node::attribute(std::string_view wanted) const noexcept {
  return find_row(attributes, &Attribute::name, wanted);
}

Initializer as_initializer(const Attribute& attribute) {
  Initializer tensor;
  tensor.tensor = attribute.tensor;
  tensor.element = attribute.tensor_element;
  tensor.count = attribute.tensor_count;
  tensor.rank = attribute.tensor_rank;
  tensor.sparse = attribute.name == "sparse_value";
  tensor.external = attribute.tensor_is_external;
  return tensor;
}

std::vector<Graph*> Node::bodies() const {
  std::vector<Graph*> found;
  for (const Attribute& attribute : attributes) {
    for (const auto& graph : attribute.graphs) found.push_back(graph.get());
  }
  return found;
}

std::int64_t Graph::opset(std::string_view domain) const noexcept {
  std::int64_t version = 0;
  for (const Opset& opset : *opsets) {
    if (opset.domain == domain) version = opset.version;
  }
  return version;
}

const Function* Model::function(const Node& node) const noexcept {
  const auto [begin, end] = functions_by_name.equal_range(node.callee.empty() ? node.op_type : node.callee);
  for (auto found = begin; found != end; ++found) {
    const Function& function = *found->second;
    if (function.domain == node.domain && function.overload == node.overload) return &function;
  }
  return nullptr;
}

ValueId Graph::lookup(const std::string& wanted) const {
  if (wanted.empty()) return no_value;
  for (const Graph* scope = this; scope != nullptr; scope = scope->parent) {
    if (const auto found = scope->names.find(wanted); found != scope->names.end()) return found->second;
  }
  return no_value;
}

std::string shown(std::string_view name) {
  constexpr std::size_t longest = 200;
  if (name.size() <= longest) return std::string(name);
  return std::string(name.substr(0, longest)) + "...";
}

std::string normal_domain(std::string domain) { return domain == "ai.onnx" ? std::string() : std::move(domain); }

}  // namespace tensorcast::models::onnx
