// SPDX-License-Identifier: Apache-2.0
// Builds a plan from a graph: names become slots, nodes are put in order and checked, branches become blocks.
#include "graph/execution_plan.hpp"
#include "dtype/errors.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "dtype/try.hpp"
#include "graph/inference.hpp"
#include "graph/node_order.hpp"

namespace tensorcast::graph {
namespace {

constexpr int max_nesting = 32;
// Limit of nodes and outputs. Branches can share graphs, so a small model could unfold into an endless one.
constexpr std::size_t max_branch_nodes = std::size_t{1} << 20;

using Names = std::set<std::string, std::less<>>;

// Shared by all blocks of one plan.
struct Shared {
  const PlanSettings& settings;
  std::size_t branch_nodes = 0;
  std::map<const Graph*, Names> outer_names;  // by branch: values that it names but does not define
};

void add_outer_names(const Graph& graph, int depth, Shared& shared, Names& names);

// Empty if nesting is too deep, which the builder reports when it gets there.
const Names& outer_names(const Graph& branch, int depth, Shared& shared) {
  static const Names none;
  if (depth > max_nesting) return none;
  if (const auto known = shared.outer_names.find(&branch); known != shared.outer_names.end()) return known->second;
  Names names;
  add_outer_names(branch, depth, shared, names);
  return shared.outer_names.insert_or_assign(&branch, std::move(names)).first->second;
}

void add_outer_names(const Graph& graph, int depth, Shared& shared, Names& names) {
  std::set<std::string_view> own;
  for (const GraphNode& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  const auto add = [&](const std::string& name) {
    if (!own.contains(name)) names.insert(name);
  };
  for (const GraphNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) add(input);
    const auto* choice = std::get_if<IfOp>(&node.operation);
    if (choice == nullptr) continue;
    for (const auto& branch : {choice->then_branch, choice->else_branch}) {
      if (branch == nullptr) continue;
      for (const std::string& name : outer_names(*branch, depth + 1, shared)) add(name);
    }
  }
  for (const ValueInfo& output : graph.outputs) add(output.name);
}

class BlockBuilder {
 public:
  BlockBuilder(const Graph& graph, BlockBuilder* outer, Shared& shared)
      : graph_(graph), outer_(outer), shared_(shared), depth_(outer == nullptr ? 0 : outer->depth_ + 1) {}

  Result<Block> build() {
    for (const auto part : {&BlockBuilder::check_size, &BlockBuilder::define_inputs, &BlockBuilder::define_nodes,
                            &BlockBuilder::add_steps, &BlockBuilder::add_outputs}) {
      TRY((this->*part)());
    }
    block_.slot_count = types_.size();
    if (shared_.settings.fuse) fuse_casts(block_, types_);
    finish_lifetimes(block_);
    return std::move(block_);
  }

  // The slots of captured values in the enclosing block, in the order of this block's arguments.
  [[nodiscard]] const std::vector<Slot>& captured() const { return captured_; }

 private:
  Result<void> check_size() {
    if (depth_ > max_nesting) return invalid(fmt::format("branches are nested deeper than {}", max_nesting));
    if (outer_ == nullptr) return {};
    shared_.branch_nodes += graph_.nodes.size() + graph_.outputs.size() + 1;
    if (shared_.branch_nodes > max_branch_nodes) {
      return invalid(fmt::format("the branches of If nodes come to more than {} nodes and outputs", max_branch_nodes));
    }
    if (graph_.inputs.empty()) return {};
    return invalid(fmt::format("a branch has no inputs of its own, but this one has \"{}\"", graph_.inputs[0].name),
                   "name values of the graph around it instead");
  }

  Slot new_slot(ValueType type) {
    types_.push_back(std::move(type));
    return types_.size() - 1;
  }

  Result<void> define_inputs() {
    for (const ValueInfo& input : graph_.inputs) {
      TRY(at(fmt::format("input \"{}\"", input.name), define_input(input)));
    }
    return {};
  }

