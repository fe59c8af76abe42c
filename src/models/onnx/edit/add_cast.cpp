// SPDX-License-Identifier: Apache-2.0
// Inserts a Cast after a value of any ONNX model. All other bytes stay as they are.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_set>

#include "dtype/error_places.hpp"
#include "dtype/errors.hpp"
#include "dtype/guarded.hpp"
#include "dtype/try.hpp"
#include "formats/npy/npy_text.hpp"
#include "formats/onnx/tensor_proto_schema.hpp"
#include "io/input_file.hpp"
#include "io/memory_budget.hpp"
#include "io/output_file.hpp"
#include "models/onnx/edit/external_locations.hpp"
#include "models/onnx/edit/retyped_declaration.hpp"
#include "models/onnx/edit/splice_node.hpp"
#include "models/onnx/model_folder.hpp"
#include "models/onnx/wire/encode.hpp"
#include "models/onnx/wire/message_fields.hpp"
#include "models/onnx/wire/model_schema.hpp"
#include "tensorcast/model.hpp"

namespace tensorcast::models::onnx {
namespace {

// Where a value of the model is defined: at most one in a graph.
struct Definition {
  const Graph* graph = nullptr;
  std::uint64_t after = 0;  // offset for a node that reads the value
};

// What a model declares about a value, and which names are taken.
struct Facts {
  std::vector<Definition> definitions;
  DType element = DType::undefined;  // undefined: unknown
  bool is_tensor = true;             // unless the model declares another kind
  std::unordered_set<std::string_view> value_names;
  std::unordered_set<std::string_view> node_names;
};

class FactFinder {
 public:
  FactFinder(const Model& model, const std::string& value) : model_(model), value_(value) {}

  Result<Facts> find() {
    TRY(find_definitions(*model_.graph));
    each_graph(model_, [&](const Graph& graph) { note_names(graph); });
    // New names differ from those in training_info, which sees the main graph's values, and from outputs of calls.
    for (const auto& graph : model_.training) {
      each_graph(*graph, [&](const Graph& each) { note_names(each); });
    }
    for (const auto& function : model_.functions) {
      for (const Attribute& attribute : function->defaults) {
        for (const auto& graph : attribute.graphs) {
          each_graph(*graph, [&](const Graph& each) { note_names(each); });
        }
      }
    }
    return std::move(facts_);
  }

 private:
  Result<void> find_definitions(const Graph& graph) {
    const Node* producer = nullptr;
    for (const Node& node : graph.nodes) {
      for (const Graph* inner : node.bodies()) {
        TRY(find_definitions(*inner));
      }
      const auto count = std::ranges::count(node.output_names, value_);
      if (count > 1 || (count == 1 && producer != nullptr)) {
        return of_tensor(value_, parse_error("the value is defined twice"));
      }
      if (count == 1) producer = &node;
    }
    bool defined = producer != nullptr;
    bool is_tensor = true;
    DType element = DType::undefined;
    for (const Initializer& initializer : graph.initializers) {
      if (initializer.name != value_) continue;
      defined = true;
      element = initializer.element;
    }
    for (const auto* declarations : {&graph.inputs, &graph.outputs, &graph.infos}) {
      for (const Declaration& declared : *declarations) {
        if (declared.name != value_) continue;
        defined = defined || declarations == &graph.inputs;
        if (declared.type.element != DType::undefined) element = declared.type.element;
        is_tensor = is_tensor && (declared.type_field == 0 || declared.type_field == type_field::tensor);
      }
    }
    if (!defined) return {};
    const std::uint64_t begin = graph.nodes.empty() ? end_of(graph.field) : graph.nodes.front().field.begin;
    facts_.definitions.push_back({.graph = &graph, .after = producer == nullptr ? begin : end_of(producer->field)});
    if (&graph == model_.graph.get() || facts_.element == DType::undefined) facts_.element = element;
    facts_.is_tensor = facts_.is_tensor && is_tensor;
    return {};
  }

  void note_names(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      facts_.value_names.insert(node.input_names.begin(), node.input_names.end());
      facts_.value_names.insert(node.output_names.begin(), node.output_names.end());
      facts_.node_names.insert(node.name);
    }
    for (const Initializer& initializer : graph.initializers) facts_.value_names.insert(initializer.name);
    for (const auto* declarations : {&graph.inputs, &graph.outputs, &graph.infos}) {
      for (const Declaration& declared : *declarations) facts_.value_names.insert(declared.name);
    }
  }

  const Model& model_;
  const std::string& value_;
  Facts facts_;
};

// Rewrites the graph that defines the value, and the nested graphs that see it.
class Rewiring {
 public:
  Rewiring(const io::InputFile& file, const Model& model, const Facts& facts, const Definition& definition,
           const AddCastRequest& request, const AddCastOutcome& names)
      : file_(file), model_(model), facts_(facts), definition_(definition), request_(request), outcome_(names) {}

