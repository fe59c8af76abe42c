// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/operator_types.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/errors.hpp"
#include "dtype/text_parts.hpp"
#include "dtype/try.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "tensorcast/dtype.hpp"

namespace tensorcast::models::onnx {
namespace {

Error refused(const std::string& entry, std::string_view why) {
  return invalid(fmt::format("\"{}\" {}", shown(entry), why),
                 "write DOMAIN::OPERATOR:in=TYPE,out=TYPE, or in0=TYPE for one input");
}

bool is_floating(DType dtype) { return is_onnx(dtype) && family(dtype) == Family::floating; }

// `in`, `out`, `in0`, `out12`.
Result<void> take_type(std::string_view part, const std::string& entry, OperatorTypes& types) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return refused(entry, "does not give the types of an operator");
  std::string_view place = part.substr(0, equals);
  const bool is_input = place.starts_with("in");
  if (!is_input && !place.starts_with("out")) return refused(entry, "does not give the types of an operator");
  place.remove_prefix(is_input ? 2 : 3);
  const DType dtype = TRY(parse_dtype(part.substr(equals + 1)));
  if (!is_floating(dtype)) return refused(entry, "gives a type that is not floating-point");
  if (place.empty()) {
    (is_input ? types.all_inputs : types.all_outputs) = dtype;
    return {};
  }
  const std::optional<std::size_t> index = parse_whole<std::size_t>(place);
  if (!index) return refused(entry, "does not give the types of an operator");
  (is_input ? types.inputs : types.outputs)[*index] = dtype;
  return {};
}

DType find_type(const std::map<std::size_t, DType>& single, DType all, std::size_t index) {
  const auto found = single.find(index);
  return found == single.end() ? all : found->second;
}

}  // namespace

DType OperatorTypes::input(std::size_t index) const { return find_type(inputs, all_inputs, index); }
DType OperatorTypes::output(std::size_t index) const { return find_type(outputs, all_outputs, index); }

Result<std::vector<OperatorTypes>> parse_operator_types(const std::vector<std::string>& entries) {
  std::vector<OperatorTypes> parsed;
  for (const std::string& entry : entries) {
    const std::size_t scope = entry.find("::");
    const std::size_t colon = entry.find(':', scope == std::string::npos ? 0 : scope + 2);
    if (colon == std::string::npos) return refused(entry, "does not give the types of an operator");
    OperatorTypes& types = parsed.emplace_back();
    if (scope != std::string::npos && scope < colon) types.domain = normal_domain(entry.substr(0, scope));
    const std::size_t begin = scope == std::string::npos ? 0 : scope + 2;
    types.op_type = entry.substr(begin, colon - begin);
    std::string_view rest = std::string_view(entry).substr(colon + 1);
    while (true) {
      const std::size_t comma = rest.find(',');
      TRY(take_type(rest.substr(0, comma), entry, types));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return parsed;
}

Result<std::vector<OperatorTypes>> operator_types_of(const Model& model, const std::vector<std::string>& entries) {
  std::vector<OperatorTypes> parsed = TRY(parse_operator_types(entries));
  for (std::size_t i = 0; i < parsed.size(); ++i) {
    bool known = false;
    each_graph(model, [&](const Graph& graph) {
      known = known || std::ranges::any_of(graph.nodes, [&](const Node& node) { return parsed[i].names(node); });
    });
    if (!known) return refused(entries[i], "names an operator that the model does not have");
  }
  return parsed;
}

}  // namespace tensorcast::models::onnx