  Result<void> define_input(const ValueInfo& input) {
    if (input.name.empty()) return invalid("it has no name");
    ValueType type{input.dtype, input.shape};
    TRY(check_declared(type));
    if (input.default_value) {
      if (!input.default_value->defined()) return invalid("its default value is an undefined tensor");
      TRY(at("default value", both(type_of(*input.default_value), type)));
    }
    const Slot slot = new_slot(std::move(type));
    block_.arguments.push_back(slot);
    if (!slots_.emplace(input.name, slot).second) return invalid("it is defined twice");
    return {};
  }

  Result<void> define_nodes() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const GraphNode& node = graph_.nodes[i];
      TRY(at(node_label(node, i), check_arity(node)));
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;  // not wanted
        const Slot slot = new_slot({});
        if (slots_.emplace(output, slot).second) {
          producers_.emplace(slot, i);
          continue;
        }
        const auto first = producers_.find(slots_.at(output));
        const std::string where = first == producers_.end() ? "an input of the graph"
                                                            : node_label(graph_.nodes[first->second], first->second);
        return at(node_label(node, i), invalid(fmt::format("it defines \"{}\", as {} does", output, where)));
      }
    }
    return {};
  }

  // Returns the slot of a value of this block, or of a value captured from an enclosing block.
  std::optional<Slot> find(const std::string& name) {
    if (const auto own = slots_.find(name); own != slots_.end()) return own->second;
    if (outer_ == nullptr) return std::nullopt;
    const std::optional<Slot> outside = outer_->find(name);
    if (!outside) return std::nullopt;
    const Slot slot = new_slot(outer_->types_[*outside]);
    slots_.emplace(name, slot);
    block_.arguments.push_back(slot);
    captured_.push_back(*outside);
    return slot;
  }

  // Returns the nodes of this block that must run before `node`.
  Result<std::vector<std::size_t>> needed_by(const GraphNode& node) {
    std::set<std::size_t> needed;
    const auto need = [&](const std::string& name) {
      const auto slot = slots_.find(name);
      if (slot == slots_.end()) return;
      if (const auto producer = producers_.find(slot->second); producer != producers_.end()) {
        needed.insert(producer->second);
      }
    };
    for (const std::string& input : node.inputs) {
      if (input.empty()) return invalid("an input has no name");
      if (!find(input)) {
        return invalid(fmt::format("its input \"{}\" is neither an input of the graph nor made by a node", input));
      }
      need(input);
    }
    if (const auto* choice = std::get_if<IfOp>(&node.operation)) {
      for (const auto& branch : {choice->then_branch, choice->else_branch}) {
        if (branch == nullptr) return invalid("a branch is missing");
        for (const std::string& name : outer_names(*branch, depth_ + 1, shared_)) need(name);
      }
    }
    return std::vector<std::size_t>(needed.begin(), needed.end());
  }

  Result<void> add_steps() {
    Predecessors predecessors;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      std::vector<std::size_t> needed = TRY(at(node_label(graph_.nodes[i], i), needed_by(graph_.nodes[i])));
      predecessors.push_back(std::move(needed));
    }
    const std::vector<std::size_t> order = order_nodes(predecessors);
    if (order.size() != graph_.nodes.size()) return cycle_error(predecessors, order);
    for (const std::size_t i : order) {
      const std::string label = node_label(graph_.nodes[i], i);
      TRY(at(label, add_step(graph_.nodes[i], label)));
    }
    return {};
  }

  Error cycle_error(const Predecessors& predecessors, const std::vector<std::size_t>& order) const {
    constexpr std::size_t most_shown = 6;
    const std::vector<std::size_t> cycle = find_cycle(predecessors, order);
    std::string path;
    for (std::size_t i = 0; i < std::min(cycle.size(), most_shown); ++i) {
      path += node_label(graph_.nodes[cycle[i]], cycle[i]) + " -> ";
    }
    if (cycle.size() > most_shown) path += fmt::format("{} more -> ", cycle.size() - most_shown);
    return invalid(fmt::format("nodes need each other in a cycle: {}back to the first", path));
  }

  Result<void> add_step(const GraphNode& node, std::string label) {
    Step step;
    step.label = std::move(label);
    std::vector<ValueType> inputs;
    for (const std::string& input : node.inputs) {
      step.inputs.push_back(*find(input));  // needed_by() checked that it exists
      inputs.push_back(types_[step.inputs.back()]);
    }
    std::vector<ValueType> outputs;
    if (const auto* choice = std::get_if<IfOp>(&node.operation)) {
      outputs = TRY(add_branches(*choice, inputs[0], node.outputs.size(), step));
    } else {
      outputs = TRY(infer_outputs(node.operation, inputs));
      step.work = work_of(node.operation, outputs, step);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const bool wanted = !node.outputs[i].empty();
      step.outputs.push_back(wanted ? slots_.at(node.outputs[i]) : no_slot);
      if (wanted) types_[step.outputs.back()] = std::move(outputs[i]);
    }
    block_.steps.push_back(std::move(step));
    return {};
  }

  static Work work_of(const Operation& operation, const std::vector<ValueType>& outputs, Step& step) {
    const auto* like = std::get_if<CastLikeOp>(&operation);
    if (like != nullptr && outputs[0].dtype != DType::undefined) {
      step.inputs.pop_back();  // only its type is needed
      return CastOp{outputs[0].dtype, like->options};
    }
    const auto same = [](const auto& work) -> Work {
      if constexpr (std::is_constructible_v<Work, decltype(work)>) return work;
      return IfWork{};  // which add_branches() makes
    };
    return std::visit(same, operation);
  }

  Result<std::vector<ValueType>> add_branches(const IfOp& choice, const ValueType& condition, std::size_t output_count,
                                              Step& step) {
    const bool may_be_one_element =
        !condition.shape ||
        std::ranges::all_of(*condition.shape, [](std::int64_t dimension) { return dimension == 1 || dimension == -1; });
    if ((condition.dtype != DType::boolean && condition.dtype != DType::undefined) || !may_be_one_element) {
      return invalid(fmt::format("its condition is a bool of one element, not {}", describe(condition)));
    }
    IfWork work;
    std::vector<ValueType> merged;
    for (const bool is_then : {true, false}) {
      const Graph& graph = is_then ? *choice.then_branch : *choice.else_branch;
      const char* which = is_then ? "then branch" : "else branch";
      BlockBuilder builder(graph, this, shared_);
      Block block = TRY(at(which, builder.build()));
      if (block.outputs.size() != output_count) {
        return at(which, invalid(fmt::format("it gives {} values, but the node has {} outputs", block.outputs.size(),
                                             output_count)));
      }
      for (std::size_t i = 0; i < output_count; ++i) {
        const ValueType& type = block.output_types[i];
        if (is_then) {
          merged.push_back(type);
          continue;
        }
        merged[i] = TRY(at(fmt::format("output {} of its branches", i), either(merged[i], type)));
      }
      step.inputs.insert(step.inputs.end(), builder.captured().begin(), builder.captured().end());
      (is_then ? work.then_block : work.else_block) = std::make_shared<const Block>(std::move(block));
    }
    step.work = std::move(work);
    return merged;
  }

  Result<void> add_outputs() {
    std::set<std::string_view> seen;
    for (const ValueInfo& output : graph_.outputs) {
      const std::string label = fmt::format("output \"{}\"", output.name);
      const ValueType declared{output.dtype, output.shape};
      TRY(at(label, check_declared(declared)));
      const std::optional<Slot> slot = output.name.empty() ? std::nullopt : find(output.name);
      if (!slot) return at(label, invalid("it is neither an input of the graph nor made by a node"));
      if (!seen.insert(output.name).second) return at(label, invalid("it is listed twice", "put an Identity between"));
      ValueType type = TRY(at(label, both(types_[*slot], declared)));
      block_.outputs.push_back(*slot);
      block_.output_names.push_back(output.name);
      block_.output_types.push_back(std::move(type));
    }
    return {};
  }

  const Graph& graph_;
  BlockBuilder* outer_;
  Shared& shared_;
  int depth_;
  Block block_;
  std::vector<ValueType> types_;                     // of the slots
  std::unordered_map<std::string, Slot> slots_;      // by name
  std::unordered_map<Slot, std::size_t> producers_;  // nodes of this block
  std::vector<Slot> captured_;
};

}  // namespace

Result<Block> build_plan(const Graph& graph, const PlanSettings& settings) {
  Shared shared{.settings = settings, .branch_nodes = 0, .outer_names = {}};
  return BlockBuilder(graph, nullptr, shared).build();
}

}  // namespace tensorcast::graph