  // Returns the new model; `node` is a field of a graph.
  Result<WireRope> run(const std::string& node) {
    node_.text(node);
    Splice splice(0, file_.size());
    TRY(change(*model_.graph, splice, false));
    return std::move(splice).finish();
  }

  [[nodiscard]] const AddCastOutcome& outcome() const { return outcome_; }

 private:
  // Replaces a graph that changes in the message around it. `sees_value`: the outer graph sees the value.
  Result<void> change(const Graph& graph, Splice& around, bool sees_value) {
    const bool defines = &graph == definition_.graph;
    const auto is_this = [&](const Definition& other) { return other.graph == &graph; };
    if (!defines && std::ranges::any_of(facts_.definitions, is_this)) return {};
    sees_value = sees_value || defines;
    Splice splice(graph.field);
    if (defines) splice.insert(definition_.after, std::move(node_));
    for (const Node& node : graph.nodes) {
      TRY(change(node, splice, sees_value));
    }
    for (const Declaration& output : graph.outputs) {
      if (!sees_value || output.name != request_.tensor) continue;
      if (&graph != model_.graph.get()) {
        return unsupported("the value is an output of a subgraph, whose type the node around it determines",
                           "the Cast can go behind the output of that node");
      }
      outcome_.graph_output_renamed = true;
      WireRope renamed = TRY(retyped_declaration(file_, output.field, request_.to, outcome_.output_name));
      splice.replace(output.field, std::move(renamed));
    }
    if (splice.changed()) around.replace(graph.field, std::move(splice).finish());
    return {};
  }

  Result<void> change(const Node& node, Splice& around, bool sees_value) {
    Splice splice(node.field);
    if (sees_value) {
      std::vector<std::string> inputs = node.input_names;
      outcome_.rewired += static_cast<std::size_t>(std::ranges::count(inputs, request_.tensor));
      std::ranges::replace(inputs, request_.tensor, outcome_.output_name);
      TRY(rename(file_, node, inputs, node.output_names, {}, splice));
    }
    const auto inner = [&](const Graph& graph, Splice& inside) { return change(graph, inside, sees_value); };
    TRY(splice_subgraphs(node, splice, inner));
    if (splice.changed()) around.replace(node.field, std::move(splice).finish());
    return {};
  }

