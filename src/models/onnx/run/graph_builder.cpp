// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/run/graph_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "io/memory_budget.hpp"
#include "models/onnx/run/check_runnable.hpp"
#include "models/onnx/run/node_attributes.hpp"
#include "models/onnx/run/tensor_loader.hpp"

namespace tensorcast::models::onnx {
namespace {

using Built = ::tensorcast::Graph;

constexpr int max_call_depth = 64;
constexpr std::uint64_t max_inlined_nodes = std::uint64_t{1} << 17;
constexpr std::uint64_t max_inlined_bytes = std::uint64_t{32} << 20;  // limit for inlined function calls
constexpr std::size_t bytes_per_part = 64;                            // per input, output and attribute

std::string operator_title(const Node& node) {
  return shown(node.domain.empty() ? node.op_type : node.domain + "." + node.op_type);
}

std::string node_title(const Node& node) {
  const std::string op = operator_title(node);
  if (!node.name.empty()) return fmt::format("node \"{}\" ({})", shown(node.name), op);
  return fmt::format("the {} node of \"{}\"", op, shown(node.output_names.empty() ? "" : node.output_names.front()));
}

// Returns the version of the standard operators; 0 if there is none.
Result<int> standard_opset(const std::vector<Opset>& opsets) {
  std::int64_t version = 0;
  for (const Opset& opset : opsets) {
    if (!opset.domain.empty()) continue;
    if (version != 0 && version != opset.version) {
      return parse_error(
          fmt::format("the standard operators are imported in versions {} and {}", version, opset.version));
    }
    version = opset.version;
    if (version <= 0) return parse_error(fmt::format("there is no version {} of the standard operators", version));
  }
  if (version > newest_opset()) {
    return unsupported(fmt::format("version {} of the standard operators is newer than {}, the newest that is known",
                                   version, newest_opset()),
                       "onnx.version_converter may convert the model to an older one");
  }
  return static_cast<int>(version);
}

constexpr int newest_cast_like_opset = 25;  // ONNX 28 has no CastLike of its own

// The context of nodes: the main graph, or one call of a function.
struct Frame {
  const Frame* caller = nullptr;
  const Function* function = nullptr;  // null: the main graph
  int opset = 0;                       // of the standard operators; 0: not imported
  Attributes attributes = {};          // of the call
  std::string prefix = {};             // of the names of values
  std::string title = {};              // of the call, for messages; ends with a slash
  int depth = 0;
};

// Maps names of values in nodes to names in the result. The main graph and its subgraphs keep their names.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string, std::string> names = {};
};

class GraphBuilder {
 public:
  GraphBuilder(const Model& model, const io::InputFile& file) : model_(model), loader_(file) {}

  Result<Built> build() {
    TRY(list_functions());
    int opset = TRY(standard_opset(model_.opsets));
    // Models before IR version 3 do not name their operator sets.
    if (opset == 0 && model_.ir_version < 3 && model_.opsets.empty()) opset = 1;
    find_unused_prefix(*model_.graph);
    const Frame frame{.opset = opset};
    return build_graph(*model_.graph, frame, Scope{}, true);
  }

 private:
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;

  Result<void> list_functions() {
    for (const auto& function : model_.functions) {
      if (!functions_.emplace(FunctionKey{function->domain, function->name, function->overload}, function.get())
               .second) {
        return parse_error(fmt::format("the function \"{}\" of domain \"{}\" is defined twice", shown(function->name),
                                       shown(function->domain)));
      }
    }
    return {};
  }

  // Finds a prefix that no value's name begins with, for values of inlined functions.
  void find_unused_prefix(const Graph& graph) {
    const auto avoid = [&](std::string_view name) {
      const std::size_t marks = std::min(name.find_first_not_of('#'), name.size());
      if (marks >= prefix_.size()) prefix_.assign(marks + 1, '#');
    };
    each_graph(graph, [&](const Graph& each) {
      for (const Declaration& input : each.inputs) avoid(input.name);
      for (const Declaration& output : each.outputs) avoid(output.name);
      for (const Node& node : each.nodes) {
        for (const std::string& output : node.output_names) avoid(output);
        for (const std::string& input : node.input_names) avoid(input);
      }
    });
  }

