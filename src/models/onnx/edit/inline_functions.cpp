// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/inline_functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "dtype/errors.hpp"
#include "dtype/try.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "models/onnx/edit/splice_node.hpp"
#include "models/onnx/ir/fresh_names.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/precision/precision_plan.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"

namespace tensorcast::models::onnx {
namespace {

// Functions that call functions.
constexpr int max_call_depth = 64;
// A malicious model has functions that call functions twice, and so on.
constexpr std::uint64_t most_parts = 50'000;  // calls, and values in them; more in a larger file
constexpr std::uint64_t parts_per_byte = 8;
constexpr std::uint64_t most_new_bytes = std::uint64_t{256} << 20;

bool has_annotations(const Graph& graph) {
  bool found = false;
  each_graph(graph, [&](const Graph& each) { found = found || !each.annotated.empty(); });
  return found;
}

// A call that is being inlined: the names and attributes that replace the function's.
struct Call {
  std::string name;
  std::unordered_map<ValueId, std::string> values = {};      // "": an omitted input
  std::map<std::string, WireField, std::less<>> given = {};  // attributes of the call, or their defaults
  int level = 0;
};

class Inlining {
 public:
  Inlining(const io::InputFile& file, const Model& model)
      : file_(file), model_(model), values_(model.value_names), nodes_(model.node_names) {
    const auto count = [&](const Graph& graph) {
      for (const Node& node : graph.nodes) {
        if (const Function* function = model.function(node)) ++calls_[function];
      }
    };
    each_graph(model, count);
  }

  Result<InlinedModel> run() {
    for (const auto& function : model_.functions) {
      if (fits_model(*function)) fitting_.insert(function.get());
    }
    if (fitting_.empty()) return InlinedModel{};
    Splice splice(0, file_.size());
    TRY(change(*model_.graph, splice));
    if (!splice.changed()) return InlinedModel{};
    keep_called_functions();
    for (const auto& function : model_.functions) {
      const bool is_gone = inlined_.contains(function.get()) && !kept_.contains(function.get());
      if (is_gone) splice.replace_by_fields(function->body.field, {});
    }
    InlinedModel made{.rope = std::move(splice).finish(), .calls = count_};
    for (const auto& [domain, version] : imports_) {
      made.rope.text(encode_field(model_field::opset_import,
                                  encode_field(opset_field::domain, domain) +
                                      encode_varint_field(opset_field::version, static_cast<std::uint64_t>(version))));
    }
    return made;
  }

 private:
  // Whether the function's nodes keep their meaning in the model's opsets and those of functions inlined before.
  bool fits_model(const Function& function) {
    if (function.domain == tensorcast_domain || has_annotations(function.body)) return false;
    std::map<std::string, std::int64_t> versions = versions_;
    for (const Opset& opset : function.opsets) {
      const std::int64_t own = model_.graph->opset(opset.domain);
      const std::int64_t agreed = own != 0 ? own : versions.emplace(opset.domain, opset.version).first->second;
      if (agreed != opset.version) return false;
    }
    versions_ = std::move(versions);
    return true;
  }

  const Function* inlined(const Node& node) const {
    const Function* function = model_.function(node);
    return function != nullptr && fitting_.contains(function) && node.bodies().empty() ? function : nullptr;
  }

  std::string fresh(const Call& call, const std::string& name, FreshNames& names) {
    new_bytes_ += call.name.size() + name.size();
    return names.take(call.name + "/" + name);
  }

  // A graph of the file, in which calls are replaced.
  Result<void> change(const Graph& graph, Splice& around) {
    Splice splice(graph.field);
    WireRope infos;
    for (const Node& node : graph.nodes) {
      if (const Function* function = inlined(node)) {
        WireRope nodes = TRY(expand(node, *function, nullptr, &infos));
        splice.replace_by_fields(node.field, std::move(nodes));
        continue;
      }
      note_call(node);
      const auto inner = [&](const Graph& subgraph, Splice& attribute) { return change(subgraph, attribute); };
      TRY(splice.edit(node.field, [&](Splice& inside) { return splice_subgraphs(node, inside, inner); }));
    }
    if (!splice.changed()) return {};
    splice.insert(end_of(graph.field), std::move(infos));
    around.replace(graph.field, std::move(splice).finish());
    return {};
  }

