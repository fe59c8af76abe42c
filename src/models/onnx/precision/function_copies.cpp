// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/precision/function_copies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtype/try.hpp"
#include "models/onnx/ir/fresh_names.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/ir/type_inference.hpp"

namespace tensorcast::models::onnx {
namespace {

// Calls whose types agree; an unknown type agrees with every type.
struct Group {
  std::vector<ValueType> signature;
  std::vector<Node*> nodes = {};

  [[nodiscard]] bool takes(const FunctionCall& call) const {
    const std::size_t both = std::min(signature.size(), call.signature.size());
    return std::equal(signature.begin(), signature.begin() + static_cast<std::ptrdiff_t>(both), call.signature.begin(),
                      [](const ValueType& a, const ValueType& b) {
                        const bool known = a.kind != ValueType::Kind::unknown && b.kind != ValueType::Kind::unknown;
                        return !known || a == b;
                      });
  }
  void add(const FunctionCall& call) {
    nodes.push_back(call.node);
    if (signature.size() < call.signature.size()) signature.resize(call.signature.size());
    for (std::size_t k = 0; k < call.signature.size(); ++k) {
      if (signature[k].kind == ValueType::Kind::unknown) signature[k] = call.signature[k];
    }
  }
};

// A malicious model has functions of many inputs, and calls them with all combinations of types.
constexpr std::size_t most_signatures = 64;
// Functions that call functions.
constexpr int max_call_depth = 32;

// Returns nothing if a caller's own types are not known yet, or there are too many signatures.
std::vector<Group> group_by_signature(const std::vector<FunctionCall>& calls) {
  std::vector<Group> groups;
  for (const FunctionCall& call : calls) {
    if (call.varies) return {};
    auto group = std::ranges::find_if(groups, [&](const Group& each) { return each.takes(call); });
    if (group == groups.end()) {
      if (groups.size() == most_signatures) return {};
      groups.push_back({.signature = call.signature});
      group = std::prev(groups.end());
    }
    group->add(call);
  }
  return groups;
}

class Separation {
 public:
  Separation(const io::InputFile& file, Model& model, const PrecisionPlan::Settings& settings)
      : file_(file), model_(model), settings_(settings), bytes_left_(file.size()), budget_(file.size()) {
    const auto take_names = [&](const Graph& graph) {
      for (const Node& node : graph.nodes) names_.add(node.op_type);
    };
    each_graph(*model.graph, take_names);
    for (const auto& function : model.functions) {
      names_.add(function->name);
      each_graph(function->body, take_names);
    }
  }

  Result<void> run() {
    for (int level = 0;; ++level) {
      const auto calls = infer_calls(model_);
      if (level == max_call_depth) return {};
      bool copied = false;
      const std::size_t count = model_.functions.size();
      for (std::size_t k = 0; k < count; ++k) {
        Function& function = *model_.functions[k];
        const auto found = calls.find(&function.body);
        if (found == calls.end() || function.domain == tensorcast_domain) continue;
        const bool done = TRY(separate(function, group_by_signature(found->second)));
        copied = copied || done;
      }
      if (!copied) return {};
    }
  }

 private:
  [[nodiscard]] bool converts(const Group& group) const {
    return std::ranges::any_of(group.signature, [&](const ValueType& type) { return settings_.converts(type); });
  }

  Result<bool> separate(Function& function, const std::vector<Group>& groups) {
    if (groups.size() < 2 || std::ranges::none_of(groups, [&](const Group& g) { return converts(g); })) {
      return false;
    }
    const std::uint64_t bytes = function.body.field.length * (groups.size() - 1);
    if (bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    Function& origin = function.origin == nullptr ? function : *function.origin;
    for (std::size_t k = 1; k < groups.size(); ++k) {
      const Function* copy = TRY(copy_function(file_, model_, origin, names_.take(origin.name), budget_));
      for (Node* node : groups[k].nodes) node->callee = copy->name;
    }
    return true;
  }

  const io::InputFile& file_;
  Model& model_;
  const PrecisionPlan::Settings& settings_;
  std::uint64_t bytes_left_;
  io::MemoryBudget budget_;
  FreshNames names_;  // of functions and operators, whatever their domains
};

}  // namespace

Result<void> separate_signatures(const io::InputFile& file, Model& model, const PrecisionPlan::Settings& settings) {
  return Separation(file, model, settings).run();
}

}  // namespace tensorcast::models::onnx