  static ValueInfo info_of(const Declaration& declared) {
    return {.name = declared.name, .dtype = declared.type.element, .shape = declared.shape};
  }

  static Error too_large() { return unsupported("the model's functions grow too large when they are inlined"); }

  // Takes memory for data whose size grows with the calls of a function instead of the file.
  Result<void> spend(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= max_inlined_bytes) return {};
    return too_large();
  }

  // Builds the main graph, or a branch.
  Result<Built> build_graph(const Graph& tree, const Frame& frame, const Scope& outer, bool is_main) {
    Built graph;
    graph.name = tree.name;
    if (!is_main && !tree.inputs.empty()) {
      return parse_error(
          fmt::format("a branch has the input \"{}\", but branches take none", shown(tree.inputs[0].name)));
    }
    for (const Declaration& input : tree.inputs) graph.inputs.push_back(info_of(input));
    Scope scope{.outer = is_main ? nullptr : &outer};
    TRY(add_initializers(tree, frame, scope, graph));
    TRY(add_nodes(tree.nodes, frame, scope, graph));
    for (const Declaration& output : tree.outputs) {
      std::string name = TRY(find_value(output.name, frame, scope));
      ValueInfo& info = graph.outputs.emplace_back(info_of(output));
      info.name = std::move(name);
    }
    return graph;
  }

  Result<void> add_initializers(const Graph& tree, const Frame& frame, Scope& scope, Built& graph) {
    std::unordered_map<std::string_view, ValueInfo*> inputs;
    for (ValueInfo& input : graph.inputs) inputs.emplace(input.name, &input);
    std::unordered_set<std::string> seen;
    for (const Initializer& initializer : tree.initializers) {
      Result<NamedTensor> tensor = loader_.load(initializer.tensor);
      if (!tensor) {
        if (tensor.error().tensor.empty()) {  // the name itself may be unreadable
          tensor.error().message.insert(0, fmt::format("initializer {}: ", &initializer - tree.initializers.data()));
        }
        return std::move(tensor).error();
      }
      const std::string& name = tensor->name;
      if (name.empty()) return parse_error("an initializer has no name");
      if (!seen.insert(name).second) return parse_error(fmt::format("there are two initializers \"{}\"", shown(name)));
      if (const auto input = inputs.find(name); input != inputs.end()) {
        input->second->default_value = std::move(tensor->tensor);
        continue;
      }
      TRY(define(name, frame, scope));
      std::string value = TRY(find_value(name, frame, scope));
      GraphNode& node = graph.nodes.emplace_back();
      node.name = name;
      node.operation = ConstantOp{.value = std::move(tensor->tensor)};
      node.outputs.push_back(std::move(value));
    }
    return {};
  }

  // Names a value of a function or of its branches in the result, unless it already has a name.
  Result<void> define(const std::string& name, const Frame& frame, Scope& scope) {
    if (frame.function == nullptr || name.empty()) return {};
    std::string fresh = frame.prefix + name;
    TRY(spend(fresh.size()));
    if (scope.outer != nullptr) {
      // The names of a branch's values must differ from those of the function and the other branch.
      fresh = fmt::format("{}{}/{}", frame.prefix, ++calls_, name);
    }
    scope.names.try_emplace(name, std::move(fresh));
    return {};
  }

  static Result<std::string> find_value(const std::string& name, const Frame& frame, const Scope& scope) {
    if (frame.function == nullptr) return name;
    for (const Scope* level = &scope; level != nullptr; level = level->outer) {
      if (const auto found = level->names.find(name); found != level->names.end()) return found->second;
    }
    return parse_error(
        fmt::format("the function \"{}\" has no value \"{}\"", shown(frame.function->name), shown(name)));
  }

  Result<void> add_nodes(const std::vector<Node>& nodes, const Frame& frame, Scope& scope, Built& graph) {
    for (const Node& node : nodes) {
      for (const std::string& output : node.output_names) {
        TRY(define(output, frame, scope));
      }
    }
    for (const Node& node : nodes) {
      if (frame.function != nullptr && ++inlined_nodes_ > max_inlined_nodes) return too_large();
      Result<void> added = add_node(node, frame, scope, graph);
      if (added) continue;
      // The error names the innermost node.
      if (!std::exchange(node_named_, true)) {
        added.error().message = fmt::format("{}{}: {}", frame.title, node_title(node), added.error().message);
      }
      return added;
    }
    return {};
  }

