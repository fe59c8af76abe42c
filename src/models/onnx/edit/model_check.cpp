// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/edit/model_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "dtype/try.hpp"
#include "models/onnx/ir/graph_scopes.hpp"
#include "models/onnx/ir/model_ir.hpp"
#include "models/onnx/ir/op_rules.hpp"
#include "models/onnx/ir/type_inference.hpp"

namespace tensorcast::models::onnx {
namespace {

bool is_known(const ValueType& type) {
  return type.kind != ValueType::Kind::unknown && type.kind != ValueType::Kind::other &&
         type.element != DType::undefined;
}

bool differ(const ValueType& a, const ValueType& b) { return is_known(a) && is_known(b) && a != b; }

class Check {
 public:
  explicit Check(const Model& model) : model_(model), is_made_(model.values.size()) {}

  std::vector<Fault> run() {
    look(*model_.graph);
    for (const auto& function : model_.functions) look(function->body);
    return std::move(faults_);
  }

 private:
  [[nodiscard]] ValueType type(ValueId id) const { return id == no_value ? ValueType{} : model_.values[id].type; }

  void add(const Node& node, std::string_view kind, std::string what) {
    const std::string& named = shown_name(node);
    faults_.push_back({.place = fmt::format("{}|{}|{}", kind, node.op_type, named),
                       .text = fmt::format("{} \"{}\" {}", shown(node.op_type), shown(named), what)});
  }

  void look(const Graph& graph) {
    for (const Declaration& input : graph.inputs) is_made_[input.value] = true;
    for (const Initializer& initializer : graph.initializers) is_made_[initializer.value] = true;
    for (const Node& node : graph.nodes) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == no_value || is_made_[node.inputs[i]]) continue;
        add(node, "order", fmt::format("takes \"{}\" before it is made", shown(node.input_names[i])));
      }
      for (const Graph* inner : node.bodies()) look(*inner);
      if (is_control_flow(node)) {
        look_at_bodies(node, graph);
      } else if (model_.function(node) == nullptr) {
        if (const Schema* schema = schema_of(node, graph); schema != nullptr) look_at_types(node, *schema);
      }
      for (const ValueId id : node.outputs) {
        if (id != no_value) is_made_[id] = true;
      }
    }
    for (const auto* declarations : {&graph.inputs, &graph.outputs, &graph.infos}) {
      for (const Declaration& declared : *declarations) {
        if (!differ(declared.type, type(declared.value))) continue;
        faults_.push_back({.place = "declared|" + declared.name,
                           .text = fmt::format("\"{}\" is declared as {} and is {}", shown(declared.name),
                                               type_text(declared.type), type_text(type(declared.value)))});
      }
    }
  }

  void look_at_types(const Node& node, const Schema& schema) {
    std::vector<ValueType> bound(schema.variables.size());
    const auto look = [&](const std::vector<Parameter>& formal, const std::vector<ValueId>& values,
                          std::string_view verb) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Parameter* parameter = Schema::at(formal, i);
        const ValueType here = type(values[i]);
        if (parameter == nullptr || parameter->arity == Arity::heterogeneous || !is_known(here)) continue;
        const std::uint64_t allowed = elements_of(schema.variables[parameter->variable], here.kind);
        if (static_cast<std::uint32_t>(here.element) < 64 && !has_type(allowed, here.element)) {
          add(node, "type", fmt::format("{} {}, which the operator does not allow there", verb, type_text(here)));
        } else if (differ(bound[parameter->variable], here)) {
          add(node, "types",
              fmt::format("{} {} and {} where it needs one type", verb, type_text(bound[parameter->variable]),
                          type_text(here)));
        } else {
          bound[parameter->variable] = here;
        }
      }
    };
    look(schema.inputs, node.inputs, "takes");
    look(schema.outputs, node.outputs, "gives");
  }

  // The outputs of If's branches have the types of If's outputs; those of a loop body, the types it carries.
  void look_at_bodies(const Node& node, const Graph& graph) {
    const BodyWiring wiring = body_wiring(node, graph.opset(node.domain));
    for (const Attribute& attribute : node.attributes) {
      for (const auto& body : attribute.graphs) {
        for (std::size_t k = 0; k < body->outputs.size(); ++k) {
          const ValueType made = type(body->outputs[k].value);
          const std::size_t target = wiring.output_of(k);
          if (target == BodyWiring::npos) continue;
          const bool is_branch = node.op_type == "If" && target < node.outputs.size();
          const bool is_carried = target < wiring.carried && target + wiring.first_node_input < node.inputs.size();
          const ValueType wanted = is_branch    ? type(node.outputs[target])
                                   : is_carried ? type(node.inputs[target + wiring.first_node_input])
                                                : ValueType{};
          if (!differ(made, wanted)) continue;
          add(node, "body",
              fmt::format("needs {} from \"{}\", which gives {}", type_text(wanted), shown(attribute.name),
                          type_text(made)));
        }
      }
    }
  }

  const Model& model_;
  std::vector<bool> is_made_;  // by value
  std::vector<Fault> faults_;
};

}  // namespace

std::vector<Fault> find_faults(Model& model) {
  infer_types(model);
  return Check(model).run();
}

Result<void> check_new_model(const io::InputFile& old_file, const std::string& new_path) {
  const io::InputFile file = TRY(io::InputFile::open(new_path));
  Result<std::unique_ptr<Model>> made = read_model(file);
  std::vector<Fault> faults;
  if (made) {
    faults = find_faults(**made);
  } else {
    faults.push_back({.place = {}, .text = made.error().message});
  }
  if (faults.empty()) return {};
  std::unique_ptr<Model> old = TRY(read_model(old_file));
  std::set<std::string> known;
  for (Fault& fault : find_faults(*old)) known.insert(std::move(fault.place));
  const auto found = std::ranges::find_if(faults, [&](const Fault& f) { return !known.contains(f.place); });
  if (found == faults.end()) return {};
  return Error{.code = ErrorCode::internal,
               .message = "the new model would be wrong: " + found->text,
               .hint = "this is a defect of tensorcast; keeping the node as it is may avoid it"};
}

}  // namespace tensorcast::models::onnx