  // The nodes of a function instead of a call, as fields of the graph that calls. `outer`: the call whose function this
  // call is in; null in a graph of the model, which takes `infos`.
  Result<WireRope> expand(const Node& node, const Function& function, const Call* outer, WireRope* infos) {
    Call call{.name = call_name(node, outer), .level = outer == nullptr ? 1 : outer->level + 1};
    if (call.level > max_call_depth) {
      return unsupported(fmt::format("functions call functions over {} deep", max_call_depth));
    }
    ++count_;
    parts_ += 1 + function.body.names.size();
    if (parts_ > most_parts + parts_per_byte * file_.size())
      return unsupported("the functions of the model are called too often to be inlined");
    inlined_.insert(&function);
    for (const Opset& opset : function.opsets) {
      if (model_.graph->opset(opset.domain) == 0) imports_.emplace(opset.domain, opset.version);
    }
    take_attributes(node, function, outer, call);

    const Graph& body = function.body;
    for (std::size_t k = 0; k < body.inputs.size(); ++k) {
      call.values[body.inputs[k].value] =
          k < node.inputs.size() ? name_of(node.inputs[k], node.input_names[k], outer) : std::string();
    }
    std::string identities;
    for (std::size_t k = 0; k < body.outputs.size() && k < node.outputs.size(); ++k) {
      if (node.outputs[k] == no_value) continue;
      const std::string name = name_of(node.outputs[k], node.output_names[k], outer);
      const auto [made, is_new] = call.values.emplace(body.outputs[k].value, name);
      if (is_new) continue;
      // The function returns an input, or one value twice: copy it with Identity.
      if (made->second.empty()) return unsupported("a function gives back an input that a call of it omits");
      identities += encode_field(graph_field::node, encode_node({"Identity", {made->second}, {name}}));
    }
    name_values(body, call);

    WireRope nodes = TRY(body_nodes(body, graph_field::node, call));
    nodes.text(identities);
    // The function's value_info holds for one call.
    if (infos == nullptr || calls_.at(&function) != 1) return nodes;
    for (const Declaration& info : body.infos) {
      if (info.value == no_value) continue;
      WireRope renamed = TRY(with_name(info.field, value_field::name, call.values.at(info.value)));
      infos->message(graph_field::value_info, std::move(renamed));
    }
    return nodes;
  }

  // Values that are defined inside.
  void name_values(const Graph& graph, Call& call) {
    const auto add = [&](ValueId id, const std::string& name) {
      if (id != no_value && !call.values.contains(id)) call.values.emplace(id, fresh(call, name, values_));
    };
    for (const Declaration& input : graph.inputs) add(input.value, input.name);
    for (const Initializer& initializer : graph.initializers) add(initializer.value, initializer.name);
    for (const Node& node : graph.nodes) {
      for (std::size_t k = 0; k < node.outputs.size(); ++k) add(node.outputs[k], node.output_names[k]);
    }
  }

  std::string name_of(ValueId id, const std::string& written, const Call* call) const {
    if (call == nullptr || id == no_value) return id == no_value ? std::string() : written;
    return call->values.at(id);
  }

  std::string call_name(const Node& node, const Call* outer) const {
    return outer == nullptr ? shown_name(node) : outer->name + "/" + shown_name(node);
  }

  // Collects the attributes that the function may refer to: those of the call, then its defaults.
  static void take_attributes(const Node& node, const Function& function, const Call* outer, Call& call) {
    for (const Attribute& attribute : node.attributes) {
      const WireField* field = resolved(attribute, outer);
      if (field != nullptr) call.given.emplace(attribute.name, *field);
    }
    for (const Attribute& attribute : function.defaults) call.given.emplace(attribute.name, attribute.field);
  }

  // Returns the attribute of a node; null if it refers to one that the call lacks.
  static const WireField* resolved(const Attribute& attribute, const Call* call) {
    if (attribute.reference.empty() || call == nullptr) return &attribute.field;
    const auto given = call->given.find(attribute.reference);
    return given == call->given.end() ? nullptr : &given->second;
  }

  // Encodes the nodes of a function, or of a subgraph in it, as fields `number`.
  Result<WireRope> body_nodes(const Graph& graph, std::uint32_t number, Call& call) {
    WireRope rope;
    for (const Node& node : graph.nodes) {
      if (const Function* function = inlined(node)) {
        WireRope nodes = TRY(expand(node, *function, &call, nullptr));
        rope.append(std::move(nodes));
        continue;
      }
      note_call(node);
      WireRope contents = TRY(body_node(node, call));
      new_bytes_ += contents.size();
      if (new_bytes_ > most_new_bytes) {
        return unsupported(fmt::format("the functions of the model would become over {} MiB", most_new_bytes >> 20));
      }
      rope.message(number, std::move(contents));
    }
    return rope;
  }

  Result<WireRope> body_node(const Node& node, Call& call) {
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    std::size_t attributes = 0;
    return rewritten(file_, node.field, [&](const WireField& field, std::uint64_t end, WireRope& rope) -> Result<void> {
      switch (field.number) {
        case node_field::input: {
          const std::size_t k = inputs++;
          rope.text(encode_field(field.number, name_of(node.inputs[k], node.input_names[k], &call)));
          return {};
        }
        case node_field::output: {
          const std::size_t k = outputs++;
          rope.text(encode_field(field.number, name_of(node.outputs[k], node.output_names[k], &call)));
          return {};
        }
        case node_field::name:
          if (!node.name.empty()) rope.text(encode_field(field.number, fresh(call, node.name, nodes_)));
          return {};
        case node_field::attribute: {
          WireRope contents = TRY(body_attribute(node.attributes[attributes++], call));
          if (contents.size() > 0) rope.message(field.number, std::move(contents));
          return {};
        }
        default:
          rope.copy(field.begin, end);
          return {};
      }
    });
  }