  Result<void> add_node(const Node& node, const Frame& frame, Scope& scope, Built& graph) {
    const Attributes* outer = frame.function == nullptr ? nullptr : &frame.attributes;
    if (outer != nullptr) {
      const std::size_t parts = node.input_names.size() + node.output_names.size() + node.attributes.size();
      TRY(spend(parts * bytes_per_part + frame.title.size() + node.name.size()));
    }
    Attributes attributes = TRY(resolve_attributes(node, outer));

    GraphNode result;
    result.name = frame.title + node.name;
    for (const std::string& input : node.input_names) {
      if (input.empty()) {
        result.inputs.emplace_back();
        continue;
      }
      std::string name = TRY(find_value(input, frame, scope));
      TRY(spend(outer != nullptr ? name.size() : 0));
      result.inputs.push_back(std::move(name));
    }
    for (const std::string& output : node.output_names) {
      std::string name = TRY(output.empty() ? unused_value() : find_value(output, frame, scope));
      result.outputs.push_back(std::move(name));
    }

    const bool standard = node.domain.empty() && is_run(node.op_type);
    if (!standard) {
      const auto function = functions_.find(FunctionKey{node.domain, node.op_type, node.overload});
      if (function == functions_.end()) return no_conversion(node);
      return call(*function->second, std::move(attributes), std::move(result), frame, graph);
    }
    const bool has_optional_input = node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear";
    if (has_optional_input && result.inputs.size() == 3 && result.inputs.back().empty()) result.inputs.pop_back();
    if (const auto missing = std::ranges::find(result.inputs, ""); missing != result.inputs.end()) {
      return parse_error(fmt::format("input {} is left out, but is not optional", missing - result.inputs.begin()));
    }
    result.operation = TRY(standard_operation(node, attributes, frame, scope));
    graph.nodes.push_back(std::move(result));
    return {};
  }

  // Unused outputs have no name in ONNX.
  Result<std::string> unused_value() {
    std::string name = fmt::format("{}{}", prefix_, ++calls_);
    TRY(spend(name.size()));
    return name;
  }

  // The first opset of an operator that came after opset 1; 0: it is another.
  static int first_opset(std::string_view op_type) {
    if (op_type == "QuantizeLinear" || op_type == "DequantizeLinear") return 10;
    if (op_type == "DynamicQuantizeLinear") return 11;
    if (op_type == "CastLike") return 15;
    if (op_type == "BitCast") return 26;
    return 0;
  }

  static bool is_run(std::string_view op_type) {
    return op_type == "Cast" || op_type == "Identity" || op_type == "Constant" || op_type == "If" ||
           first_opset(op_type) != 0;
  }

  static Error no_conversion(const Node& node) {
    return unsupported(fmt::format("{} is not an operator that is run here", operator_title(node)),
                       "Cast, CastLike, BitCast, QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, Constant, "
                       "Identity, If and the model's own functions of these are");
  }

  Result<Operation> standard_operation(const Node& node, const Attributes& attributes, const Frame& frame,
                                       const Scope& scope) {
    const int opset = frame.opset;
    if (opset == 0) {
      return parse_error(fmt::format("the {} imports no version of the standard operators",
                                     frame.function == nullptr ? "model" : "function"));
    }
    if (const int first = first_opset(node.op_type); opset < first) {
      return unsupported(fmt::format("opset {} has no {}; it came with opset {}", opset, node.op_type, first));
    }
    TRY(check_attributes(node.op_type, opset, attributes));
    if (node.op_type == "Cast" || node.op_type == "CastLike") {
      const CastOptions options = TRY(cast_options(opset, attributes));
      if (node.op_type == "CastLike") {
        CastOptions like_options = options;  // CastLike lacks types that were added later
        like_options.opset = std::min(like_options.opset, newest_cast_like_opset);
        return Operation(CastLikeOp{.options = like_options});
      }
      const DType to = TRY(cast_target(opset, attributes));
      return Operation(CastOp{.to = to, .options = options});
    }
    if (node.op_type == "BitCast") {
      const DType to = TRY(cast_target(opset, attributes));
      return Operation(BitCastOp{.to = to});
    }
    if (node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear") {
      return linear_operation(node.op_type == "QuantizeLinear", opset, attributes);
    }
    if (node.op_type == "DynamicQuantizeLinear") return Operation(DynamicQuantizeLinearOp{});
    if (node.op_type == "Identity") return Operation(IdentityOp{});
    if (node.op_type == "Constant") return constant(attributes);
    return branches(node, attributes, frame, scope);
  }