  const io::InputFile& file_;
  const Model& model_;
  const Facts& facts_;
  const Definition& definition_;
  const AddCastRequest& request_;
  AddCastOutcome outcome_;
  WireRope node_;
};

Result<int> cast_opset(const Model& model) {
  std::int64_t version = 0;
  for (const Opset& opset : model.opsets) version = opset.domain.empty() ? opset.version : version;
  if (version == 0 && model.ir_version < 3 && model.opsets.empty()) return 1;  // such models do not name an opset
  if (version <= 0) {
    return unsupported("the model imports no version of the standard operators, so it can have no Cast");
  }
  return static_cast<int>(std::min<std::int64_t>(version, newest_opset()));
}

Result<void> check_types(const Facts& facts, const AddCastRequest& request, int opset) {
  if (!facts.is_tensor) return invalid("the value is not a tensor, so it cannot be cast");
  const auto check = [&](DType dtype, std::string_view which) -> Result<void> {
    if (since_opset(dtype) <= opset) return {};
    return unsupported(fmt::format("Cast {} {} came with opset {}, but the model has opset {}", which, name(dtype),
                                   since_opset(dtype), opset),
                       fmt::format("onnx.version_converter may convert the model to opset {}", since_opset(dtype)));
  };
  TRY(check(request.to, "to"));
  if (!request.saturate && opset < 19) {
    return unsupported(fmt::format("Cast of opset {} has no attribute \"saturate\"; it came with opset 19", opset));
  }
  if (facts.element == DType::undefined) return {};
  const DType from = TRY(formats::onnx::parse_data_type(static_cast<std::uint32_t>(facts.element)));
  return check(from, "from");
}

Result<const Definition*> choose_definition(const Model& model, const Facts& facts) {
  if (facts.definitions.empty()) {
    return invalid("the model has no such tensor", "values of subgraphs count, those inside functions do not");
  }
  for (const Definition& definition : facts.definitions) {
    if (definition.graph == model.graph.get()) return &definition;
  }
  if (facts.definitions.size() == 1) return &facts.definitions.front();
  return invalid(fmt::format("{} subgraphs have a tensor of this name", facts.definitions.size()));
}

template <class Names>
std::string unused(const std::string& base, const Names& taken) {
  std::string candidate = base;
  for (int number = 2; taken.contains(candidate); ++number) candidate = fmt::format("{}_{}", base, number);
  return candidate;
}

std::string new_cast(const AddCastRequest& request, const AddCastOutcome& names, int opset) {
  NewNode node{.op_type = "Cast",
               .inputs = {request.tensor},
               .outputs = {names.output_name},
               .name = names.node_name,
               .attributes = {encode_cast_target(request.to, opset)}};
  if (!request.saturate) node.attributes.push_back(encode_int_attribute("saturate", 0));
  return encode_field(graph_field::node, encode_node(node));
}

Result<void> check_request(const AddCastRequest& request) {
  if (!is_onnx(request.to)) return invalid(fmt::format("{} is not a type of ONNX's Cast", name(request.to)));
  if (request.tensor.empty()) return invalid("the tensor needs a name");
  for (const std::string* text : {&request.node_name, &request.output_name}) {
    if (!formats::npy::is_utf8(*text)) return invalid("the new name is not UTF-8");
  }
  return {};
}

// The new model must be in the same folder, as it finds its external data beside itself.
Result<void> check_place(const io::InputFile& file, const Model& model, const AddCastRequest& request) {
  if (!model.has_external_data) return {};
  const std::set<std::string> locations = TRY(external_locations(file, model));
  Result<void> apart = check_apart_from_data(request.input, locations, request.output);
  if (!apart || in_same_folder(request.input, request.output)) return apart;
  return unsupported(
      "the model has external data, which is found only from the model's own folder",
      fmt::format("write the new model into {}, or copy model and data first", folder_of(request.input).string()));
}

Result<void> write(const WireRope& rope, const io::InputFile& file, const AddCastRequest& request) {
  const auto go_on = [&] { return !request.on_progress || request.on_progress(); };
  if (!go_on()) return in_file(request.output, cancelled());
  io::OutputFile output = TRY(io::OutputFile::create(request.output, request.overwrite));
  if (rope.size() > formats::onnx::max_message_bytes) {
    return unsupported("the model would be larger than protobuf's limit of 2 GiB",
                       "large models keep their tensors in files of their own, as external data");
  }
  TRY(output.reserve(rope.size()));
  TRY(in_file(request.output, rope.write(file, output, go_on)));
  TRY(output.sync());  // may take long
  if (!go_on()) return in_file(request.output, cancelled());
  return output.commit();
}

Result<AddCastOutcome> edit(const AddCastRequest& request) {
  TRY(check_request(request));
  const io::InputFile file = TRY(io::InputFile::open(request.input));
  io::MemoryBudget budget(file.size());
  const std::unique_ptr<Model> model = TRY(parse_model(file, budget));
  const Facts facts = TRY(FactFinder(*model, request.tensor).find());
  const Definition* definition = TRY(choose_definition(*model, facts));
  const int opset = TRY(cast_opset(*model));
  TRY(check_types(facts, request, opset));
  TRY(check_place(file, *model, request));
  if (!request.output_name.empty() && facts.value_names.contains(request.output_name)) {
    return invalid(fmt::format("the model has a value \"{}\" already", request.output_name));
  }
  if (!request.node_name.empty() && facts.node_names.contains(request.node_name)) {
    return invalid(fmt::format("the model has a node \"{}\" already", request.node_name));
  }
  const std::string ending = fmt::format("_{}", name(request.to));
  const std::string output_base = request.output_name.empty() ? request.tensor + ending : request.output_name;
  const std::string node_base = request.node_name.empty() ? "Cast_" + request.tensor + ending : request.node_name;
  const AddCastOutcome names{.node_name = unused(node_base, facts.node_names),
                             .output_name = unused(output_base, facts.value_names)};

  Rewiring rewiring(file, *model, facts, *definition, request, names);
  const WireRope rope = TRY(rewiring.run(new_cast(request, names, opset)));
  if (rewiring.outcome().rewired == 0 && !rewiring.outcome().graph_output_renamed) {
    return invalid("nothing takes the value, so a Cast behind it would have no effect");
  }
  TRY(write(rope, file, request));
  return rewiring.outcome();
}

}  // namespace
}  // namespace tensorcast::models::onnx

namespace tensorcast {
inline namespace TENSORCAST_ABI {

Result<AddCastOutcome> add_cast(const AddCastRequest& request) {
  Result<AddCastOutcome> outcome = guarded(request.input, [&] { return models::onnx::edit(request); });
  if (outcome) return outcome;
  if (outcome.error().file.empty()) outcome.error().file = request.input;
  if (outcome.error().code != ErrorCode::io && outcome.error().file == request.input) {
    outcome.error().tensor = request.tensor;
  }
  return outcome;
}

}  // namespace TENSORCAST_ABI
}  // namespace tensorcast
