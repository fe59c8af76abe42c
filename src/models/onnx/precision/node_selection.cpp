// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/node_selection.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/lookup.hpp"
#include "dtype/try.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "quantized/names/name_pattern.hpp"

namespace tensorcast::models::onnx {
namespace {

using file_conversion::NamePattern;

// `*` is any text, `?` any character; the whole name must match.
std::string regex_of_glob(std::string_view glob) {
  std::string regex = "^(?s:";
  for (const char c : glob) {
    if (c == '*') {
      regex += ".*";
    } else if (c == '?') {
      regex += '.';
    } else {
      const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                           static_cast<unsigned char>(c) >= 0x80;
      if (!is_word) regex += '\\';
      regex += c;
    }
  }
  return regex + ")$";
}

bool takes(const Node& node, std::string_view tensor) { return contains(node.input_names, tensor); }
bool gives(const Node& node, std::string_view tensor) { return contains(node.output_names, tensor); }

using Test = std::function<bool(const Node&, const std::string& scope)>;

Result<Test> test_of(std::string_view entry) {
  constexpr std::string_view kinds[] = {"op",    "name",   "glob",        "re",         "domain",
                                        "graph", "tensor", "consumer-of", "producer-of"};
  const std::size_t colon = entry.find(':');
  const std::string_view kind = colon == std::string_view::npos ? std::string_view() : entry.substr(0, colon);
  if (!contains(kinds, kind)) {
    return invalid(fmt::format("\"{}\" selects no nodes", shown(entry)),
                   "write op:TYPE, name:NAME, glob:PATTERN, re:REGEX, domain:DOMAIN, graph:PATTERN, tensor:NAME, "
                   "consumer-of:TENSOR or producer-of:TENSOR");
  }
  const std::string text(entry.substr(colon + 1));
  if (kind == "op") return Test([text](const Node& node, const std::string&) { return node.op_type == text; });
  if (kind == "name") return Test([text](const Node& node, const std::string&) { return shown_name(node) == text; });
  if (kind == "domain") {
    return Test([domain = normal_domain(text)](const Node& node, const std::string&) { return node.domain == domain; });
  }
  if (kind == "tensor") {
    return Test([text](const Node& node, const std::string&) { return takes(node, text) || gives(node, text); });
  }
  if (kind == "consumer-of") return Test([text](const Node& node, const std::string&) { return takes(node, text); });
  if (kind == "producer-of") return Test([text](const Node& node, const std::string&) { return gives(node, text); });
  NamePattern pattern = TRY(NamePattern::compile(kind == "re" ? text : regex_of_glob(text)));
  if (kind == "graph") {
    return Test([regex = std::move(pattern)](const Node&, const std::string& scope) {
      return !scope.empty() && regex.matches(scope);
    });
  }
  return Test(
      [regex = std::move(pattern)](const Node& node, const std::string&) { return regex.matches(shown_name(node)); });
}

}  // namespace

Result<std::vector<bool>> select_nodes(const Model& model, const std::vector<std::string>& entries,
                                       std::string_view option) {
  std::vector<bool> selected(model.node_count);
  if (entries.empty()) return selected;
  const std::vector<std::string> scopes = graph_scopes(model);
  for (const std::string& entry : entries) {
    const Test test = TRY(test_of(entry));
    bool any = false;
    each_graph(model, [&](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        if (!(test)(node, scopes[graph.id])) continue;
        selected[node.id] = true;
        any = true;
      }
    });
    if (!any) {
      return invalid(fmt::format("no node of the model matches \"{}\" of `{}`", shown(entry), option),
                     "`tcast onnx casts MODEL --picture model.dot` draws its nodes with their names");
    }
  }
  return selected;
}

Result<void> check_selectors(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) TRY(test_of(entry));
  return {};
}

}  // namespace tensorcast::models::onnx