  // Returns an empty text if it refers to an attribute that the call lacks.
  Result<WireRope> body_attribute(const Attribute& attribute, Call& call) {
    if (!attribute.reference.empty()) {
      const WireField* given = resolved(attribute, &call);
      return given == nullptr ? WireRope() : with_name(*given, attribute_field::name, attribute.name);
    }
    Splice splice(attribute.field);
    for (const auto& graph : attribute.graphs) {
      WireRope contents = TRY(subgraph(*graph, call));
      splice.replace(graph->field, std::move(contents));
    }
    return std::move(splice).finish();
  }

  // A graph inside a function: all its values get new names.
  Result<WireRope> subgraph(const Graph& graph, Call& call) {
    name_values(graph, call);
    std::size_t inputs = 0;
    std::size_t outputs = 0;
    std::size_t declared = 0;
    std::size_t initializers = 0;
    bool has_nodes = false;
    return rewritten(
        file_, graph.field, [&](const WireField& field, std::uint64_t end, WireRope& rope) -> Result<void> {
          const auto declaration = [&](const Declaration& given) -> Result<void> {
            if (given.value == no_value) return {};
            WireRope renamed = TRY(with_name(field, value_field::name, call.values.at(given.value)));
            rope.message(field.number, std::move(renamed));
            return {};
          };
          switch (field.number) {
            case graph_field::node: {
              if (std::exchange(has_nodes, true)) return {};
              WireRope nodes = TRY(body_nodes(graph, field.number, call));
              rope.append(std::move(nodes));
              return {};
            }
            case graph_field::input:
              return declaration(graph.inputs[inputs++]);
            case graph_field::output:
              return declaration(graph.outputs[outputs++]);
            case graph_field::value_info:
              return declaration(graph.infos[declared++]);
            case graph_field::initializer:
            case graph_field::sparse_initializer: {
              const Initializer& initializer = graph.initializers[initializers++];
              WireRope renamed = TRY(renamed_initializer(initializer, field, call.values.at(initializer.value)));
              rope.message(field.number, std::move(renamed));
              return {};
            }
            default:
              rope.copy(field.begin, end);
              return {};
          }
        });
  }

  Result<WireRope> renamed_initializer(const Initializer& initializer, const WireField& field,
                                       const std::string& name) {
    constexpr auto name_field = static_cast<std::uint32_t>(formats::onnx::Field::name);
    if (!initializer.sparse) return with_name(field, name_field, name);
    return with_message(file_, field, sparse_tensor_field::values,
                        [&](const WireField& values) { return with_name(values, name_field, name); });
  }

  // Returns the contents of a message whose field `number` is the name.
  Result<WireRope> with_name(const WireField& message, std::uint32_t number, const std::string& name) {
    WireRope rope(encode_field(number, name));
    WireRope others = TRY(without_field(file_, message, number));
    rope.append(std::move(others));
    return rope;
  }

  // Counts a call that is not inlined.
  void note_call(const Node& node) {
    if (const Function* function = model_.function(node)) kept_.insert(function);
  }

  // A function that is not inlined may call others.
  void keep_called_functions() {
    for (const auto& function : model_.functions) {
      if (model_.has_training || !inlined_.contains(function.get())) kept_.insert(function.get());
    }
    std::vector<const Function*> pending(kept_.begin(), kept_.end());
    while (!pending.empty()) {
      const Function& function = *pending.back();
      pending.pop_back();
      each_graph(function.body, [&](const Graph& graph) {
        for (const Node& node : graph.nodes) {
          const Function* called = model_.function(node);
          if (called != nullptr && kept_.insert(called).second) pending.push_back(called);
        }
      });
    }
  }

  static Error unsupported(std::string what) {
    return tensorcast::unsupported(std::move(what), "--functions copy keeps them");
  }

  const io::InputFile& file_;
  const Model& model_;
  FreshNames values_;
  FreshNames nodes_;
  std::unordered_map<const Function*, std::size_t> calls_;  // in the file
  std::set<const Function*> fitting_;                       // that can be inlined
  std::set<const Function*> inlined_;
  std::set<const Function*> kept_;                // that calls of the new model need
  std::map<std::string, std::int64_t> versions_;  // of domains that the model does not import, as functions do
  std::map<std::string, std::int64_t> imports_;   // of those, what the new model needs
  std::size_t count_ = 0;
  std::uint64_t parts_ = 0;
  std::uint64_t new_bytes_ = 0;
};

}  // namespace

Result<InlinedModel> inline_functions(const io::InputFile& file, const Model& model) {
  return Inlining(file, model).run();
}

}  // namespace tensorcast::models::onnx