  static Result<Operation> linear_operation(bool quantizes, int opset, const Attributes& attributes) {
    const std::int64_t axis = TRY(integer_attribute("axis", 1, attributes));
    const std::int64_t block_size = TRY(integer_attribute("block_size", 0, attributes));
    const std::int64_t saturate = TRY(integer_attribute("saturate", 1, attributes));
    const DType output_dtype = TRY(type_attribute("output_dtype", attributes));
    const DType precision = TRY(type_attribute("precision", attributes));
    if (quantizes) {
      return Operation(QuantizeLinearOp{.opset = opset,
                                        .axis = axis,
                                        .block_size = block_size,
                                        .saturate = saturate != 0,
                                        .output_dtype = output_dtype,
                                        .precision = precision});
    }
    return Operation(
        DequantizeLinearOp{.opset = opset, .axis = axis, .block_size = block_size, .output_dtype = output_dtype});
  }

  // A constant of a function is made once for all its calls.
  Result<Operation> constant(const Attributes& attributes) {
    const Attribute* key = attributes.size() == 1 ? attributes.begin()->second : nullptr;
    const auto known = constants_.find(key);
    if (key != nullptr && known != constants_.end()) return Operation(ConstantOp{.value = known->second});
    Tensor value = TRY(constant_value(attributes, loader_));
    if (key != nullptr) constants_.emplace(key, value);
    return Operation(ConstantOp{.value = std::move(value)});
  }

  Result<Operation> branches(const Node& node, const Attributes& attributes, const Frame& frame, const Scope& scope) {
    IfOp operation;
    for (const auto& [name, target] :
         {std::pair("then_branch", &operation.then_branch), std::pair("else_branch", &operation.else_branch)}) {
      const Graph* tree = TRY(branch(name, attributes));
      // A branch passed as an attribute of the call would see the caller's values.
      const bool is_own = std::ranges::any_of(node.attributes, [&](const Attribute& attribute) {
        return !attribute.graphs.empty() && attribute.graphs.front().get() == tree;
      });
      if (!is_own) return unsupported("branches passed to a function are not supported");
      Built graph = TRY(build_graph(*tree, frame, scope, false));
      *target = std::make_shared<const Built>(std::move(graph));
    }
    return Operation(std::move(operation));
  }

  // Inlines a call. `node` has the call's inputs and outputs.
  Result<void> call(const Function& function, Attributes attributes, GraphNode node, const Frame& caller,
                    Built& graph) {
    for (const Frame* frame = &caller; frame != nullptr; frame = frame->caller) {
      if (frame->function == &function) {
        return parse_error(fmt::format("the function \"{}\" calls itself", shown(function.name)));
      }
    }
    if (caller.depth == max_call_depth) {
      return unsupported(fmt::format("functions call each other over {} deep", max_call_depth));
    }
    const std::size_t parts = function.body.inputs.size() + function.body.outputs.size() + function.attributes.size() +
                              function.defaults.size();
    TRY(spend(parts * bytes_per_part));
    TRY(complete_attributes(function, attributes));
    if (!opsets_.contains(&function)) {
      const int version = TRY(standard_opset(function.opsets));
      opsets_.emplace(&function, version);
    }

    const bool named = node.name.size() > caller.title.size();
    const std::string title = named ? node.name : caller.title + function.name;
    const Frame frame{.caller = &caller,
                      .function = &function,
                      .opset = opsets_[&function],
                      .attributes = std::move(attributes),
                      .prefix = fmt::format("{}{}/", prefix_, ++calls_),
                      .title = shown(title) + "/",
                      .depth = caller.depth + 1};
    Scope scope;
    TRY(bind_inputs(function, node, scope));
    std::vector<std::pair<std::string, std::string>> copies;  // outputs that already have another name
    TRY(bind_outputs(function, node, scope, copies));
    TRY(add_nodes(function.body.nodes, frame, scope, graph));
    for (auto& [source, target] : copies) {
      GraphNode& copy = graph.nodes.emplace_back();
      copy.name = frame.title + target;
      copy.operation = IdentityOp{};
      copy.inputs.push_back(std::move(source));
      copy.outputs.push_back(std::move(target));
    }
    return {};
  }

