// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/ir/graph_scopes.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {
namespace {

// A path that is longer than this becomes "#ID": each graph inside, and all that is listed of it, would repeat it.
constexpr std::size_t max_path_bytes = 1000;

void add_scopes(const Graph& graph, const std::string& path, std::vector<std::string>& scopes) {
  scopes[graph.id] = path;
  std::map<std::string_view, std::size_t> counts;  // of each operator that has graphs
  for (const Node& node : graph.nodes) {
    if (node.bodies().empty()) continue;
    const std::size_t number = counts[node.op_type]++;
    for (const Attribute& attribute : node.attributes) {
      for (std::size_t k = 0; k < attribute.graphs.size(); ++k) {
        std::string inner = path.empty() ? std::string() : path + "/";
        inner += node.name.empty() ? fmt::format("{}#{}", node.op_type, number) : node.name;
        inner += "." + attribute.name;
        if (attribute.graphs.size() > 1) inner += fmt::format("[{}]", k);
        if (inner.size() > max_path_bytes) inner = fmt::format("#{}", attribute.graphs[k]->id);
        add_scopes(*attribute.graphs[k], inner, scopes);
      }
    }
  }
}

}  // namespace

std::string type_text(const ValueType& type) {
  constexpr std::string_view kinds[] = {"", "", "sequence of ", "optional ", "optional sequence of ", ""};
  if (type.kind == ValueType::Kind::unknown) return "unknown";
  if (type.kind == ValueType::Kind::other) return "map or other";
  const std::string element = is_onnx(type.element) ? std::string(name(type.element))
                                                    : fmt::format("type {}", static_cast<std::uint32_t>(type.element));
  return std::string(kinds[static_cast<std::size_t>(type.kind)]) + element;
}

std::vector<std::string> graph_scopes(const Model& model) {
  std::vector<std::string> scopes(model.graph_count);
  add_scopes(*model.graph, "", scopes);
  for (const auto& function : model.functions) {
    const Function& named = function->origin == nullptr ? *function : *function->origin;
    std::string path = fmt::format("{}::{}", named.domain, named.name);
    if (!function->overload.empty()) path += ":" + function->overload;
    add_scopes(function->body, path, scopes);
  }
  return scopes;
}

}  // namespace tensorcast::models::onnx