  static Result<void> complete_attributes(const Function& function, Attributes& attributes) {
    std::unordered_set<std::string_view> declared(function.attributes.begin(), function.attributes.end());
    for (const Attribute& attribute : function.defaults) declared.insert(attribute.name);
    for (const auto& [name, attribute] : attributes) {
      if (declared.contains(name)) continue;
      return parse_error(fmt::format("the function \"{}\" has no attribute \"{}\"", shown(function.name), shown(name)));
    }
    for (const Attribute& attribute : function.defaults) attributes.try_emplace(attribute.name, &attribute);
    return {};
  }

  static Result<void> bind_inputs(const Function& function, const GraphNode& node, Scope& scope) {
    if (node.inputs.size() > function.body.inputs.size()) {
      return parse_error(fmt::format("the function \"{}\" takes {} inputs, not {}", shown(function.name),
                                     function.body.inputs.size(), node.inputs.size()));
    }
    for (std::size_t i = 0; i < function.body.inputs.size(); ++i) {
      // An omitted input is also omitted for the nodes of the function.
      std::string value = i < node.inputs.size() ? node.inputs[i] : std::string();
      if (!scope.names.try_emplace(function.body.inputs[i].name, std::move(value)).second) {
        return parse_error(fmt::format("the function \"{}\" has two inputs \"{}\"", shown(function.name),
                                       shown(function.body.inputs[i].name)));
      }
    }
    return {};
  }

  Result<void> bind_outputs(const Function& function, const GraphNode& node, Scope& scope,
                            std::vector<std::pair<std::string, std::string>>& copies) {
    if (node.outputs.size() > function.body.outputs.size()) {
      return parse_error(fmt::format("the function \"{}\" has {} outputs, not {}", shown(function.name),
                                     function.body.outputs.size(), node.outputs.size()));
    }
    std::unordered_set<std::string_view> made;
    for (const Node& inner : function.body.nodes) {
      for (const std::string& output : inner.output_names) {
        if (!output.empty() && (scope.names.contains(output) || !made.insert(output).second)) {
          return parse_error(
              fmt::format("the function \"{}\" defines \"{}\" twice", shown(function.name), shown(output)));
        }
      }
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const std::string& inner = function.body.outputs[i].name;
      const auto known = scope.names.find(inner);
      if (known != scope.names.end()) {
        copies.emplace_back(known->second, node.outputs[i]);
      } else if (made.contains(inner)) {
        scope.names.emplace(inner, node.outputs[i]);
      } else {
        return parse_error(
            fmt::format("no node of the function \"{}\" makes its output \"{}\"", shown(function.name), shown(inner)));
      }
    }
    return {};
  }

  const Model& model_;
  TensorLoader loader_;
  std::map<FunctionKey, const Function*> functions_;
  std::map<const Function*, int> opsets_;  // of the standard operators
  std::map<const Attribute*, Tensor> constants_;
  std::string prefix_ = "#";
  std::uint64_t calls_ = 0;
  std::uint64_t inlined_nodes_ = 0;
  std::uint64_t bytes_ = 0;
  bool node_named_ = false;  // whether the error names a node
};

}  // namespace

Result<Built> build_graph(const io::InputFile& file) {
  const auto build = [&]() -> Result<Built> {
    io::MemoryBudget budget(file.size());
    const std::unique_ptr<Model> model = TRY(parse_model(file, budget));
    TRY(check_runnable(*model, budget));
    return GraphBuilder(*model, file).build();
  };
  Result<Built> graph = build();
  if (!graph) graph.error().file = file.path();
  return graph;
}

}  // namespace tensorcast::models::onnx
